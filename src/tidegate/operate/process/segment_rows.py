"""Finds the rows of buckets in mapped segments.

An entry costs a binary search in each layer of its bucket, newest first. The search works on the
mapped files, and only the entry that was asked for is copied.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tidegate.batch import MAX_US, ints
from tidegate.operate.kernels.order import Ints, Mask, flat
from tidegate.operate.layered_state import HIDES
from tidegate.operate.process.entry import ENTRY, HEAD
from tidegate.operate.process.key import StoredEntry, entry_of, span_of


class StoredState:
    """The state of one instance's buckets: tables of STATE, the oldest layer first.

    To make it costs O(buckets * log(rows)) for each layer.
    """

    def __init__(self, layers: Sequence[pa.Table], buckets: Sequence[int]) -> None:
        self._places = {bucket: place for place, bucket in enumerate(buckets)}
        self._layers = [_Layer(rows, buckets) for rows in reversed(layers)]
        self.pending_us = np.full(len(buckets), MAX_US, np.int64)
        """The earliest timer of each bucket."""
        self._head_in = np.full(len(buckets), -1, np.int64)
        """The layer with the newest head of each bucket; the newest layer is 0, and -1 is none."""
        for number, layer in enumerate(self._layers):
            fresh = layer.has_head & (self._head_in < 0)
            self._head_in[fresh] = number
            self.pending_us[fresh] = layer.pending_us(fresh)

    def new(self) -> list[int]:
        """The buckets without any stored row."""
        return [bucket for bucket, place in self._places.items() if self._head_in[place] < 0]

    def bucket(self, bucket: int) -> StoredBucket:
        """The stored rows of a bucket that is not new."""
        place = self._places[bucket]
        head = self._layers[self._head_in[place]]
        spans = [(layer, *layer.spans[place]) for layer in self._layers]
        parts = [_Part(layer, low, high) for layer, low, high in spans if low < high]
        return StoredBucket(head.values[head.spans[place][0]], parts)


class StoredBucket:
    """One bucket's rows in its layers, the newest first."""

    def __init__(self, head: bytes, parts: Sequence[_Part]) -> None:
        self.head = head
        self._parts = parts

    def find(self, name: bytes) -> StoredEntry | None:
        """The entry of a name; None where there is none, or where it was removed."""
        entry = entry_of(name)
        for layer, low, high in self._parts:
            place = layer.place(entry, name, low, high)
            if place >= 0:
                return StoredEntry(layer.numbers[place], layer.until_us[place], layer.values[place])
            # Rows that hide sort last, so the last row of the bucket says whether there are any.
            if (
                layer.entries[high - 1] >= HIDES
                and layer.place(entry | HIDES, name, low, high) >= 0
            ):
                return None
        return None

    def load(self, prefix: bytes) -> dict[bytes, StoredEntry]:
        """All entries whose names begin with a prefix; costs O(entries of the state)."""
        found: dict[bytes, StoredEntry | None] = {}
        for layer, low, high in self._parts:
            for hides in (0, HIDES):
                a, b = (bisect_left(layer.entries, n | hides, low, high) for n in span_of(prefix))
                names = layer.names.between(a, b)
                rows = zip(layer.numbers[a:b], layer.until_us[a:b], layer.values.between(a, b))
                for name, row in zip(names, rows):
                    if name.startswith(prefix) and name not in found:
                        found[name] = None if hides else StoredEntry(*row)
        return {name: row for name, row in found.items() if row is not None}


class _Layer:
    """The rows of one segment as memory views, which Python reads without making Arrow scalars."""

    def __init__(self, rows: pa.Table, buckets: Sequence[int]) -> None:
        self._rows = rows
        bucket, entry = ints(rows, "bucket"), ints(rows, ENTRY)
        self.entries = entry.data
        self._starts = np.searchsorted(bucket, buckets, "left")
        ends = np.searchsorted(bucket, buckets, "right")
        self.spans = list(zip(self._starts.tolist(), ends.tolist()))
        """The rows of each of the buckets."""
        some = self._starts < ends
        self.has_head = some.copy()
        self.has_head[some] = entry[self._starts[some]] == HEAD

    def pending_us(self, buckets: Mask) -> Ints:
        """The earliest timers of the heads of these buckets."""
        return ints(self._rows, "pending_us")[self._starts[buckets]]

    def place(self, entry: int, name: bytes, low: int, high: int) -> int:
        """The place of the row of a name between `low` and `high`; -1 if there is none."""
        entries = self.entries
        place = bisect_left(entries, entry, low, high)
        while place < high and entries[place] == entry:
            if self.names[place] == name:
                return place
            place += 1
        return -1

    @cached_property
    def numbers(self) -> memoryview:
        return ints(self._rows, "number").data

    @cached_property
    def until_us(self) -> memoryview:
        return ints(self._rows, "pending_us").data

    @cached_property
    def names(self) -> _ByteColumn:
        return _ByteColumn(self._rows.column("name"))

    @cached_property
    def values(self) -> _ByteColumn:
        return _ByteColumn(self._rows.column("value"))


class _Part(NamedTuple):
    """The rows of one bucket in one layer."""

    layer: _Layer
    low: int
    high: int


class _ByteColumn:
    """A column of bytes; a value is copied only when it is asked for."""

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
        return [bytes(self._data[a:b]) for a, b in pairwise(offsets)]
