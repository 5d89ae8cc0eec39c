"""Reads text files: finds records in blocks of bytes, and parses them where they are read.

- `format`: probes a file; `source`: a file on the driver, which may grow
- `layout`: parses blocks, and the reader for tasks; `csv`, `json`: the formats
- `block`: where records begin and end; `compression`, `encoding`: from stored bytes to UTF-8
- `dialect`, `event_time`, `pattern`: from cells to values; `cell`, `depth`: odd cells and lines
"""
