"""Late and rejected tuples as lines of text, between the side outputs of a batch and a terminal."""

from __future__ import annotations

import io
import sys
from typing import TextIO

import pyarrow as pa

from tidegate.sink.batch_output import BatchOutput
from tidegate.sink.json import write_json

SHOWN_ROWS = 10
"""How many tuples a person is shown of each kind, in a whole run; a file or a pipe gets all."""


class SideText:
    """Writes side outputs to standard error, or another stream, each tuple as a line of JSON.

    On a terminal the first few are enough to see what is wrong; all of them would hide the rest.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream
        self._left: dict[str, int] = {}
        """How many of a kind may still be shown; -1 when it was said that there are more."""

    def write(self, output: BatchOutput) -> None:
        for stream, table in output.late.items():
            self._write(f"late tuple of {stream}", table)
        if output.rejected is not None:
            self._write("rejected tuple", output.rejected)

    def _write(self, what: str, table: pa.Table) -> None:
        # Looked up each time: a live view puts itself before standard error.
        stream = self._stream or sys.stderr
        shown = table
        left = self._left.get(what, SHOWN_ROWS)
        if stream.isatty():
            shown = table.slice(0, max(left, 0))
            self._left[what] = left - table.num_rows if left >= table.num_rows else -1
        lines = io.BytesIO()
        write_json(shown, lines)
        found = lines.getvalue().decode().split("\n")[:-1]
        text = "".join(f"{what}: {line}\n" for line in found)
        if shown.num_rows < table.num_rows and left >= 0:
            text += f"{what}: further ones are counted, and not shown\n"
        stream.write(text)
        stream.flush()
