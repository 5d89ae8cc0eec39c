"""What an instance has in memory of its buckets, between the segments and the objects at work.

Kept are rows as they are stored, not objects: an object is made anew for every batch that touches
its bucket, from the bytes that a restart would read. So nothing can tell whether a batch found its
state in memory, neither the class nor what is written. A bucket that was never large is here as a
**whole**, and then nothing is read; of a larger one those entries are that were used of late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import Final, TypeVar

import numpy as np

from tidegate.operate.layered_state import HIDES
from tidegate.operate.process.entry import HEAD, StateRow
from tidegate.operate.process.layer import EntryColumns, StoredEntry
from tidegate.operate.process.stored import StoredBucket, StoredState

T = TypeVar("T")

_Row = tuple[int, int, bytes, bytes]
"""What a StoredEntry has: its entry, number, name and data."""
_NAME: Final = 2

_ROW_BYTES = 320
"""What a row takes up beside its name and value: two objects of bytes, two numbers, a place."""

_WORTH = 16
"""A bucket is read as a whole once one in so many of its rows was looked for in the segments: those
searches have cost as much."""


class HotBucket:
    """What is in memory of one bucket: its head, and rows of entries.

    `behind` opens what the segments have of it in the batch at hand; `room` says how many more
    bytes may be kept.
    """

    def __init__(self, head: bytes, whole: bool) -> None:
        self.head = head
        self.whole = whole
        self.behind: Callable[[], StoredBucket] | None = None
        self.room: Callable[[], int] | None = None
        self._rows: dict[int, tuple[_Row, ...]] = {}
        """By number, those that were used last at the end; no StoredEntry, which the garbage
        collector would look at again and again."""
        self._bytes = 0
        self._misses = 0

    @property
    def nbytes(self) -> int:
        return _ROW_BYTES + len(self.head) + self._bytes

    def find(self, entry: int, name: bytes) -> Sequence[StoredEntry]:
        found = self._rows.get(entry, ())
        for row in found:
            if row[_NAME] == name:
                return (StoredEntry(*row),)
        return [StoredEntry(*row) for row in found] if self.whole else self._look_up(entry, name)

    def load(self, prefix: bytes) -> EntryColumns:
        if not self.whole:
            stored = self._stored()
            if not self._read_whole(stored):
                return stored.load(prefix)
        found = [row for row in self._each() if row[_NAME].startswith(prefix)]
        found.sort(key=itemgetter(1))
        return EntryColumns(*map(list, zip(*found))) if found else EntryColumns([], [], [], [])

    def change(self, row: StateRow) -> None:
        """Take over a row that the batch writes."""
        if row.entry == HEAD:
            self.head = row.value
            return
        number = row.entry & ~HIDES
        others = self._without(number, row.name)
        if number == row.entry:
            self._put((row.entry, row.number, row.name, row.value), others)
        elif others:
            self._rows[number] = others

    def shrink(self, most_bytes: int) -> None:
        """Let go of the rows that were not used for longest."""
        kept, left = [], most_bytes - _ROW_BYTES - len(self.head)
        for number, rows in reversed(self._rows.items()):
            left -= sum(map(_bytes, rows))
            if left < 0:
                break
            kept.append((number, rows))
        self.whole = self.whole and len(kept) == len(self._rows)
        self._rows = dict(reversed(kept))
        self._bytes = sum(map(_bytes, self._each()))

    def _look_up(self, entry: int, name: bytes) -> Sequence[StoredEntry]:
        stored = self._stored()
        self._misses += 1
        if self._misses * _WORTH >= stored.rows:
            self._misses = 0
            if self._read_whole(stored):
                return self.find(entry, name)
        found = stored.find(entry, name)
        for row in found:
            others = self._without(entry, row.name)
            self._put((row.entry, row.number, row.name, row.data), others)
        return found

    def _stored(self) -> StoredBucket:
        assert self.behind is not None
        return self.behind()

    def _read_whole(self, stored: StoredBucket) -> bool:
        """Have all rows in memory from now on, if there is room for them."""
        assert self.room is not None
        if stored.nbytes + _ROW_BYTES * stored.rows > self.room():
            return False
        columns = stored.load(b"")
        self._rows, self._bytes, self.whole = {}, 0, True
        for row in zip(*columns):
            if row[0] != HEAD:
                self._put(row, self._rows.pop(row[0], ()))
        return True

    def _each(self) -> Iterator[_Row]:
        return (row for rows in self._rows.values() for row in rows)

    def _put(self, row: _Row, others: tuple[_Row, ...]) -> None:
        """Add a row that was not there, beside the others of its number."""
        self._rows[row[0]] = (*others, row)
        self._bytes += _bytes(row)

    def _without(self, entry: int, name: bytes) -> tuple[_Row, ...]:
        """Take out the rows of a number, and give those that have another name."""
        rows = self._rows.pop(entry, ())
        for row in rows:
            if row[_NAME] == name:
                self._bytes -= _bytes(row)
                return tuple([other for other in rows if other is not row])
        return rows


class HotState:
    """The buckets of one instance from batch to batch; grows with their entries, up to a bound.

    Made from what is stored. `begin` comes before each batch, and `rest` after it.
    """

    def __init__(self, buckets: Sequence[int], stored: StoredState) -> None:
        self.buckets = tuple(buckets)
        self._places = {bucket: place for place, bucket in enumerate(buckets)}
        self._pending = stored.pending_us.copy()
        self._hot: dict[int, HotBucket] = {}
        self._new = {bucket for bucket in buckets if not stored.has(bucket)}
        """Buckets that have no object."""
        self._open: Callable[[], StoredState] | None = None
        self._most_bytes = 0
        self._lives_on = False

    def begin(self, open_: Callable[[], StoredState], most_bytes: int) -> None:
        """Go on with a batch; `open_` opens the segments that there are now, and may cost."""
        self._open, self._most_bytes = _once(open_), most_bytes

    def due(self, frontier_us: int) -> list[int]:
        places = np.flatnonzero(self._pending < frontier_us).tolist()
        return [self.buckets[place] for place in places]

    def bucket(self, bucket: int, expected: int) -> HotBucket | None:
        if bucket in self._new:
            return None
        hot = self._hot.get(bucket)
        if hot is None:
            hot = HotBucket(self._stored(bucket, expected).head, whole=False)
            self._hot[bucket] = hot
        if not hot.whole:
            hot.behind = _once(partial(self._stored, bucket, expected))
            hot.room = self._room
        return hot

    def changed(self, bucket: int, rows: Sequence[StateRow]) -> None:
        hot = self._hot.get(bucket)
        if hot is None:
            hot = self._hot[bucket] = HotBucket(b"", whole=True)
            self._new.remove(bucket)
        for row in rows:
            hot.change(row)
            if row.entry == HEAD:
                self._pending[self._places[bucket]] = row.pending_us

    def rest(self) -> int:
        """Let go of the segments, and of what is too much; the bytes that are left."""
        self._open, self._lives_on = None, True
        if self.nbytes > self._most_bytes:
            fair = self._most_bytes // len(self._hot)
            for bucket, hot in list(self._hot.items()):
                if hot.nbytes > fair:
                    hot.shrink(fair // 2)
                if hot.nbytes > fair:
                    del self._hot[bucket]
        for hot in self._hot.values():
            hot.behind = hot.room = None
        return self.nbytes

    @property
    def nbytes(self) -> int:
        return sum(hot.nbytes for hot in self._hot.values())

    def _stored(self, bucket: int, expected: int) -> StoredBucket:
        assert self._open is not None
        stored = self._open().bucket(bucket, expected)
        assert stored is not None
        return stored

    def _room(self) -> int:
        """No more is read than is asked for until it is seen that what is kept is found again."""
        return self._most_bytes - self.nbytes if self._lives_on else 0


def _once(open_: Callable[[], T]) -> Callable[[], T]:
    """What gives the same again when it is called again."""
    opened: list[T] = []

    def given() -> T:
        if not opened:
            opened.append(open_())
        return opened[0]

    return given


def _bytes(row: _Row) -> int:
    return _ROW_BYTES + len(row[_NAME]) + len(row[3])
