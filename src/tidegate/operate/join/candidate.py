"""Counts the pairs within the windows of a join whose instances see only tuples of their own.

What is a candidate depends on times alone. So map tasks send the times of their tuples to one
instance, which keeps those that windows still reach, and counts for all. The count is the same for
any placement, batches and instances.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.batch import TS, ints
from tidegate.operate.join.kind import LEFT, RIGHT
from tidegate.operate.join.spec import JoinSpec
from tidegate.operate.join.state import SIDES, SideKeeper
from tidegate.operate.kernels.place_loop import sum_of_places
from tidegate.operate.operator import Arrival, InstanceWork, Share
from tidegate.state.segment import read_segment

TIMES = "times"
"""The channel of times, and the name of what stays in memory."""

_COUNTS = 0
"""The instance that counts: one that every mapping has, so that it goes on after a switch."""

Times = npt.NDArray[np.int64]


@dataclass(frozen=True)
class CandidateCount:
    """Counts candidates where windows are of time; `sides` says by input which side it feeds.

    Costs O(tuples of the batch and of the windows) at one instance, eight bytes a tuple.
    """

    spec: JoinSpec
    keepers: tuple[SideKeeper, SideKeeper]
    sides: tuple[int, ...]

    def share(self, tuples: pa.Table) -> Share:
        """What a map task sends for it."""
        return Share(_COUNTS, tuples.select([TS]), TIMES)

    def candidates(self, work: InstanceWork, arrived: Sequence[Arrival]) -> int:
        """How many pairs of the batch are in the windows; 0 where another instance counts."""
        if work.instance != _COUNTS:
            return 0
        news = [self._news(side, arrived) for side in (LEFT, RIGHT)]
        stored: list[Times] | None = work.kept.take(TIMES, moved=True)
        if stored is None:
            stored = [self._stored(work, side) for side in (LEFT, RIGHT)]
        both = [np.concatenate(pair) for pair in zip(stored, news, strict=True)]
        counted = 0
        for side in (LEFT, RIGHT):
            range_us = self.spec.side(side).extent.range_us
            assert range_us is not None, "all instances see all tuples where windows count them"
            asking = news[1 - side]
            since = asking - range_us
            # Of two tuples of one instant one is the later: the pair is the left one's to count.
            counted += sum_of_places(news[side], asking + (side == RIGHT))
            counted -= sum_of_places(news[side], since)
            counted += len(stored[side]) * len(asking) - sum_of_places(stored[side], since)
        needed = [k.horizon(work.frontier_us, 0).needed for k in self.keepers]
        kept = [t[np.searchsorted(t, least) :] for t, least in zip(both, needed, strict=True)]
        work.kept.leave(TIMES, kept, sum(t.nbytes for t in kept))
        return counted

    def _news(self, side: int, arrived: Sequence[Arrival]) -> Times:
        mine = [a for a in arrived if a.channel == TIMES and self.sides[a.input] == side]
        found: Times = np.concatenate([np.empty(0, np.int64), *(ints(a.rows, TS) for a in mine)])
        found.sort(kind="stable")
        return found

    def _stored(self, work: InstanceWork, side: int) -> Times:
        """The times of all tuples that instances have stored."""
        needed = self.keepers[side].horizon(work.previous_us, 0)
        live = [s for s in work.state.get(SIDES[side], ()) if not needed.passed(s)]
        times = [ints(read_segment(work.store, s, columns=[TS]), TS) for s in live]
        found: Times = np.concatenate([np.empty(0, np.int64), *times])
        found.sort(kind="stable")
        return found
