"""Remembers which stored tuples of an outer, semi or anti join have a partner.

A tuple is marked once, in the batch of its first match, unless it is decided in the same batch. Its
mark lives until it is decided.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.batch import ORDER, TS, ints
from tidegate.operate.join.chain.chain import BUCKET
from tidegate.operate.join.state import SIDES, SideKeeper
from tidegate.operate.keeper import CELLS, Keeper, OrderHorizon
from tidegate.operate.operator import InstanceWork
from tidegate.state.bucket_set import BucketSet
from tidegate.state.segment.compaction import by_bucket
from tidegate.state.segment.segment import Segment, read_segment, write_segment

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

MATCHED = tuple(f"{side}_matched" for side in SIDES)
"""The parts of the state that have the marks, by side."""

_COLUMNS = (*ORDER, BUCKET)
_TIER = 4
"""Two runs of marks are merged unless the earlier one is more than this many times longer."""


@dataclass(frozen=True)
class MarkKeeper(Keeper):
    """Marks live as long as the tuples of their side; a segment's `tag` says how it was dealt."""

    tuples: SideKeeper
    order: ClassVar[str] = TS

    @property
    def columns(self) -> list[str]:
        return list(_COLUMNS)

    @property
    def cell(self) -> int:
        range_us = self.tuples.spec.side(self.tuples.side).extent.range_us
        return max((range_us or 0) // CELLS, 1)

    def horizon(
        self, frontier_us: int, tuples: int, segments: Sequence[Segment] = ()
    ) -> OrderHorizon:
        return self.tuples.horizon(frontier_us, tuples, segments)

    def kin(
        self, segments: Sequence[Segment], owners: Sequence[int], since: int
    ) -> list[int | None]:
        return [0 if s.tag == self.tuples.way else None for s in segments]


class MatchMarks:
    """The marks of the tuples of one side at one instance; grows with the tuples of a window.

    Marks are in runs, each in the total order. A batch adds a run, and runs are merged as in a
    chain: so a few marks cost little, and a search looks into few runs.
    """

    def __init__(self, work: InstanceWork, side: int, keeper: MarkKeeper) -> None:
        self._work, self._side, self._keeper = work, side, keeper
        held: list[pa.Table] | None = work.kept.take(MATCHED[side])
        self._runs = self._read() if held is None else held

    def has(self, order: Sequence[Ints]) -> Mask:
        """Which tuples are marked; `order` has their columns of the total order."""
        found = np.zeros(len(order[0]), np.bool_)
        for run in self._runs:
            found |= _among(order, [ints(run, c) for c in ORDER])
        return found

    def written(self, marks: pa.Table) -> tuple[Segment, ...]:
        """Store the marks of tuples that had none, and leave all that are needed in memory."""
        work, keeper = self._work, self._keeper
        needed = keeper.horizon(work.frontier_us, 0).needed
        runs = [*self._runs, _in_order(marks)] if marks.num_rows else list(self._runs)
        runs = [run for run in (_from(run, needed) for run in runs) if run.num_rows]
        while len(runs) > 1 and runs[-2].num_rows <= _TIER * runs[-1].num_rows:
            runs[-2:] = [_in_order(pa.concat_tables(runs[-2:]))]
        work.kept.leave(MATCHED[self._side], runs, sum(run.nbytes for run in runs))
        if not marks.num_rows:
            return ()
        name, rows = f"{work.name}-{MATCHED[self._side]}", by_bucket(marks, TS)
        return (write_segment(work.store, name, rows, TS, keeper.tuples.way),)

    def _read(self) -> list[pa.Table]:
        """The stored marks of the instance's tuples, as one run.

        An earlier run may have dealt tuples otherwise; its marks are read whole, because a mark of
        a tuple that is elsewhere does no harm.
        """
        work, keeper = self._work, self._keeper
        horizon = keeper.horizon(work.previous_us, 0)
        mine = BucketSet.where(work.mapping.owner_array == work.instance)
        # An earlier run may have dealt tuples to other buckets: then any segment may have ours.
        tables = [
            read_segment(work.store, s, mine if s.tag == keeper.tuples.way else None, _COLUMNS)
            for s in work.state.get(MATCHED[self._side], ())
            if not horizon.passed(s)
        ]
        if not tables:
            return []
        run = _from(_in_order(pa.concat_tables(tables).select(_COLUMNS)), horizon.needed)
        return [run] if run.num_rows else []


def _in_order(marks: pa.Table) -> pa.Table:
    marks = marks.combine_chunks()
    return marks.take(pa.array(np.lexsort([ints(marks, c) for c in reversed(ORDER)])))


def _from(run: pa.Table, needed: int) -> pa.Table:
    return run.slice(int(np.searchsorted(ints(run, TS), needed)))


def _among(order: Sequence[Ints], run: Sequence[Ints]) -> Mask:
    """Which tuples are in a run, by one binary search for all, over all columns of the order."""
    low = np.zeros(len(order[0]), np.int64)
    high = np.full(len(order[0]), len(run[0]), np.int64)
    while (open_ := low < high).any():
        middle = np.minimum((low + high) // 2, len(run[0]) - 1)
        less, equal = np.zeros(len(low), np.bool_), np.ones(len(low), np.bool_)
        for mine, theirs in zip(order, run, strict=True):
            value = theirs[middle]
            less |= equal & (value < mine)
            equal &= value == mine
        low, high = np.where(open_ & less, middle + 1, low), np.where(open_ & ~less, middle, high)
    found = low < len(run[0])
    at = np.where(found, low, 0)
    for mine, theirs in zip(order, run, strict=True):
        found &= theirs[at] == mine
    return np.asarray(found)
