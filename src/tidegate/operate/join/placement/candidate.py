"""Counts the pairs within the windows of a join in which no instance sees all tuples.

Whether a pair is within the windows depends on its times alone. So map tasks send the times of
their tuples to one instance, which keeps those that windows still reach and counts for all. The
count is the same for any placement, batch cut and number of instances.
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
from tidegate.operate.kernels.join.place_loop import sum_of_places
from tidegate.operate.operator import Arrival, InstanceWork, Share
from tidegate.state.segment.segment import read_segment

TIMES = "times"
"""The channel of the times, and the name under which they stay in memory."""

_COUNTS = 0
"""The instance that counts. Every mapping has instance 0, so it keeps its times at a switch."""

Times = npt.NDArray[np.int64]


@dataclass(frozen=True)
class CandidateCount:
    """Counts candidates where both windows are of time; `sides` has the side that each input feeds.

    One instance spends O(tuples of the batch and of the windows) and holds eight bytes a tuple of
    the windows, however many instances there are.
    """

    spec: JoinSpec
    keepers: tuple[SideKeeper, SideKeeper]
    sides: tuple[int, ...]

    def share(self, tuples: pa.Table) -> Share:
        """The times of a split, which a map task sends to the instance that counts."""
        return Share(_COUNTS, tuples.select([TS]), TIMES)

    def candidates(self, work: InstanceWork, arrived: Sequence[Arrival]) -> int:
        """How many pairs with a new tuple are within the windows; 0 at all other instances."""
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
            # A pair of new tuples of one instant must be counted once. The left tuple counts it:
            # it includes right tuples of its own time, a right tuple only earlier left ones.
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
        found.sort()
        return found

    def _stored(self, work: InstanceWork, side: int) -> Times:
        """The times of all tuples that instances have stored."""
        needed = self.keepers[side].horizon(work.previous_us, 0)
        live = [s for s in work.state.get(SIDES[side], ()) if not needed.passed(s)]
        times = [ints(read_segment(work.store, s, columns=[TS]), TS) for s in live]
        found: Times = np.concatenate([np.empty(0, np.int64), *times])
        # Equal times are alike, so no stable sort is needed: that of integers is ten times slower,
        # and at a switch these are the times of all that the windows hold.
        found.sort()
        return found
