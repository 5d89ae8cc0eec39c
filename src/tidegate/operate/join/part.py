"""Searches the tuples of a segment that one instance owns without copying them.

After a switch an instance has segments that it has never searched, and segments from before it hold
buckets of several instances. To copy its own tuples out and to make an index of them would take a
pass over all state, in one batch. Where few tuples are candidates, the instance searches a segment
as it is, by its keys alone, and looks at the buckets of what it finds; the predicate decides. Where
many are, the pass is soon the cheaper way: it is made when looking has cost as much. It is also
made for a segment now and then, so that after a while all have their index, but for large ones: no
batch is to wait for what it does not need.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tidegate.operate.join.chain import Flags
from tidegate.operate.join.run_index import Ints, SearchableRun, kept, known
from tidegate.state.bucket_set import BucketSet


@dataclass(frozen=True)
class BucketPart:
    """The rows of a table, which `token` names, whose `bucket` is one of `buckets`.

    `flags` has these buckets by a flag each; it is shared by all parts of the same. `every` are the
    buckets of all rows; `counted` is how many rows the part has, where it is known. A part may be
    all of it.
    """

    token: Hashable
    buckets: BucketSet
    flags: Flags
    every: BucketSet
    bucket: npt.NDArray[np.int32]
    counted: int | None = None

    @property
    def is_whole(self) -> bool:
        return self.buckets == self.every

    @cached_property
    def rows(self) -> int:
        if self.is_whole:
            return len(self.bucket)
        return int(self.flags[self.bucket].sum()) if self.counted is None else self.counted

    def has(self, rows: Ints) -> npt.NDArray[np.bool_]:
        """Which rows of the table are of the part."""
        return np.asarray(self.flags[self.bucket[rows]])

    def affords(self, candidates: int) -> bool:
        """Whether to look at so many more rows of the table instead of making an index."""
        return _SPENT.on((self.token, self.buckets), candidates, len(self.bucket))

    @property
    def indexed(self) -> tuple[SearchableRun, ...] | None:
        """The index of the part, where it was made."""
        return kept(self.token if self.is_whole else (self.token, self.buckets))

    def index(self, searched: tuple[SearchableRun, ...]) -> tuple[SearchableRun, ...]:
        """The index of the part, made from that of the table and kept."""
        if self.is_whole:
            return searched
        return known((self.token, self.buckets), lambda: (self._index(searched[0]),))

    def _index(self, searched: SearchableRun) -> SearchableRun:
        kept = np.flatnonzero(self.flags[searched.arranged_by(self.bucket)])
        return SearchableRun(
            kept if searched.order is None else searched.order[kept],
            None if searched.key is None else searched.key[kept],
            [value[kept] for value in searched.values],
            searched.bases,
            searched.coordinate[kept],
        )


class _Spent:
    """What looking at parts without an index has cost, in rows, for the newest of them.

    `saved` is what making an index now and then may cost, for all of them.
    """

    def __init__(self, most: int = 4096) -> None:
        self._most = most
        self._rows: OrderedDict[Hashable, int] = OrderedDict()
        self._saved = 0
        self._lock = threading.Lock()

    def on(self, part: Hashable, candidates: int, rows: int) -> bool:
        """Spend so much on a part of a table with so many rows; false where an index is better."""
        with self._lock:
            spent = self._rows.pop(part, 0) + candidates
            self._rows[part] = spent
            if len(self._rows) > self._most:
                self._rows.popitem(last=False)
            self._saved += min(candidates, rows) + _LOOK_ROWS
            if spent <= rows and (self._saved < rows or rows > _LARGE_ROWS):
                return True
            self._saved = max(self._saved - rows, 0)
            return False


_LOOK_ROWS = 512
"""What a look without an index costs more than one with it, whatever it finds."""

_LARGE_ROWS = 131_072
"""A pass over so many rows takes some milliseconds, and a look without the index ten microseconds
more than one with it: only many candidates are worth it."""

_SPENT = _Spent()
