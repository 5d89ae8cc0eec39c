"""What an instance has in memory of its buckets from batch to batch.

Kept are rows as they are stored, not objects: an object is made anew for every batch that touches
its bucket, from the bytes that a restart would read. So nothing can tell whether a batch found its
state in memory, neither the class nor what is written. A bucket that began here is **whole**, and
nothing of it is read as long as there is room; of any other those entries are here that were used
of late.
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
from tidegate.operate.process.stored import StoredBucket, StoredState

_ROW_BYTES = 320
"""What a row takes up beside its name and value: two objects of bytes, two numbers, a place."""

_FEW_ROWS = 64
"""So many rows of a bucket are not worth a look at what has expired."""

_Row = tuple[int, int, bytes]
"""What a StoredEntry has, as a tuple that the garbage collector does not look at again."""


class HotBucket:
    """What is in memory of one bucket: its head, None for a new one, and rows of entries.

    `behind` opens what the segments have of it in the batch at hand; None for a whole bucket.
    `initial` gives by the name of a map what a table has of keys that nothing is stored of.
    """

    def __init__(self, head: bytes | None, whole: bool) -> None:
        self.head = head
        self.whole = whole
        self.initial: Callable[[str], InitialMap | None] = _no_table
        self.behind: Callable[[], StoredBucket] | None = None
        self._rows: dict[bytes, _Row] = {}
        """By name, those that were used last at the end."""
        self._bytes = 0
        self._columns: dict[bytes, HeldColumns] = {}
        """By the prefix of their entries, states by column that were used here: all their rows."""
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
        """The rows of a state by column; they stay here as long as the bucket does."""
        held = self._columns.get(prefix)
        if held is None:
            held = self._columns[prefix] = HeldColumns(types, self.load(prefix))
        return held

    def change(self, row: StateRow) -> None:
        """Take over a row that the batch writes."""
        if row.entry == HEAD:
            self.head = row.value
            return
        if self._columns and row.name[: row.name.index(b":") + 1] in self._columns:
            return  # its rows are there
        old = self._rows.pop(row.name, None)
        if old is not None:
            self._bytes -= _bytes(row.name, old)
        if row.entry < HIDES:
            self._put(row.name, row.number, row.pending_us, row.value)

    def sweep(self, since_us: int) -> None:
        """Let go of what has expired, each time when there are twice as many rows."""
        if len(self._rows) > self._most_rows:
            for name in [n for n, (_, until_us, _) in self._rows.items() if until_us <= since_us]:
                self._bytes -= _bytes(name, self._rows.pop(name))
            self._most_rows = 2 * len(self._rows) + _FEW_ROWS

    def shrink(self, most_bytes: int) -> None:
        """Let go of the rows that were not used for longest."""
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

    `begin` comes before each batch, and `rest` after it.
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
        """Go on with a batch from an event time on.

        `open_` opens the segments that there are now, and may cost.
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
        """What there is of a bucket that is at work."""
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
        """What the batch will write of a bucket; called once it has been read."""
        hot = self._hot[bucket]
        for row in rows:
            hot.change(row)
            if row.entry == HEAD:
                self._timers()[self._places[bucket]] = row.pending_us

    def rest(self) -> int:
        """Let go of the segments, and of what is too much; the bytes that are left."""
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
