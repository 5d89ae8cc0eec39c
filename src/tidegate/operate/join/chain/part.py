"""Searches the tuples that one instance owns in a segment, without copying them.

After a switch, segments hold buckets of several instances, and an instance gets segments that it
has never searched. Copying its own tuples out and indexing them would be a pass over all state in
one batch. So an instance searches such a segment by the keys of all its tuples, and drops what is
in buckets of others. When that has cost as much as the pass would have, the instance makes an
index of its own part: the total is at most twice that of the better way. Looks that were spared
also pay for an index now and then, so that all segments but large ones have one in the end; no
batch waits for the index of a large segment that it does not need.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tidegate.operate.join.chain.chain import Flags
from tidegate.operate.join.chain.run_index import Ints, SearchableRun, kept, known
from tidegate.state.bucket_set import BucketSet


@dataclass(frozen=True)
class BucketPart:
    """The rows of a table whose `bucket` is one of `buckets`; perhaps all of them.

    `token` names the table in the caches of the process. `flags` marks `buckets`, and is shared by
    all parts with the same ones. `every` are the buckets of all rows of the table. `counted` is how
    many rows the part has, where that is known without a look.
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
        """Which of some rows of the table belong to the part."""
        return np.asarray(self.flags[self.bucket[rows]])

    def affords(self, candidates: int) -> bool:
        """Whether to test so many candidates of the whole table rather than make an index.

        Counts them as spent if so.
        """
        return _SPENT.on((self.token, self.buckets), candidates, len(self.bucket))

    @property
    def indexed(self) -> tuple[SearchableRun, ...] | None:
        """The index of the part; None where it was not made."""
        return kept(self.token if self.is_whole else (self.token, self.buckets))

    def index(self, searched: tuple[SearchableRun, ...]) -> tuple[SearchableRun, ...]:
        """The index of the part, from the cache or made from the index of the table."""
        if self.is_whole:
            return searched
        return known((self.token, self.buckets), lambda: (self._index(searched[0]),))

    def _index(self, searched: SearchableRun) -> SearchableRun:
        kept = np.flatnonzero(self.flags[searched.arranged(self.bucket)])
        return SearchableRun(
            kept if searched.order is None else searched.order[kept],
            None if searched.key is None else searched.key[kept],
            [value[kept] for value in searched.values],
            searched.bases,
            searched.coordinate[kept],
        )


class _Spent:
    """What searches without an index have cost so far, in rows, by part; for the newest parts.

    `_saved` is a budget for indexes that no single part has earned yet; all parts fill it.
    """

    def __init__(self, most: int = 4096) -> None:
        self._most = most
        self._rows: OrderedDict[Hashable, int] = OrderedDict()
        self._saved = 0
        self._lock = threading.Lock()

    def on(self, part: Hashable, candidates: int, rows: int) -> bool:
        """Spend on one part of a table with so many rows; false where it is time for an index."""
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
"""The extra cost of a search without an index, whatever it finds."""

_LARGE_ROWS = 131_072
"""A larger table gets an index from its own candidates only, never from the common budget.

A pass over it takes milliseconds, and a search without an index only microseconds more.
"""

_SPENT = _Spent()
