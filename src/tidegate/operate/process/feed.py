"""Divides the rows of a batch among the objects of a process, in the total order.

Turning columns into Python values has a cost for each call and column, which a bucket with few rows
would pay in full. So it is done for all buckets together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.batch import ORDER, TS
from tidegate.operate.kernels.group import run_starts
from tidegate.operate.kernels.order import Ints
from tidegate.operate.process.definition import BUCKET, KEY_COLUMN, ProcessSpec
from tidegate.operate.process.tuple import Tuple, python_values

Trigger = tuple[int, int, int]
Call = tuple[Trigger, Tuple, list[Any]]
"""The place of a tuple in the total order, the tuple, and its keys in the bucket."""

_AT_ONCE = 8192
"""At most so many tuples are Python objects at a time."""


class FarTime(Exception):
    """A time outside the years 1 to 9999, which Python cannot represent, and its column."""

    def __init__(self, column: str, time: str) -> None:
        self.column = column
        self.time = time
        super().__init__(column, time)


class Feed:
    """Rows of `spec.routed`, bucket after bucket, each in the total order."""

    def __init__(self, spec: ProcessSpec, rows: pa.Table) -> None:
        self.order: list[Ints] = [rows.column(name).to_numpy() for name in ORDER]
        self._spec = spec
        self._rows = rows
        self._names = {name: place for place, (name, _) in enumerate(spec.columns)}
        self._calls: list[Call] = []
        self._first = 0

    def share(self, low: int, high: int) -> BucketRows:
        """The rows of one bucket."""
        return BucketRows(self, low, high)

    def all(self) -> BucketRows:
        return BucketRows(self, 0, self._rows.num_rows)

    def seen(self, low: int, high: int) -> pa.Table:
        """Rows under the user's names: ts, the input columns, and `key` if tuples have several."""
        return self._seen.slice(low, high - low)

    def where(self, low: int, booleans: pa.Array) -> Feed:
        """A feed of the rows from `low` on whose boolean is true."""
        return Feed(self._spec, self._rows.slice(low, len(booleans)).filter(booleans))

    def calls(self, low: int, high: int) -> Iterator[Call]:
        """The tuples of these rows, which must be of one bucket; raises FarTime."""
        at, end = self._places[low], self._places[high]
        while at < end:
            calls = self._at(at, end)
            yield from calls
            at += len(calls)

    def _at(self, at: int, end: int) -> Sequence[Call]:
        """Some tuples from a place on, at most up to `end`; each has its own list of keys."""
        if self._spec.keys is None:
            # Buckets share the tuples, but not values that one of them could change in place.
            if self._can_change or not self._has(at):
                self._load(at, self._count)
            shared = islice(self._calls, at - self._first, end - self._first)
            return [(trigger, tuple_, []) for trigger, tuple_, _ in shared]
        if not self._has(at):
            try:
                self._load(at, self._count)
            except FarTime:  # of another bucket, or else it comes again
                self._load(at, end)
        return self._calls[at - self._first : end - self._first]

    def _has(self, at: int) -> bool:
        return self._first <= at < self._first + len(self._calls)

    def _load(self, at: int, end: int) -> None:
        end = min(end, at + _AT_ONCE)
        part = self._firsts.slice(at, end - at)
        starts = self._starts[at:end]
        triggers = zip(*(column[starts].tolist() for column in self.order))
        columns = [_values(name, part.column(4 + i)) for name, i in self._names.items()]
        cells = zip(*columns) if columns else iter([()] * len(starts))
        keys = self._keys(columns, starts, self._ends[at:end])
        places = self._names
        self._calls = [
            (trigger, Tuple(places, trigger[0], values), mine)
            for trigger, values, mine in zip(triggers, cells, keys)
        ]
        self._first = at

    def _keys(self, columns: Sequence[list[Any]], starts: Ints, ends: Ints) -> Iterator[list[Any]]:
        spec = self._spec
        if spec.keys is None:
            return ([] for _ in starts)
        if spec.key is not None:
            low, high = int(starts[0]), int(ends[-1])
            listed = _values("keys", self._rows.column(KEY_COLUMN).slice(low, high - low))
            bounds = zip((starts - low).tolist(), (ends - low).tolist())
            return (listed[a:b] for a, b in bounds)
        assert not callable(spec.keys)
        chosen = [columns[self._names[name]] for name in spec.keys]
        if len(chosen) == 1:
            return ([key] for key in chosen[0])
        return ([key] for key in zip(*chosen))

    @cached_property
    def _starts(self) -> Ints:
        """The first row of every tuple; a tuple has a row for each of its keys in the bucket."""
        if self._spec.key is None:
            return np.arange(self._rows.num_rows)
        return np.flatnonzero(run_starts(self._rows.column(BUCKET).to_numpy(), *self.order))

    @cached_property
    def _places(self) -> Sequence[int]:
        """The number of the tuple that begins at a row, as the bounds of a bucket do."""
        rows = self._rows.num_rows
        if self._count == rows:
            return range(rows + 1)
        places: list[int] = np.searchsorted(self._starts, np.arange(rows + 1)).tolist()
        return places

    @cached_property
    def _ends(self) -> Ints:
        return np.append(self._starts[1:], self._rows.num_rows)

    @cached_property
    def _count(self) -> int:
        return len(self._starts)

    @cached_property
    def _firsts(self) -> pa.Table:
        """One row of every tuple."""
        whole = self._count == self._rows.num_rows
        return self._rows if whole else self._rows.take(pa.array(self._starts))

    @cached_property
    def _seen(self) -> pa.Table:
        rows, count = self._rows, len(self._spec.columns)
        seen = self._spec.seen(rows.column(TS), rows.columns[4 : 4 + count])
        if self._spec.key is None:
            return seen
        return seen.append_column("key", rows.column(KEY_COLUMN))

    @cached_property
    def _can_change(self) -> bool:
        """Whether tuples have values that user code could change in place."""
        return any(pa.types.is_nested(type_) for _, type_ in self._spec.columns)


@dataclass(frozen=True)
class BucketRows:
    """The rows of one bucket: those from `low` up to before `high` of a feed."""

    feed: Feed
    low: int
    high: int

    @property
    def rows(self) -> int:
        return self.high - self.low

    @property
    def ts(self) -> Ints:
        return self.feed.order[0][self.low : self.high]

    def order(self) -> list[Ints]:
        """The places of the rows in the total order, column by column."""
        return [column[self.low : self.high] for column in self.feed.order]

    def part(self, start: int, end: int) -> BucketRows:
        """The rows from one place up to before another."""
        return BucketRows(self.feed, self.low + start, self.low + end)

    def seen(self) -> pa.Table:
        """The table that `process` and `filter` get."""
        return self.feed.seen(self.low, self.high)

    def calls(self) -> Iterator[Call]:
        """The tuples that `on_tuple` gets; raises FarTime."""
        return self.feed.calls(self.low, self.high)

    def where(self, booleans: pa.Array) -> BucketRows:
        """The rows whose boolean is true."""
        return self.feed.where(self.low, booleans).all()


def _values(name: str, column: pa.ChunkedArray) -> list[Any]:
    try:
        return python_values(column)
    except OverflowError as error:
        raise FarTime(name, str(error)) from error
