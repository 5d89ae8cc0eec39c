"""Holds records of a range of offsets, and caches those that a process may read again."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.connector import Bools, Int64s
from tidegate.memory import MEMORY
from tidegate.schema import event_times
from tidegate.source.message.value import ValueLayout, Values
from tidegate.source.text.layout import by_place

_OBJECT_BYTES = 100
"""Memory of a record beside its value and key."""

_RANGE_BYTES = 2_000
"""Memory of a range beside its records."""

_RECORDS = MEMORY.cache(0.0, lambda records: int(records.nbytes))
"""What was fetched last in this process; other caches come first where memory is short."""


@dataclass(frozen=True)
class RecordRange:
    """The records of [first, stop). Transaction markers and compaction leave offsets without one.

    All lists are parallel to `offsets`; keys and headers are empty where nobody asked for them.
    """

    first: int
    stop: int
    offsets: Int64s
    timestamps: Int64s
    """In milliseconds, as the broker gives them."""
    values: Values
    keys: Sequence[bytes | None]
    headers: Sequence[Sequence[tuple[str, bytes | None]] | None]

    @staticmethod
    def of(messages: Sequence[Any], first: int, stop: int, whole: bool) -> RecordRange:
        """From messages of confluent_kafka: of one partition, in order."""
        return RecordRange(
            first,
            stop,
            np.array([m.offset() for m in messages], np.int64),
            np.array([m.timestamp()[1] for m in messages], np.int64),
            [m.value() for m in messages],
            [m.key() for m in messages] if whole else (),
            [m.headers() for m in messages] if whole else (),
        )

    @cached_property
    def nbytes(self) -> int:
        bodies = sum(map(len, filter(None, self.values))) + sum(map(len, filter(None, self.keys)))
        return bodies + _OBJECT_BYTES * len(self.values) + _RANGE_BYTES

    def cut(self, first: int, stop: int) -> RecordRange:
        """The records of a range within this one."""
        low, high = np.searchsorted(self.offsets, (first, stop))
        return RecordRange(
            first,
            stop,
            self.offsets[low:high],
            self.timestamps[low:high],
            self.values[low:high],
            self.keys[low:high],
            self.headers[low:high],
        )

    @staticmethod
    def joined(parts: Sequence[RecordRange]) -> RecordRange:
        """Join ranges that follow each other without a gap."""
        if len(parts) == 1:
            return parts[0]
        return RecordRange(
            parts[0].first,
            parts[-1].stop,
            np.concatenate([p.offsets for p in parts]),
            np.concatenate([p.timestamps for p in parts]),
            [v for p in parts for v in p.values],
            [k for p in parts for k in p.keys],
            [h for p in parts for h in p.headers],
        )

    def times(self, layout: ValueLayout, time: pa.Field) -> tuple[Int64s, Bools]:
        """Event times of all positions of the range, from a column of the values."""
        parsed = layout.parse(self.values, pa.schema([time]))
        return self._placed(*parsed.times(len(self.values)))

    def own_times(self) -> tuple[Int64s, Bools]:
        """As `times`, from the timestamps of the records."""
        return self._placed(*event_times(timestamp_column(self.timestamps)))

    def _placed(self, times: Int64s, valid: Bools) -> tuple[Int64s, Bools]:
        places, count = self.offsets - self.first, self.stop - self.first
        return by_place(times, valid, places=places, count=count)


def timestamp_column(milliseconds: Int64s) -> pa.Array:
    """The timestamps as a column. The broker gives -1 for a record without one: NULL."""
    return pa.array(milliseconds * 1000, pa.timestamp("us", "UTC"), mask=milliseconds < 0)


class RecordShelf:
    """The records of one partition that this process holds; thread-safe.

    They are in a cache (`memory`), which may drop them at any time; then they are fetched again.
    """

    def __init__(self, key: tuple[object, ...]) -> None:
        self._key = key
        self._ranges: list[tuple[int, int]] = []
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """How many ranges it holds."""
        return sum((*self._key, *range_) in _RECORDS for range_ in self._ranges)

    def put(self, records: RecordRange) -> None:
        if records.stop <= records.first:
            return
        with self._lock:
            _RECORDS.put((*self._key, records.first, records.stop), records)
            at = bisect_left(self._ranges, (records.first, records.stop))
            self._ranges.insert(at, (records.first, records.stop))
            self._drop_lost()

    def runs(self, start: int, stop: int) -> Iterator[RecordRange | tuple[int, int]]:
        """All of [start, stop) in order: records that are held, and ranges to fetch.

        The caller may fetch a range and `put` it before it takes the next item.
        """
        while start < stop:
            found = self._holding(start)
            if found is None:
                end = min(stop, self._next_first(start))
                yield start, end
            else:
                end = min(stop, found.stop)
                yield found.cut(start, end)
            start = end

    def drop(self, offset: int) -> None:
        """Forget ranges that end before an offset, which the query has passed."""
        with self._lock:
            while self._ranges and self._ranges[0][1] <= offset:
                _RECORDS.take((*self._key, *self._ranges.pop(0)))

    def whole(self, start: int, stop: int) -> RecordRange | None:
        """All of [start, stop), if all of it is held."""
        found = []
        for run in self.runs(start, stop):
            if isinstance(run, tuple):
                return None
            found.append(run)
        return RecordRange.joined(found) if found else None

    def _holding(self, offset: int) -> RecordRange | None:
        with self._lock:
            at = bisect_right(self._ranges, (offset, 2**63)) - 1
            for first, stop in reversed(self._ranges[max(at - 3, 0) : at + 1]):
                if first <= offset < stop:
                    found: RecordRange | None = _RECORDS.held((*self._key, first, stop))
                    if found is not None:
                        return found
        return None

    def _next_first(self, offset: int) -> int:
        """Where the next held range begins."""
        with self._lock:
            self._drop_lost(every=True)
            at = bisect_right(self._ranges, (offset, 2**63))
            return self._ranges[at][0] if at < len(self._ranges) else 2**63

    def _drop_lost(self, every: bool = False) -> None:
        """Forget ranges that the cache has dropped: with `every` all, else only those in front.

        The cache drops the oldest first, so the front has most of them.
        """
        if every:
            self._ranges = [r for r in self._ranges if (*self._key, *r) in _RECORDS]
            return
        while self._ranges and (*self._key, *self._ranges[0]) not in _RECORDS:
            del self._ranges[0]


_shelves: dict[tuple[object, ...], RecordShelf] = {}
_making = threading.Lock()


def shelf_of(key: tuple[object, ...]) -> RecordShelf:
    """The shelf of a partition in this process. Grows with the partitions read here."""
    with _making:
        return _shelves.setdefault(key, RecordShelf(key))
