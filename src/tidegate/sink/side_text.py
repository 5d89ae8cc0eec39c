"""Late and rejected tuples as lines of text, between the side outputs of a batch and a terminal."""

from __future__ import annotations

import io
import sys
from typing import TextIO

import pyarrow as pa

from tidegate.sink.batch_output import BatchOutput
from tidegate.sink.json import write_json

SHOWN_ROWS = 10
"""How many tuples of a batch a person is shown, of each kind; a file or a pipe gets all."""


class SideText:
    """Writes side outputs to standard error, or another stream, each tuple as a line of JSON."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream

    def write(self, output: BatchOutput) -> None:
        for stream, table in output.late.items():
            self._write(f"late tuple of {stream}", table)
        if output.rejected is not None:
            self._write("rejected tuple", output.rejected)

    def _write(self, what: str, table: pa.Table) -> None:
        # Looked up each time: a live view puts itself before standard error.
        stream = self._stream or sys.stderr
        shown = table.slice(0, SHOWN_ROWS) if stream.isatty() else table
        lines = io.BytesIO()
        write_json(shown, lines)
        found = lines.getvalue().decode().split("\n")[:-1]
        text = "".join(f"{what}: {line}\n" for line in found)
        if shown.num_rows < table.num_rows:
            text += f"{what}: {table.num_rows - shown.num_rows:,} more are not shown\n"
        stream.write(text)
        stream.flush()
