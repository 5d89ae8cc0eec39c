"""Late and rejected tuples as lines of text, between the side outputs of a batch and a terminal."""

from __future__ import annotations

import io
import sys
from typing import TextIO

import pyarrow as pa

from tidegate.sink.batch_output import BatchOutput
from tidegate.sink.json import write_json

SHOWN_ROWS = 10
"""How many tuples are shown of each kind, in a whole run."""

_LONGEST = 2_000
"""Characters of a line."""


class SideText:
    """Writes side outputs to standard error, or another stream, each tuple as a line of JSON.

    The first few are enough to see what is wrong. All of them would hide the rest from a person,
    and fill the disk under a log.
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
