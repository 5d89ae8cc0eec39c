"""Text files as sources: records are found in blocks of bytes, and parsed where they are read.

- `files`: how a text format looks at a file; `source`: a file on the driver, which may grow
- `format`: what a text format is, and the reader that tasks have; `csv`, `json`: the formats
- `block`: where records begin and end; `compression`, `encoding`: from stored bytes to UTF-8
- `dialect`, `event_time`, `pattern`: from cells to values; `cell`, `depth`: odd cells and lines
"""
