"""Prints late and rejected tuples as lines of text."""

from __future__ import annotations

import io
import sys
from typing import TextIO

import pyarrow as pa

from tidegate.sink.batch_output import BatchOutput
from tidegate.sink.json import write_json

SHOWN_ROWS = 10
"""How many tuples of each kind are shown in a whole run."""

_LONGEST = 2_000
"""Characters of a line."""


class SideText:
    """Writes side outputs to standard error, or another stream, each tuple as a line of JSON.

    Only the first few: they show what is wrong, while all of them would hide other lines from a
    person and fill the disk of a log.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream
        self._left: dict[str, int] = {}
        """How many tuples of a kind may still be shown; -1 once the line about more was written."""

    def write(self, output: BatchOutput) -> None:
        for stream, table in output.late.items():
            self._write(f"late tuple of {stream}", table)
        if output.rejected is not None:
            self._write("rejected tuple", output.rejected)

    def _write(self, what: str, table: pa.Table) -> None:
        # Looked up each time, because a live view replaces `sys.stderr` while it runs.
        stream = self._stream or sys.stderr
        left = self._left.get(what, SHOWN_ROWS)
        if left < 0:
            return
        lines = io.BytesIO()
        write_json(table.slice(0, left), lines)
        found = [f"{what}: {line}" for line in lines.getvalue().decode().split("\n")[:-1]]
        if table.num_rows > left:
            found.append(
                f"{what}: further ones are counted and not shown; an output to files has all"
            )
        self._left[what] = left - table.num_rows if table.num_rows <= left else -1
        stream.write("".join(f"{_cut(line)}\n" for line in found))
        stream.flush()


def _cut(line: str) -> str:
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."
