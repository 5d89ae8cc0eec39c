"""What is stored of an instance's buckets, between mapped segments and the objects at work.

Layers are searched where they lie: an entry costs a binary search in the larger layers of its
bucket, newest first, and nothing is decoded but what is asked for.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
import pyarrow as pa

from tidegate.batch import MAX_US
from tidegate.operate.layered_state import HIDES
from tidegate.operate.process.entry import StateRow
from tidegate.operate.process.layer import EntryColumns, Layer, LayerPart, StoredEntry

_FEW_ROWS = 16
"""So many rows of a bucket are looked through rather than searched, whatever comes."""


class BucketRows(Protocol):
    """What is stored of one bucket, for the object that is at work."""

    head: bytes

    def find(self, entry: int, name: bytes) -> Sequence[StoredEntry]:
        """The row of a name; where there is none, all rows of its number that count.

        An equal key of another type has another name and the same number.
        """

    def load(self, prefix: bytes) -> EntryColumns:
        """All entries whose names begin so, in the order of their numbers; costs O(bucket)."""


class BucketStates(Protocol):
    """What is stored of the buckets of one instance, as one batch goes on with it."""

    def due(self, frontier_us: int) -> list[int]:
        """The buckets that have a timer before a frontier."""

    def bucket(self, bucket: int, expected: int) -> BucketRows | None:
        """What is stored of a bucket that so many entries may be asked for; None if nothing."""

    def changed(self, bucket: int, rows: Sequence[StateRow]) -> None:
        """What the batch will write of a bucket; called once it has been read."""


class StoredState:
    """The state of the buckets of one instance: rows of STATE in layers, the oldest first.

    Made for each batch; costs O(buckets * log(rows)) for each layer.
    """

    def __init__(self, layers: Sequence[pa.Table], buckets: Sequence[int]) -> None:
        self._places = {bucket: place for place, bucket in enumerate(buckets)}
        self._layers = [Layer(rows, buckets) for rows in reversed(layers)]
        self.pending_us = np.full(len(buckets), MAX_US, np.int64)
        """The earliest timers, by bucket."""
        self._head_in = np.full(len(buckets), -1, np.int64)
        """By bucket, in which layer its newest head is, counted from the newest; -1 for none."""
        for number, layer in enumerate(self._layers):
            fresh = layer.has_head & (self._head_in < 0)
            self._head_in[fresh] = number
            self.pending_us[fresh] = layer.pending_us(fresh)

    def has(self, bucket: int) -> bool:
        """Whether anything is stored of a bucket."""
        return bool(self._head_in[self._places[bucket]] >= 0)

    def due(self, frontier_us: int) -> list[int]:
        due = np.flatnonzero(self.pending_us < frontier_us).tolist()
        buckets = list(self._places)
        return [buckets[place] for place in due]

    def bucket(self, bucket: int, expected: int) -> StoredBucket | None:
        place = self._places[bucket]
        head_in = int(self._head_in[place])
        if head_in < 0:
            return None
        head = self._layers[head_in]
        spans = [(layer, *layer.spans[place]) for layer in self._layers]
        parts = [LayerPart(layer, low, high) for layer, low, high in spans if low < high]
        return StoredBucket(head.values[head.spans[place][0]], parts, expected)

    def changed(self, bucket: int, rows: Sequence[StateRow]) -> None:
        """Nothing is kept for the next batch."""


class StoredBucket:
    """One bucket's rows in its layers, the newest first."""

    def __init__(self, head: bytes, parts: Sequence[LayerPart], expected: int) -> None:
        self.head = head
        self._parts = parts
        few, rest = 0, max(expected, _FEW_ROWS)
        while few < len(parts) and (rest := rest - parts[few].rows) >= 0:
            few += 1
        self._few, self._many = parts[:few], parts[few:]

    @cached_property
    def rows(self) -> int:
        """How many rows there are, also those that do not count any more."""
        return sum(part.rows for part in self._parts)

    @property
    def nbytes(self) -> int:
        """What they take up, about."""
        return sum(part.nbytes for part in self._parts)

    def find(self, entry: int, name: bytes) -> list[StoredEntry]:
        recent = self._recent.get(entry)
        if recent is not None:
            part, place = recent
            return part.named(place, name) or self._search(entry, name)
        for part in self._many:
            entries, high = part.layer.entries, part.high
            place = bisect_left(entries, entry, part.low, high)
            if place < high and entries[place] == entry:
                return part.named(place, name) or self._search(entry, name)
            if entries[high - 1] >= HIDES and part.hides(entry):
                return self._search(entry, name)
        return []

    def load(self, prefix: bytes) -> EntryColumns:
        found, newer = EntryColumns([], [], [], []), set[bytes]()
        for part in self._parts:
            columns = part.columns()
            names, entries = columns.names, columns.entries
            mine = [i for i, n in enumerate(names) if n.startswith(prefix) and n not in newer]
            newer.update(names[i] for i in mine)
            there = [i for i in mine if entries[i] < HIDES]
            found.extend(columns.chosen(there))
        return found.chosen(sorted(range(len(found.numbers)), key=found.numbers.__getitem__))

    @cached_property
    def _recent(self) -> dict[int, tuple[LayerPart, int]]:
        """The newest rows by their numbers, from layers that have few for what will be asked."""
        recent: dict[int, tuple[LayerPart, int]] = {}
        for part in self._few:
            for place, entry in enumerate(part.entries(), part.low):
                recent.setdefault(entry & ~HIDES, (part, place))
        return recent

    def _search(self, entry: int, name: bytes) -> list[StoredEntry]:
        """The same where the newest row of the number has another name, or hides older ones."""
        found: dict[bytes, StoredEntry | None] = {}
        for part in self._parts:
            for place in part.search(entry):
                row = part.row(place)
                found.setdefault(row.name, None if row.entry & HIDES else row)
            if name in found:
                break
        exact = found.get(name)
        return [exact] if exact is not None else [row for row in found.values() if row is not None]
