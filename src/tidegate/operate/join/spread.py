"""Says which instances see a tuple of a join: its owner, all, a part of the grid, or its homes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.batch import MAX_US, MIN_US
from tidegate.operate.join.chain import BUCKET
from tidegate.operate.join.kind import LEFT
from tidegate.operate.join.state import SIDES
from tidegate.operate.operator import MapWork, Share
from tidegate.route.mapping import Mapping
from tidegate.route.partitioner import Int32s

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Sight:
    """What an instance sees of a side as the owners of one epoch: which buckets, by a flag each.

    Of what is stored these are tuples from `since` on, and below `until`: by their times, or by
    their numbers on a side that keeps the last tuples. What is new belongs to the newest epoch, and
    is also seen by who has older tuples to compare it with.
    """

    since: int
    until: int
    buckets: Mask
    newest: bool

    def meets(self, low: int, high: int) -> bool:
        """Whether stored tuples between two times or numbers can be among those."""
        return low < self.until and high >= self.since

    def sees(self, buckets: Int32s, places: npt.NDArray[np.int64]) -> Mask:
        """Which of some stored tuples, by their times or numbers, are among those."""
        within = (places >= self.since) & (places < self.until)
        return np.asarray(self.buckets[buckets] & within)


@dataclass(frozen=True)
class OwnerSpread:
    """New tuples and stored ones are seen by the owners of their buckets alone; others derive."""

    everywhere: ClassVar[bool] = False
    """Whether all instances see all new tuples."""

    holds_all: ClassVar[bool] = False
    """Whether an instance compares with all that it sees, whoever has stored it."""

    @property
    def lines(self) -> tuple[str, ...]:
        """What people are told of it."""
        return ()

    def sees(self, instance: int, side: int, owners: Int32s, instances: int) -> Mask:
        """Which stored tuples of a side an instance compares with, by owners of their buckets."""
        return np.asarray(owners == instance)

    def shares(self, work: MapWork, side: int, tuples: pa.Table) -> list[Share]:
        """New tuples of a side, which have their buckets, for the instances that see them."""
        if work.mapping.formers:
            return self._in_sight(work, side, tuples)
        return work.by_bucket(tuples)

    def sights(self, instance: int, side: int, mapping: Mapping) -> list[Sight]:
        """What an instance sees of a side, epoch by epoch, the newest last; most often one."""
        ends = [former.until(SIDES[side]) for former in mapping.formers]
        sizes = [*(former.instances for former in mapping.formers), mapping.instances]
        bounds = zip([MIN_US, *ends], [*ends, MAX_US], strict=True)
        found: list[Sight] = []
        for owners, size, (since, until) in zip(mapping.tenures, sizes, bounds, strict=True):
            seen = self.sees(instance, side, owners, size) & (instance < size)
            found.append(Sight(since, until, seen, newest=len(found) == len(ends)))
        return found

    def _in_sight(self, work: MapWork, side: int, tuples: pa.Table) -> list[Share]:
        """Each tuple for all that see it, also those that compare it with what they had before."""
        bucket, shares = tuples.column(BUCKET).to_numpy(), []
        for instance in range(work.mapping.running):
            epochs = self.sights(instance, side, work.mapping)
            mine = tuples.filter(pa.array(np.any([e.buckets[bucket] for e in epochs], axis=0)))
            if mine.num_rows:
                shares.append(Share(instance, mine))
        return shares


@dataclass(frozen=True)
class AllSpread(OwnerSpread):
    """All instances see all new tuples, and compare them with what they have stored themselves."""

    everywhere = True

    def shares(self, work: MapWork, side: int, tuples: pa.Table) -> list[Share]:
        return [Share.for_all(tuples)]


@dataclass(frozen=True)
class RangeSpread(AllSpread):
    """New tuples are seen where their bounds reach stored ones; by all where nobody can tell."""

    everywhere = False


@dataclass(frozen=True)
class GridSpread(OwnerSpread):
    """A left tuple is seen in a row of a grid of the instances, a right one in a column.

    Every pair is found where the two meet, and a tuple is sent to about the root of all instances.
    """

    holds_all = True

    def sees(self, instance: int, side: int, owners: Int32s, instances: int) -> Mask:
        columns = _columns(instances)
        if side == LEFT:
            return np.asarray(owners // columns == instance // columns)
        return np.asarray(owners % columns == instance % columns)

    def shares(self, work: MapWork, side: int, tuples: pa.Table) -> list[Share]:
        return self._in_sight(work, side, tuples)


@dataclass(frozen=True)
class HomeSpread(OwnerSpread):
    """Tuples of the side `home` are seen by their owners alone, their homes; others by all homes.

    Every pair is found at one home, so total work is that of the inner join; the other side is in
    the memory of several.
    """

    home: int
    holds_all = True

    @property
    def lines(self) -> tuple[str, ...]:
        come = "where those of the other side come to that may be partners"
        return (f"homes: tuples of the {SIDES[self.home]} side, {come}",)

    def sees(self, instance: int, side: int, owners: Int32s, instances: int) -> Mask:
        if side != self.home:
            return np.ones(len(owners), np.bool_)
        return super().sees(instance, side, owners, instances)

    def shares(self, work: MapWork, side: int, tuples: pa.Table) -> list[Share]:
        if side != self.home:
            return [Share.for_all(tuples)]
        return super().shares(work, side, tuples)


def _columns(instances: int) -> int:
    """The columns of a grid of exactly so many instances, as square as can be."""
    rows = next(r for r in range(int(instances**0.5), 0, -1) if instances % r == 0)
    return instances // rows
