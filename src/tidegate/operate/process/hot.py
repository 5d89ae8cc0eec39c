"""The state of buckets that an instance keeps in memory from batch to batch.

It keeps stored rows, not objects. Every batch that touches a bucket makes its object anew, from the
bytes that a restart would read. So neither the class nor the written state can depend on whether
the state was in memory. A bucket whose first object was made here is **whole**: all of it is in
memory as long as there is room, and nothing is read. Of other buckets the entries that were used
lately are in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial

import numpy as np

from tidegate.batch import MIN_US
from tidegate.operate.kernels.order import Ints
from tidegate.operate.layered_state import HIDES
from tidegate.operate.process.columns import ColumnType, HeldColumns
from tidegate.operate.process.entry import HEAD, StateRow
from tidegate.operate.process.initial import InitialIndex, InitialMap
from tidegate.operate.process.key import StoredEntry
from tidegate.operate.process.segment_rows import StoredBucket, StoredState

_ROW_BYTES = 320
"""About the bytes of a row beside its name and value: Python objects, and a place in a dict."""

_FEW_ROWS = 64
"""A bucket with no more rows than these is not searched for expired ones."""

_Row = tuple[int, int, bytes]
"""The fields of a StoredEntry as a plain tuple, which the garbage collector stops tracking."""


class HotBucket:
    """What is in memory of one bucket: its head, None for a new one, and rows of entries.

    `behind` opens the stored rows of the bucket for this batch; None for a whole bucket. `initial`
    gives, by the name of a map, the initial state of keys that have no stored entry.
    """

    def __init__(self, head: bytes | None, whole: bool) -> None:
        self.head = head
        self.whole = whole
        self.initial: Callable[[str], InitialMap | None] = _no_table
        self.behind: Callable[[], StoredBucket] | None = None
        self._rows: dict[bytes, _Row] = {}
        """By name; the most recently used ones are last."""
        self._bytes = 0
        self._columns: dict[bytes, HeldColumns] = {}
        """The states by column that were used here, with all of their rows, by entry prefix."""
        self._most_rows = _FEW_ROWS

    @property
    def nbytes(self) -> int:
        columns = sum(held.nbytes for held in self._columns.values())
        return _ROW_BYTES + len(self.head or b"") + self._bytes + columns

    def find(self, name: bytes) -> StoredEntry | None:
        """The entry of a name; None where there is none."""
        row = self._rows.pop(name, None)
        if row is not None:
            self._rows[name] = row
            return StoredEntry(*row)
        stored = None if self.behind is None else self.behind().find(name)
        if stored is not None:
            self._put(name, *stored)
        return stored

    def load(self, prefix: bytes) -> dict[bytes, StoredEntry]:
        """All entries of a state by name, in any order."""
        if self.behind is not None:
            return self.behind().load(prefix)
        return {n: StoredEntry(*row) for n, row in self._rows.items() if n.startswith(prefix)}

    def columns(self, prefix: bytes, types: Mapping[str, ColumnType]) -> HeldColumns:
        """The rows of a state by column; they stay in memory as long as the bucket does."""
        held = self._columns.get(prefix)
        if held is None:
            held = self._columns[prefix] = HeldColumns(types, self.load(prefix))
        return held

    def change(self, row: StateRow) -> None:
        """Apply a row that the batch writes."""
        if row.entry == HEAD:
            self.head = row.value
            return
        if self._columns and row.name[: row.name.index(b":") + 1] in self._columns:
            return  # HeldColumns has its rows already
        old = self._rows.pop(row.name, None)
        if old is not None:
            self._bytes -= _bytes(row.name, old)
        if row.entry < HIDES:
            self._put(row.name, row.number, row.pending_us, row.value)

    def sweep(self, since_us: int) -> None:
        """Drop expired rows; only when the rows have doubled, so it is O(1) for each row."""
        if len(self._rows) > self._most_rows:
            for name in [n for n, (_, until_us, _) in self._rows.items() if until_us <= since_us]:
                self._bytes -= _bytes(name, self._rows.pop(name))
            self._most_rows = 2 * len(self._rows) + _FEW_ROWS

    def shrink(self, most_bytes: int) -> None:
        """Drop the least recently used rows until the bucket fits."""
        for name in list(self._rows):
            if self.nbytes <= most_bytes:
                break
            self._bytes -= _bytes(name, self._rows.pop(name))
            self.whole = False

    def _put(self, name: bytes, number: int, until_us: int, data: bytes) -> None:
        row = self._rows[name] = (number, until_us, data)
        self._bytes += _bytes(name, row)


class HotState:
    """The buckets of one instance from batch to batch; grows with their entries, up to a bound.

    Call `begin` before each batch, and `rest` after it.
    """

    def __init__(self, buckets: Sequence[int]) -> None:
        self.buckets = tuple(buckets)
        self._places = {bucket: place for place, bucket in enumerate(buckets)}
        self._pending_us: Ints | None = None
        self._hot: dict[int, HotBucket] = {}
        self._new: set[int] = set()
        """Buckets that have had no object yet."""
        self._open: Callable[[], StoredState] | None = None
        self._initial: InitialIndex | None = None
        self._most_bytes = 0
        self._since_us = MIN_US

    def begin(
        self,
        open_: Callable[[], StoredState],
        most_bytes: int,
        since_us: int = MIN_US,
        initial: InitialIndex | None = None,
    ) -> None:
        """Begin a batch from event time `since_us` on; what expired before may be dropped.

        `open_` opens the current segments; it is called only if something must be read.
        """
        self._open, self._most_bytes, self._since_us = cache(open_), most_bytes, since_us
        self._initial = initial
        if self._pending_us is None:
            stored = self._open()
            self._pending_us = stored.pending_us.copy()
            self._new.update(stored.new())

    def due(self, frontier_us: int) -> list[int]:
        """The buckets that have a timer before a frontier."""
        places = np.flatnonzero(self._timers() < frontier_us).tolist()
        return [self.buckets[place] for place in places]

    def bucket(self, bucket: int) -> HotBucket:
        """The state of a bucket for this batch; its head is read if it is not in memory."""
        hot = self._hot.get(bucket)
        if hot is None:
            new = bucket in self._new
            hot = self._hot[bucket] = HotBucket(None if new else self._stored(bucket).head, new)
            self._new.discard(bucket)
        hot.sweep(self._since_us)
        hot.behind = None if hot.whole else cache(partial(self._stored, bucket))
        if self._initial is not None:
            hot.initial = partial(self._initial.map, bucket)
        return hot

    def changed(self, bucket: int, rows: Sequence[StateRow]) -> None:
        """Apply the rows that the batch writes of a bucket; call it after `bucket`."""
        hot = self._hot[bucket]
        for row in rows:
            hot.change(row)
            if row.entry == HEAD:
                self._timers()[self._places[bucket]] = row.pending_us

    def rest(self) -> int:
        """End a batch: drop the segments, and what is beyond the bound; gives the bytes left.

        A bucket above its fair share is cut to half of that share, so that it is not cut again in
        the next batch.
        """
        self._open = self._initial = None
        if self.nbytes > self._most_bytes:
            fair = self._most_bytes // len(self._hot)
            for bucket, hot in list(self._hot.items()):
                if hot.nbytes > fair:
                    hot.shrink(fair // 2)
                if hot.nbytes > fair:
                    del self._hot[bucket]
        for hot in self._hot.values():
            hot.behind, hot.initial = None, _no_table
        return self.nbytes

    @property
    def nbytes(self) -> int:
        return sum(hot.nbytes for hot in self._hot.values())

    def _timers(self) -> Ints:
        assert self._pending_us is not None
        return self._pending_us

    def _stored(self, bucket: int) -> StoredBucket:
        assert self._open is not None
        return self._open().bucket(bucket)


def _no_table(state: str) -> None:
    """The initial state of a process without a table of it."""


def _bytes(name: bytes, row: _Row) -> int:
    return _ROW_BYTES + len(name) + len(row[2])
