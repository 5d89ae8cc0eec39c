"""Text files as sources, between blocks of bytes and rows; the formats are `csv` and `json`."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
import pyarrow as pa

from tidegate import disk
from tidegate.batch import MIN_US
from tidegate.errors import GateError
from tidegate.schema import TIME, event_times
from tidegate.source.block import Block, BlockIndex, Records, read_bytes
from tidegate.source.cache import PIECES
from tidegate.source.event_time import parse_time
from tidegate.source.protocol import Bools, Int64s, Reject, Rows, check_columns

Version = tuple[int, int]
"""Size and modification time of a file that must not change while it is read."""


@dataclass(frozen=True)
class Parsed:
    """One block's rows: `table` holds the readable ones, `places` their places in the block.

    `places` is None where all rows are readable. Rejects carry places, not positions.
    """

    table: pa.Table
    places: Int64s | None
    rejects: tuple[Reject, ...]

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

    Types are normalised, and null where no value was seen. `first` is the text of the first row,
    empty where there is none.
    """

    format: TextFormat
    origin: int
    schema: pa.Schema
    first: bytes


ReadHead = Callable[[bytes, bool, bool, str | None, str], Head | None]
"""A format's look at the first bytes: (bytes, whole file?, final?, time column, where)."""


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

    def read(self, columns: Sequence[str]) -> Rows:
        check_columns(columns, self.schema, self.path)
        pieces = []
        for block in self.blocks:
            parsed = PIECES.get(self._key(block), partial(self._parse, block))
            pieces.append(self._cut(block, parsed, columns))
        asked = pa.schema([self.schema.field(c) for c in columns])
        return Rows.joined(pieces, asked)

    def _key(self, block: Block) -> tuple[object, ...]:
        inode = disk.current().status(self.path).inode if disk.exists(self.path) else 0
        types = tuple(str(f.type) for f in self.schema)
        return (self.path, inode, self.version, block, self.format, *self.schema.names, types)

    def _parse(self, block: Block) -> Parsed:
        data = read_block(self.path, block, self.version)
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
            tuple(
                Reject(r.seq + block.first, r.reason, r.raw)
                for r in parsed.rejects
                if low <= r.seq < high
            ),
        )


class TextSource:
    """A text file on the driver: its blocks are found as far as rows are asked for.

    Without a `version` it grows: the file may get longer and only complete records count, until
    `finish`. Kept are where its blocks lie and the times of the last two that were parsed.
    """

    def __init__(
        self,
        path: str,
        schema: pa.Schema,
        format: TextFormat,
        time: str | None,
        origin: int,
        version: Version | None,
        block_bytes: int,
    ) -> None:
        self.id = path
        self.path = path
        self.schema = schema
        self.grows = version is None
        self._format = format
        self._time = time
        self._size = version[0] if version is not None else disk.current().status(path).bytes
        self._version = version
        self._index = BlockIndex(path, origin, format.split, block_bytes)
        self._times: OrderedDict[int, tuple[Int64s, Bools]] = OrderedDict()

    @property
    def size_bytes(self) -> int:
        """How much of the file counts; of one that grows, as of the last look."""
        return self._size

    def extend(self, rows: int) -> int:
        if self.grows and self._index.rows < rows:
            self._size = self._grown_size()
        while self._index.rows < rows and self._index.grow(self._size, not self.grows):
            pass
        return self._index.rows

    def ended(self) -> bool:
        return not self.grows and self._index.offset >= self._size

    def finish(self) -> None:
        """Take the file as it is now: it ends here, also where its last line is not complete."""
        if self.grows:
            self._size = self._grown_size()
            self.grows = False

    def rows_within(self, size_bytes: int) -> int:
        """How many rows the first bytes held when they were all there was of the file."""
        while self._index.offset < size_bytes and self._index.grow(size_bytes, True):
            pass
        return self._index.rows

    def times(self, start: int, stop: int) -> tuple[Int64s, Bools]:
        parts = []
        for block in self._index.within(start, stop):
            numbers, valid = self._block_times(block)
            low, high = max(start - block.first, 0), min(stop - block.first, block.rows)
            parts.append((numbers[low:high], valid[low:high]))
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return np.empty(0, np.int64), np.empty(0, np.bool_)
        return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])

    def reader(self, start: int, stop: int) -> TextReader:
        blocks = self._index.within(start, stop)
        path = os.path.abspath(self.path)  # a worker may have been started elsewhere
        return TextReader(path, self._version, self._format, self.schema, start, stop, blocks)

    def breaks(self, start: int, stop: int) -> list[int]:
        return [b.first for b in self._index.within(start, stop) if b.first > start]

    def piece_end(self, position: int) -> int:
        """Where the block ends that holds a known position."""
        (block,) = self._index.within(position, position + 1)
        return block.first + block.rows

    def low_us(self, position: int) -> int:
        """Not known: text has no statistics."""
        return MIN_US

    def _block_times(self, block: Block) -> tuple[Int64s, Bools]:
        if block.offset not in self._times:
            assert self._time is not None, f"{self.id} was opened without a time column"
            data = read_block(self.path, block, self._version)
            only_time = pa.schema([self.schema.field(self._time)])
            parsed = self._format.parse(data, block.rows, only_time)
            self._times[block.offset] = spread(parsed, block.rows)
            while len(self._times) > 2:
                self._times.popitem(last=False)
        return self._times[block.offset]

    def _grown_size(self) -> int:
        size = disk.current().status(self.path).bytes if disk.exists(self.path) else 0
        if size < self._size:
            raise GateError(
                self.path,
                "a followed file must only grow",
                f"{size} bytes where {self._size} had been read",
                "Append to it; write to a new file of a followed folder to start anew.",
            )
        return size


def check_not_grown(path: str, size_bytes: int) -> None:
    """Refuse a file that got longer after it was finished; its new rows would be lost."""
    size = disk.current().status(path).bytes if disk.exists(path) else 0
    if size > size_bytes:
        raise GateError(
            path,
            "a followed file must not grow after a later file has appeared",
            f"{size - size_bytes} more bytes",
            "Follow files that grow side by side as sources of their own, "
            "each by its path; a restart reads on.",
        )


def read_block(path: str, block: Block, version: Version | None) -> bytes:
    """The bytes of a block; refuses a file that is not what the driver saw any more."""
    data = read_bytes(path, block.offset, block.length)
    status = disk.current().status(path)
    changed = version is not None and version != (status.bytes, status.modified_ns)
    if changed or len(data) < block.length:
        raise GateError(
            path,
            "a file must not change while it is read",
            f"other content at byte {block.offset}" if not changed else "a newer version of it",
            "Put the file back as it was, or start again from an empty checkpoint.",
        )
    return data


def with_times(table: pa.Table, schema: pa.Schema) -> pa.Table | None:
    """A table whose times are texts, in the types of a schema; None where one is not a time."""
    columns = []
    for field in schema:
        column = table.column(field.name)
        if field.type == TIME:
            text = column.combine_chunks()
            column = parse_time(text)
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
