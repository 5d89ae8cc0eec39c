"""State in immutable segments that all tasks share, and the checkpoint that lists them.

- `segment`: the Arrow file with rows of several buckets
- `bucket_set`: which buckets those are
- `manifest`: what the state after a batch consists of
- `seal`, `packed`: the text of a manifest: checked, and short
- `epoch_log`: the history of mappings beside the newest manifest
- `store`: the checkpoint location, with crash-safe publishing
- `owner`: the run that it belongs to, and how others are kept from publishing
- `files`: whole files on a local or remote file system
- `compaction`: fewer, larger segments with the same live rows
- `inspect`: what `tidegate state DIR` shows
"""
