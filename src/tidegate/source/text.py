"""Text in tasks, between blocks of bytes and rows; the formats are `csv` and `json`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
import pyarrow as pa

from tidegate import disk
from tidegate.connector import Bools, Int64s, Reject, Rows, check_columns
from tidegate.errors import GateError
from tidegate.schema import event_times
from tidegate.source.block import Block, Records, lines_in, read_bytes
from tidegate.source.cache import PIECES
from tidegate.source.mark import digest, status_of
from tidegate.source.reading import Reading
from tidegate.source.unpack import NONE

Version = tuple[int, int]
"""Size and time of change of a file that is not expected to change while it is read."""


@dataclass(frozen=True)
class Fault:
    """A record of a block that cannot be read: its place, the line it begins in, why, its text."""

    place: int
    line: int
    why: str
    raw: str

    @staticmethod
    def at(place: int, why: str, data: bytes, start: int, stop: int) -> Fault:
        """A record that stands at [start, stop) in the bytes of a block."""
        raw = data[start:stop].decode("utf-8", "replace")
        return Fault(place, lines_in(data, start), why, raw)

    def reject(self, block: Block) -> Reject:
        """As the row of a file, told with the line and, where one is to blame, the column."""
        line = block.line + self.line + 1
        mark = "," if self.why.startswith("column ") else ":"
        return Reject(block.first + self.place, f"line {line}{mark} {self.why}", self.raw)


@dataclass(frozen=True)
class Parsed:
    """One block's rows: `table` holds the readable ones, `places` their places in the block.

    `places` is None where all rows are readable.
    """

    table: pa.Table
    places: Int64s | None
    faults: tuple[Fault, ...]

    @property
    def nbytes(self) -> int:
        return int(self.table.nbytes) + (0 if self.places is None else int(self.places.nbytes))


class TextFormat(Protocol):
    """How one text format is read; picklable and hashable."""

    def split(self, data: bytes, final: bool) -> Records: ...

    def parse(self, data: bytes, rows: int, schema: pa.Schema) -> Parsed:
        """The `rows` records of a block in the columns of a normalised schema.

        A row that has no proper value for one of these columns is rejected, the others are read.
        """


@dataclass(frozen=True)
class Head:
    """What the first bytes of a file say: its format, where its rows begin, its columns.

    Types are those that were declared, or normalised ones, null where no value was seen. `first` is
    the text of the first row, empty where there is none; `rows` is how many were seen, and `line`
    how many lines end before them.
    """

    format: TextFormat
    origin: int
    schema: pa.Schema
    first: bytes
    rows: int
    line: int


ReadHead = Callable[[bytes, bool, bool, str | None, str, Reading], Head | None]
"""A format's look at the first bytes: (bytes, whole file?, final?, time column, where, reading)."""


@dataclass(frozen=True)
class TextReader:
    """Positions [start, stop) of a text file, read in a task by byte ranges.

    All columns of a block are parsed and kept, so that whether a row is readable does not depend
    on what a query reads, and consecutive small batches parse a block once.
    """

    path: str
    version: Version | None
    format: TextFormat
    schema: pa.Schema
    start: int
    stop: int
    blocks: tuple[Block, ...]
    packing: str = NONE

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
        return (self.path, inode, self.version, block, self.format, *self.schema.names, types)

    def _parse(self, block: Block) -> Parsed:
        data = read_block(self.path, block, self.version, self.packing)
        return self.format.parse(data, block.rows, self.schema)

    def _cut(self, block: Block, parsed: Parsed, columns: Sequence[str]) -> Rows:
        low = max(self.start - block.first, 0)
        high = min(self.stop - block.first, block.rows)
        if parsed.places is None:
            seq = np.arange(block.first + low, block.first + high, dtype=np.int64)
            return Rows(parsed.table.select(columns).slice(low, high - low), seq)
        first, last = np.searchsorted(parsed.places, (low, high))
        return Rows(
            parsed.table.select(columns).slice(first, last - first),
            parsed.places[first:last] + block.first,
            tuple(fault.reject(block) for fault in parsed.faults if low <= fault.place < high),
        )


def read_block(path: str, block: Block, version: Version | None, packing: str = NONE) -> bytes:
    """The bytes of a block; refuses a file in which they are not what the driver saw any more.

    As long as the file is of this version they are. Without one, or when it has changed, which may
    be all behind the block, their digest tells.
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


def with_texts(
    table: pa.Table, schema: pa.Schema, convert: Callable[[pa.Array, pa.DataType], pa.Array]
) -> pa.Table | None:
    """A table some of whose columns are texts yet, in the types of a schema.

    None where a text is no value of its type.
    """
    columns = []
    for field in schema:
        column = table.column(field.name)
        if column.type != field.type:
            text = column.combine_chunks()
            column = convert(text, field.type)
            if column.null_count != text.null_count:
                return None
        columns.append(column)
    return pa.table(columns, schema=schema)


def spread(parsed: Parsed, rows: int) -> tuple[Int64s, Bools]:
    """Times of all places of a block, invalid where the row was rejected."""
    numbers, valid = event_times(parsed.table.column(0))
    if parsed.places is None:
        return numbers, valid
    all_numbers, all_valid = np.zeros(rows, np.int64), np.zeros(rows, np.bool_)
    all_numbers[parsed.places], all_valid[parsed.places] = numbers, valid
    return all_numbers, all_valid
