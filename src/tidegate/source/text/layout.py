"""Parses blocks of text into rows by the layout of a file, on the driver and in tasks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tidegate.connector import Bools, Int64s, Reader, Reject, Rows, check_columns
from tidegate.errors import GateError
from tidegate.schema import event_times
from tidegate.source.format import Version
from tidegate.source.mark import digest, status_of
from tidegate.source.piece import PIECES
from tidegate.source.text.block import Block, Records, lines_in, read_bytes
from tidegate.source.text.compression import NONE
from tidegate.source.text.dialect import Dialect
from tidegate.source.text.encoding import split_encoded, to_utf8
from tidegate.storage import disk


@dataclass(frozen=True)
class Fault:
    """A record of a block that cannot be read: its place, its first line, why, and its text."""

    place: int
    line: int
    why: str
    raw: str

    @staticmethod
    def at(place: int, why: str, data: bytes, start: int, stop: int) -> Fault:
        """The fault of the record at [start, stop) in the bytes of a block."""
        raw = data[start:stop].decode("utf-8", "replace")
        return Fault(place, lines_in(data, start), why, raw)

    def reject(self, block: Block) -> Reject:
        """The rejected row, with its line in the file and, if one is to blame, the column."""
        line = block.line + self.line + 1
        mark = "," if self.why.startswith("column ") else ":"
        return Reject(block.first + self.place, f"line {line}{mark} {self.why}", self.raw)


@dataclass(frozen=True)
class ParsedBlock:
    """One block's rows: `table` holds the readable ones, `places` their places in the block.

    `places` is None where all rows are readable.
    """

    table: pa.Table
    places: Int64s | None
    faults: tuple[Fault, ...]

    @property
    def nbytes(self) -> int:
        return int(self.table.nbytes) + (0 if self.places is None else int(self.places.nbytes))

    def times(self, rows: int) -> tuple[Int64s, Bools]:
        """The times of all `rows` places, from the only column; rejected rows have none."""
        found = event_times(self.table.column(0))
        return found if self.places is None else by_place(*found, places=self.places, count=rows)


def by_place(times: Int64s, valid: Bools, *, places: Int64s, count: int) -> tuple[Int64s, Bools]:
    """Spread the times of rows over `count` places; a place without a row has no valid time."""
    if len(times) == count:
        return times, valid
    all_times, all_valid = np.zeros(count, np.int64), np.zeros(count, np.bool_)
    all_times[places], all_valid[places] = times, valid
    return all_times, all_valid


class RawCells(NamedTuple):
    """The columns of all whole records, the places of these, and why others are not whole."""

    columns: Sequence[pa.Array]
    places: Int64s
    reasons: dict[int, str]


class TextLayout(ABC):
    """How the rows of a file are laid out; picklable and hashable. Files with one header share it.

    A format implements three methods for whole blocks in UTF-8: `records`, `read_regular` and
    `read_cells`; and `convert` for one column that `read_cells` has found.
    """

    dialect: Dialect

    @abstractmethod
    def records(self, data: bytes, final: bool) -> Records:
        """Find the records of a text in UTF-8."""

    @abstractmethod
    def read_regular(self, data: bytes, rows: int, schema: pa.Schema) -> pa.Table | None:
        """Parse a block without faults, the fast way; some columns may still be texts.

        None where the block has a fault, or cannot be read this way.
        """

    @abstractmethod
    def read_cells(self, data: bytes, records: Records, schema: pa.Schema) -> RawCells:
        """Parse a block with faults, the slow way: texts where a value may not fit its type."""

    @abstractmethod
    def convert(self, field: pa.Field, cells: pa.Array) -> tuple[pa.Array, dict[int, str]]:
        """A column in its type; by index, why cells are not values of it."""

    def split(self, data: bytes, final: bool) -> Records:
        """Find the records in bytes of the file, in its own encoding."""
        return split_encoded(data, self.dialect.codec, final, self.records)

    def parse(self, data: bytes, rows: int, schema: pa.Schema) -> ParsedBlock:
        """The `rows` records of a block in the columns of a normalised schema.

        A row that has no proper value for one of these columns is rejected, the others are read.
        """
        data = to_utf8(data, self.dialect.codec)
        table = self.read_regular(data, rows, schema)
        fitted = None if table is None else self._fitted(table, schema)
        return (
            self._parse_with_care(data, schema) if fitted is None else ParsedBlock(fitted, None, ())
        )

    def _fitted(self, table: pa.Table, schema: pa.Schema) -> pa.Table | None:
        """The table in the types of a schema; None where a text is not a value of its type."""
        columns = []
        for field in schema:
            column = table.column(field.name)
            if column.type != field.type:
                text = column.combine_chunks()
                column = self.dialect.convert(text, field.type)
                if column.null_count != text.null_count:
                    return None
            columns.append(column)
        return pa.table(columns, schema=schema)

    def _parse_with_care(self, data: bytes, schema: pa.Schema) -> ParsedBlock:
        records = self.records(data, True)
        cells, places, reasons = self.read_cells(data, records, schema)
        columns = []
        for field, found in zip(schema, cells, strict=True):
            values, wrong = self.convert(field, found)
            for i, why in wrong.items():
                reasons.setdefault(int(places[i]), f"column {field.name}: {why}")
            columns.append(values)
        readable = ~np.isin(places, np.array(list(reasons), np.int64))
        table = pa.table(columns, schema=schema).filter(pa.array(readable))
        faults = tuple(
            Fault.at(p, why, data, int(records.starts[p]), int(records.stops[p]))
            for p, why in sorted(reasons.items())
        )
        return ParsedBlock(table, places[readable], faults)


def misread(texts: pa.Array, values: pa.Array) -> Iterable[int]:
    """The indexes at which a text gave no value."""
    wrong = texts.is_valid().to_numpy(False) & values.is_null().to_numpy(False)
    return (int(i) for i in np.flatnonzero(wrong))


@dataclass(frozen=True)
class TextReader(Reader):
    """Reads positions [start, stop) of a text file in a task, by byte ranges.

    It parses and caches all columns of a block. So it does not depend on the query whether a row is
    readable, and consecutive small batches parse a block once.
    """

    path: str
    version: Version | None
    layout: TextLayout
    schema: pa.Schema
    start: int
    stop: int
    blocks: tuple[Block, ...]
    packing: str = NONE

    @property
    def input_file(self) -> str:
        return self.path

    def read(self, columns: Sequence[str]) -> Rows:
        check_columns(columns, self.schema, self.path)
        pieces = []
        for block in self.blocks:
            parsed = PIECES.get(self._key(block), partial(self._parse, block))
            pieces.append(self._cut(block, parsed, columns))
        asked = pa.schema([self.schema.field(c) for c in columns])
        return Rows.joined(pieces, asked)

    def _key(self, block: Block) -> tuple[object, ...]:
        status = None if disk.is_remote(self.path) else status_of(self.path)
        inode = 0 if status is None else status.inode
        types = tuple(str(f.type) for f in self.schema)
        return (self.path, inode, self.version, block, self.layout, *self.schema.names, types)

    def _parse(self, block: Block) -> ParsedBlock:
        data = read_block(self.path, block, self.version, self.packing)
        return self.layout.parse(data, block.rows, self.schema)

    def _cut(self, block: Block, parsed: ParsedBlock, columns: Sequence[str]) -> Rows:
        low = max(self.start - block.first, 0)
        high = min(self.stop - block.first, block.rows)
        table = parsed.table.select(columns)
        if parsed.places is None:
            cut = table.slice(low, high - low)
            return Rows.of_range(cut, block.first + low, block.first + high)
        first, last = np.searchsorted(parsed.places, (low, high))
        return Rows(
            table.slice(first, last - first),
            parsed.places[first:last] + block.first,
            tuple(fault.reject(block) for fault in parsed.faults if low <= fault.place < high),
        )


def read_block(path: str, block: Block, version: Version | None, packing: str = NONE) -> bytes:
    """The bytes of a block; refuses a file in which they are no longer those that the driver saw.

    While the file has this version they are the same. Without a version, or once the file has
    changed, perhaps only behind the block, the digest decides.
    """
    data = read_bytes(path, block.offset, block.length, packing)
    status = status_of(path)
    same = version is not None and status is not None and status[:2] == version
    if not same and (len(data) < block.length or digest(data, block.before) != block.digest):
        raise GateError(
            path,
            "a file must not change while it is read",
            f"another content at byte {block.offset}",
            "Put the file back as it was and start again, or start from an empty checkpoint.",
        )
    return data
