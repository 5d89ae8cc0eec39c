"""Physical streams with random access by position, between the outside and the gate.

- `protocol`: what a source, its readers and a connector promise
- `uri`: from the text after `FROM` to a connector
- `files`, `listing`, `shape`: paths, folders and globs; which files, and their one schema
- `parquet`, `text_file` and `text` (with `csv`, `json`, `block`): the formats
- `mark`: what tells a file from another at its path
- `memory`: rows that a Python program appends
- `spool`: files in the checkpoint, of rows that another system delivered
- `generator`, `parameter`, `generate`: rows computed from their position
- `event_time`: the time column; `cache`: decoded pieces kept per process
"""
