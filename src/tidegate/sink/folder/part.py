"""Writes one file of a batch's results into the staging folder, and gives its receipt."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

import pyarrow as pa

from tidegate.errors import SinkError
from tidegate.sink.folder.form import Form
from tidegate.sink.folder.staging import FILE
from tidegate.sink.receipt import Part, Receipt
from tidegate.storage.whole_file import FileWriter, new_file, temporary

LATE, REJECTED = SIDES = "_late", "_rejected"
"""The folders of the side outputs, inside a batch that is staged and beside those published."""


@dataclass(frozen=True)
class FilePartWriter:
    """Writes parts of one batch into a folder; picklable, so that tasks can do it side by side.

    The path of the folder is absolute, because tasks have other working folders; messages call it
    `where`. The folder belongs to one run, and every write creates a new file, whose name begins
    with `attempt`: so no writer overwrites another's part. `write` does not make the folder: where
    it is gone, the run has ended. A part costs an fsync; `Staging.seal` syncs the names.
    """

    folder: str
    attempt: str
    form: Form
    where: str

    def write(self, part: Part, rows: pa.Table) -> Receipt:
        name = part_name(part, self.form.format)
        if not part.side:
            self.form.check(rows, self.where)
        path = temporary(f"{self.folder}/{self.attempt}-{os.path.basename(name)}")
        try:
            with new_file(path) as file:
                out = FileWriter(file)
                self.form.write(rows, out)
        except (OSError, pa.ArrowException) as error:
            raise unwritten(self.where, error) from error
        found = {FILE: os.path.basename(path)}
        return Receipt(name, rows.num_rows, out.bytes, out.checksum, found)


def unwritten(where: str, error: OSError | pa.ArrowException) -> SinkError:
    """The error of a batch that could not be staged."""
    return SinkError(
        where,
        "the batch must be written before it is committed",
        getattr(error, "strerror", None) or str(error),
        "Nothing of it was committed: make room or fix the folder, then run again.",
    )


def side_folder(receipt: Receipt) -> str | None:
    """The folder of the side output that a part belongs to; None for rows of the results."""
    side = os.path.dirname(receipt.name)
    return side if side in SIDES else None


def part_name(part: Part, format: str) -> str:
    """The name of a part below the folder of its batch."""
    stem = f"part-{part.number:05d}"
    if part.side == "late":
        stem = f"{LATE}/{_file_name(part.stream)}"
    if part.side == "rejected":
        stem = f"{REJECTED}/rejected"
    return f"{stem}.{format}"


def _file_name(stream: str) -> str:
    """A stream's name as a file name: plain names stay, other characters become %XX."""
    return re.sub(r"[/\\\0%]|^[._]", lambda m: f"%{ord(m[0]):02X}", stream)
