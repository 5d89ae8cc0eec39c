"""Says which instances see a new tuple of a join: its owner, all, a row of the grid, or ranges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tidegate.batch import MAX_US, MIN_US
from tidegate.operate.join.kind import LEFT
from tidegate.operate.join.state import SIDES
from tidegate.route.mapping import Mapping

Owners = npt.NDArray[np.int32]

TO_ALL, OVER_GRID, TO_OWNER, TO_RANGES = "all", "grid", "owner", "ranges"
"""All to every instance; over rows (left) and columns (right) of a grid of instances; by key to the
one that owns it; to those that have ranges of values which its bounds reach."""

TO_HOMES = ("left home", "right home")
"""By side: its tuples to their owners alone, their homes; those of the other side to all homes that
may have a partner, and all that are seen are held. Every pair is found at one home, so total work
is that of the inner join; the other side is in the memory of several."""


HOLDS_ALL = (OVER_GRID, *TO_HOMES)
"""Where an instance compares with all that it sees, whoever has stored it."""


@dataclass(frozen=True)
class Sight:
    """What an instance sees of a side as the owners of one epoch: which buckets, by a flag each.

    Of what is stored these are tuples from `since` on, and below `until`: by their times, or by
    their numbers on a side that keeps the last tuples. What is new belongs to the newest epoch, and
    is also seen by who has older tuples to compare it with.
    """

    since: int
    until: int
    buckets: npt.NDArray[np.bool_]
    newest: bool

    def meets(self, low: int, high: int) -> bool:
        """Whether stored tuples between two times or numbers can be among those."""
        return low < self.until and high >= self.since

    def sees(
        self, buckets: npt.NDArray[np.int32], places: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.bool_]:
        """Which of some stored tuples, by their times or numbers, are among those."""
        within = (places >= self.since) & (places < self.until)
        return np.asarray(self.buckets[buckets] & within)


def sights(instance: int, spread: str, side: int, mapping: Mapping) -> list[Sight]:
    """What an instance sees of a side, epoch by epoch, the newest last; most often there is one."""
    ends = [former.until(SIDES[side]) for former in mapping.formers]
    sizes = [*(former.instances for former in mapping.formers), mapping.instances]
    bounds = zip([MIN_US, *ends], [*ends, MAX_US], strict=True)
    found: list[Sight] = []
    for owners, size, (since, until) in zip(mapping.tenures, sizes, bounds, strict=True):
        seen = seen_by(instance, spread, side, owners, size)
        seen &= instance < size
        found.append(Sight(since, until, seen, newest=len(found) == len(ends)))
    return found


def grid(instances: int) -> tuple[int, int]:
    """Rows and columns of a grid of exactly so many instances, as square as can be."""
    rows = next(r for r in range(int(instances**0.5), 0, -1) if instances % r == 0)
    return rows, instances // rows


def seen_by(
    instance: int, spread: str, side: int, owners: Owners, instances: int
) -> npt.NDArray[np.bool_]:
    """Which tuples, by the owners of their buckets, an instance sees."""
    if spread in TO_HOMES and side != TO_HOMES.index(spread):
        return np.ones(len(owners), np.bool_)
    if spread == OVER_GRID:
        columns = grid(instances)[1]
        if side == LEFT:
            return np.asarray(owners // columns == instance // columns)
        return np.asarray(owners % columns == instance % columns)
    return np.asarray(owners == instance)
