"""Reads what a query has published in a folder: whole batches, in the output order.

A batch that is in its place is committed, and never changes. So a reader that remembers the newest
batch it has read gets each row once.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet

from tidegate.batch import BatchId
from tidegate.errors import SourceError
from tidegate.remote.reason import reason
from tidegate.schema import type_name
from tidegate.sink.folder.batch_ledger import (
    LEDGER,
    batch_folder,
    batch_numbers,
    ledger_columns,
    ledger_receipts,
)
from tidegate.sink.folder.text_rows import TEXTS, lossy_column, read_text
from tidegate.sink.folder.verify import sink_at

if TYPE_CHECKING:
    from tidegate.sink.folder.files import FileSink
    from tidegate.sink.folder.remote import RemoteSink

NONE = -1
"""Before the first batch."""

PARQUET_ONLY = "must have Parquet files"
"""What is required of a folder whose files are of another format."""

UNREADABLE = "must have rows that can be read back from its files"
"""What is required of a folder whose files do not hold all that was written."""

DAMAGED_PART = "must be as it was written"
"""What is required of a file that cannot be read."""

_DAMAGED = "`tidegate verify CHECKPOINT` says which files have changed. Restore it from a copy."
_RECORDED = "Give its CHECKPOINT, which has recorded the digest; `tidegate verify` checks it."
PARQUET = ("parquet",)
ALL_FORMATS = (*PARQUET, *TEXTS)

_PART = re.compile(r"part-\d+\.(\w+)")
_READ_ROWS = 65_536


def damaged_part(name: str, error: Exception) -> SourceError:
    """What to say of a file that cannot be read."""
    return SourceError(name, DAMAGED_PART, reason(error), _DAMAGED)


@dataclass(frozen=True)
class PublishedPart:
    """One file of a batch. `first_row` is the position of its first row within the batch."""

    batch: int
    name: str
    first_row: int
    bytes: int


class Published:
    """The batches of one output. Each call lists the folder, so its cost grows with the batches."""

    def __init__(self, uri: str, formats: Collection[str] = PARQUET) -> None:
        """Files of formats that are not asked for are a SourceError."""
        self._uri = uri
        self._formats = formats
        self._sink: FileSink | RemoteSink = sink_at(uri)
        self._columns: tuple[int, pa.Schema] | None = None
        """Those of the batch that was read last, where its files do not tell them."""

    def newest(self) -> int:
        """The newest batch of which all parts are there; `NONE` where there is none."""
        found = batch_numbers(self._names(""))
        while found and not self._is_whole(found[-1]):
            found.pop()
        return found[-1] if found else NONE

    def parts(self, after: int, upto: int, *, skip_missing: bool) -> list[PublishedPart]:
        """The parts of the batches after one and up to another, in order.

        A batch that was published and is gone is a SourceError, unless `skip_missing`.
        """
        there = {batch for batch in batch_numbers(self._names("")) if after < batch <= upto}
        had = {batch for batch in batch_numbers(self._names(LEDGER)) if after < batch <= upto}
        found: list[PublishedPart] = []
        for batch in sorted(there | had):
            parts = self._parts_of(batch)
            gone = self._gone(batch, parts)
            if gone is None:
                found += parts
            elif not skip_missing:
                raise SourceError(
                    f"{self._uri}/{batch_folder(batch)}",
                    "a batch that was published must be there to be read",
                    gone,
                    "Put it back, or leave out what is gone with the option missing=skip.",
                )
        return found

    def schema(self) -> pa.Schema | None:
        """The columns of the newest rows; None before there are any."""
        for batch in reversed(batch_numbers(self._names(""))):
            parts = self._parts_of(batch)
            if parts and self._gone(batch, parts) is None:
                return pyarrow.parquet.read_schema(self._opened(parts[0]))
        return None

    def read(self, part: PublishedPart) -> Iterator[pa.RecordBatch]:
        """The rows of a part, at most `_READ_ROWS` at a time."""
        format = part.name.rpartition(".")[2]
        columns = self._columns_of(part.batch, format) if format in TEXTS else None
        try:
            if columns is not None:
                with self._opened(part) as file:
                    yield from read_text(file.read(), format, columns)
                return
            with pyarrow.parquet.ParquetFile(self._opened(part)) as file:
                yield from file.iter_batches(_READ_ROWS)
        except (OSError, pa.ArrowException) as error:
            raise self._damaged(part, error) from error

    def _columns_of(self, batch: int, format: str) -> pa.Schema:
        """The columns of a batch of texts; a SourceError where its rows cannot be read back."""
        if self._columns is not None and self._columns[0] == batch:
            return self._columns[1]
        columns = self._recorded_columns(batch)
        if columns is None:
            got = f"{format} without a ledger that has its types: lost, or of an earlier version"
            raise SourceError(self._uri, UNREADABLE, got, _RECORDED)
        lossy = lossy_column(columns)
        if lossy is not None:
            name = type_name(lossy.type)
            got = (
                f"column {lossy.name}, a {name}: of values with one key {format} has only the last"
            )
            raise SourceError(self._uri, UNREADABLE, got, _RECORDED)
        self._columns = batch, columns
        return columns

    def _recorded_columns(self, batch: int) -> pa.Schema | None:
        """The columns by the ledger of a batch; where it was lost, by that of one near it."""
        found = self._ledger_columns(batch)
        if found is not None:
            return found
        ledgers = sorted(
            batch_numbers(self._names(LEDGER)), key=lambda b: (b > batch, abs(b - batch))
        )
        return next((c for b in ledgers if (c := self._ledger_columns(b)) is not None), None)

    def _ledger_columns(self, batch: int) -> pa.Schema | None:
        with suppress(FileNotFoundError):
            return ledger_columns(self._sink.ledger(BatchId(batch)))
        return None

    def _damaged(self, part: PublishedPart, error: Exception) -> SourceError:
        return damaged_part(f"{self._uri}/{batch_folder(part.batch)}/{part.name}", error)

    def _names(self, folder: str) -> Sequence[str]:
        try:
            return self._sink.batch_names(folder)
        except OSError as error:
            raise SourceError(self._uri, "results must be readable", reason(error)) from error

    def _parts_of(self, batch: int) -> list[PublishedPart]:
        """The parts that the ledger lists. Where it was lost, those whose files are there."""
        try:
            receipts = ledger_receipts(self._sink.ledger(BatchId(batch)))
        except FileNotFoundError:
            receipts = None
        if receipts is None:
            return self._parts_there(batch)
        parts, rows = [], 0
        for receipt in (r for r in receipts if "/" not in r.name):
            name, size = self._of_format(batch, receipt.name), receipt.bytes or 0
            parts.append(PublishedPart(batch, name, rows, size))
            rows += receipt.rows
        return parts

    def _parts_there(self, batch: int) -> list[PublishedPart]:
        parts, rows = [], 0
        for name in self._names(batch_folder(batch)):
            part = PublishedPart(batch, self._of_format(batch, name), rows, 0)
            with self._opened(part) as file:
                parts.append(replace(part, bytes=file.size()))
                if name.endswith(PARQUET):
                    try:
                        rows += pyarrow.parquet.read_metadata(file).num_rows
                    except (OSError, pa.ArrowException) as error:
                        raise self._damaged(part, error) from error
        return parts

    def _gone(self, batch: int, parts: Sequence[PublishedPart]) -> str | None:
        """The first part that is missing, in words; None where all are there."""
        if not parts:
            return None
        there = self._names(batch_folder(batch))
        return next((f"no {p.name} there" for p in parts if p.name not in there), None)

    def _is_whole(self, batch: int) -> bool:
        """Whether all parts are there: on an object store they appear one after the other."""
        return (
            not self._names(batch_folder(batch)) or self._gone(batch, self._parts_of(batch)) is None
        )

    def _of_format(self, batch: int, name: str) -> str:
        found = _PART.fullmatch(name)
        if found is None or found[1] not in self._formats:
            raise SourceError(
                f"{self._uri}/{batch_folder(batch)}",
                PARQUET_ONLY,
                name,
                "Of CSV and JSON Spark must be told the columns: "
                "spark.read.schema(...).csv(path), and readStream likewise.",
            )
        return name

    def _opened(self, part: PublishedPart) -> pa.NativeFile:
        name = f"{batch_folder(part.batch)}/{part.name}"
        try:
            return self._sink.part(name)
        except OSError as error:
            raise SourceError(f"{self._uri}/{name}", "must be readable", reason(error)) from error
