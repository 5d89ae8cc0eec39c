"""State in immutable segments that all tasks share, and the checkpoint that lists them.

- `segment`, `segment_file`, `piece`: the Arrow file with rows of several buckets, its layout, and
  how parts of it are read; `nearby` keeps it on an executor
- `bucket_set`: which buckets those are
- `manifest`: what the state after a batch consists of
- `seal`, `short_text`: the text of a manifest, with a checksum, and short
- `epoch_log`: the history of mappings beside the newest manifest
- `store`: the checkpoint location, with crash-safe publishing; `handle` for tasks
- `owner`, `lock`: the run that it belongs to, and how others are kept from publishing
- `files`, `object_files`: whole files on a local or remote file system
- `compaction`: fewer, larger segments with the same live rows
- `archive`, `past`: states of earlier batches, kept and read
- `name`, `leftover`: names of files, and the files that no state needs
- `inspect`: what `tidegate state DIR` shows
"""
