"""The rows of one segment as plain memory, between a memory map and who looks for an entry."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.batch import ints
from tidegate.operate.kernels.order import flat
from tidegate.operate.layered_state import HIDES
from tidegate.operate.process.entry import ENTRY, HEAD

Ints = npt.NDArray[np.int64]


class StoredEntry(NamedTuple):
    """A row of an entry as it is stored."""

    entry: int
    number: int
    name: bytes
    data: bytes


class EntryColumns(NamedTuple):
    """Many of them, column by column."""

    entries: list[int]
    numbers: list[int]
    names: list[bytes]
    data: list[bytes]

    def row(self, place: int) -> StoredEntry:
        return StoredEntry(*(column[place] for column in self))  # type: ignore[arg-type]

    def chosen(self, places: Sequence[int]) -> EntryColumns:
        """The rows in these places, in that order."""
        return EntryColumns(*([column[i] for i in places] for column in self))  # type: ignore[arg-type]

    def extend(self, more: EntryColumns) -> None:
        self.entries.extend(more.entries)
        self.numbers.extend(more.numbers)
        self.names.extend(more.names)
        self.data.extend(more.data)


class Layer:
    """The rows of one segment, as plain memory."""

    def __init__(self, rows: pa.Table, buckets: Sequence[int]) -> None:
        self.rows = rows
        bucket, self._entry = ints(rows, "bucket"), ints(rows, ENTRY)
        self.entries = self._entry.data
        self._starts = np.searchsorted(bucket, buckets, "left")
        ends = np.searchsorted(bucket, buckets, "right")
        self.spans = list(zip(self._starts.tolist(), ends.tolist()))
        """The rows of each of the buckets."""
        some = self._starts < ends
        self.has_head = some.copy()
        self.has_head[some] = self._entry[self._starts[some]] == HEAD

    def pending_us(self, buckets: npt.NDArray[np.bool_]) -> Ints:
        """The earliest timers of the heads of these buckets."""
        return ints(self.rows, "pending_us")[self._starts[buckets]]

    @cached_property
    def numbers(self) -> memoryview:
        return ints(self.rows, "number").data

    @cached_property
    def names(self) -> ByteColumn:
        return ByteColumn(self.rows.column("name"))

    @cached_property
    def values(self) -> ByteColumn:
        return ByteColumn(self.rows.column("value"))


class LayerPart(NamedTuple):
    """The rows of one bucket in one layer."""

    layer: Layer
    low: int
    high: int

    def entries(self) -> list[int]:
        return self.layer.entries[self.low : self.high].tolist()

    @property
    def rows(self) -> int:
        return self.high - self.low

    @property
    def nbytes(self) -> int:
        """What the rows take up, if they are like the others of the layer."""
        return int(self.layer.rows.nbytes) * self.rows // len(self.layer.entries)

    def columns(self) -> EntryColumns:
        """All rows."""
        layer, low, high = self.layer, self.low, self.high
        numbers = layer.numbers[low:high].tolist()
        names, data = (column.between(low, high) for column in (layer.names, layer.values))
        return EntryColumns(self.entries(), numbers, names, data)

    def row(self, place: int) -> StoredEntry:
        layer = self.layer
        entry, number = layer.entries[place], layer.numbers[place]
        return StoredEntry(entry, number, layer.names[place], layer.values[place])

    def named(self, place: int, name: bytes) -> list[StoredEntry]:
        """A row, if that is its name and it does not hide others."""
        layer = self.layer
        entry = layer.entries[place]
        if entry & HIDES or layer.names[place] != name:
            return []
        return [StoredEntry(entry, layer.numbers[place], name, layer.values[place])]

    def hides(self, entry: int) -> bool:
        """Whether a row hides older ones of a number."""
        entries, wanted = self.layer.entries, entry | HIDES
        place = bisect_left(entries, wanted, self.low, self.high)
        return place < self.high and entries[place] == wanted

    def search(self, entry: int) -> Iterator[int]:
        """Where the rows of a number are; those that hide come last, for they sort last."""
        entries, low, high = self.layer.entries, self.low, self.high
        hides = entries[high - 1] >= HIDES
        for wanted in (entry, entry | HIDES) if hides else (entry,):
            low = bisect_left(entries, wanted, low, high)
            while low < high and entries[low] == wanted:
                yield low
                low += 1


class ByteColumn:
    """The values of a column of bytes, each copied when it is asked for."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        array = flat(column)
        _, offsets, data = array.buffers()
        self._offsets = np.frombuffer(offsets, np.int64)[array.offset :].data
        self._data = memoryview(data if data is not None else b"")

    def __getitem__(self, place: int) -> bytes:
        return bytes(self._data[self._offsets[place] : self._offsets[place + 1]])

    def between(self, low: int, high: int) -> list[bytes]:
        """The values from one place up to before another."""
        offsets = self._offsets[low : high + 1].tolist()
        start = offsets[0]
        copied = bytes(self._data[start : offsets[-1]])
        return [copied[a - start : b - start] for a, b in pairwise(offsets)]
