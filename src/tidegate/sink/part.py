"""One file of a batch's results, written aside by the driver or by a task, with its receipt."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from tidegate.errors import SinkError
from tidegate.sink.csv import write_csv
from tidegate.sink.json import write_json
from tidegate.sink.receipt import Part, Receipt
from tidegate.sink.staging import FILE
from tidegate.whole_file import FileWriter, new_file, temporary

LATE, REJECTED = SIDES = "_late", "_rejected"
"""The folders of the side outputs, inside a batch that is staged and beside those published."""


@dataclass(frozen=True)
class FilePartWriter:
    """Writes parts of one batch into a folder; picklable, so that tasks can do it side by side.

    The folder is absolute, because tasks work elsewhere; messages call it `where`. It is that of
    one run, and every write is a file of its own there, which begins with `attempt`; so nobody
    writes over what another has written. The folder is not made here: where it is gone, the run
    has ended. A part costs an fsync, and none for its name: `Staging.seal` sees to that.
    """

    folder: str
    attempt: str
    format: str
    where: str

    def write(self, part: Part, rows: pa.Table) -> Receipt:
        name = part_name(part, self.format)
        path = temporary(f"{self.folder}/{self.attempt}-{os.path.basename(name)}")
        try:
            with new_file(path) as file:
                out = FileWriter(file)
                WRITERS[self.format](rows, out)
        except (OSError, pa.ArrowException) as error:
            raise unwritten(self.where, error) from error
        found = {FILE: os.path.basename(path)}
        return Receipt(name, rows.num_rows, out.bytes, out.checksum, found)


def unwritten(where: str, error: OSError | pa.ArrowException) -> SinkError:
    """Say that a batch could not be staged."""
    return SinkError(
        where,
        "the batch must be written before it is committed",
        getattr(error, "strerror", None) or str(error),
        "Nothing of it was committed: make room or fix the folder, then run again.",
    )


def part_name(part: Part, format: str) -> str:
    """The name of a part below the folder of its batch."""
    stem = f"part-{part.number:05d}"
    if part.side == "late":
        stem = f"{LATE}/{_file_name(part.stream)}"
    if part.side == "rejected":
        stem = f"{REJECTED}/rejected"
    return f"{stem}.{format}"


def _file_name(stream: str) -> str:
    """A stream's name where it may stand in a path; plain names stay as they are."""
    return re.sub(r"[/\\\0%]|^[._]", lambda m: f"%{ord(m[0]):02X}", stream)


def _write_parquet(table: pa.Table, out: Any) -> None:
    # A dictionary of floats costs half of the time of writing and saves nothing.
    repeating = [f.name for f in table.schema if not pa.types.is_floating(f.type)]
    pyarrow.parquet.write_table(table, out, compression="zstd", use_dictionary=repeating)


WRITERS: dict[str, Callable[[pa.Table, Any], None]] = {
    "parquet": _write_parquet,
    "csv": write_csv,
    "json": write_json,
}
"""What writes a table into an open file, by format."""
