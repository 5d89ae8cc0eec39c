"""Physical streams with random access by position: what `FROM 'URI'` can name.

- `registry`: a line for each scheme and each file format; opens the URI of a stream
- `files`, `listing`, `watch`, `remote_listing`: paths, folders and globs, and files that come later
- `shape`, `partition`, `subscription`: one schema for all files; columns from folders; options
- `format`, `piece`, `mark`: what all file formats share
- `columnar` (with `parquet`, `orc`), `text` (with `csv`, `json`): the formats
- `memory`: rows that a Python program appends
- `spool`: rows that another system delivered, in files of the checkpoint
- `generator`, `parameter`, `pace`, `generate`: rows computed from their position

The base classes `Connector` and `Source` are in `tidegate.connector`.
"""
