"""Decides which instances see a tuple of a join: its owner, all, a part of a grid, or its homes.

Of each pair exactly one instance sees both tuples and compares the later with the earlier one.
Every spread keeps that for every mapping: it is why placements cannot change the output.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.batch import MAX_US, MIN_US
from tidegate.operate.join.chain.chain import BUCKET
from tidegate.operate.join.kind import LEFT
from tidegate.operate.join.state import SIDES
from tidegate.operate.operator import MapWork, Share
from tidegate.route.mapping import Mapping
from tidegate.route.partitioner import Int32s

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Sight:
    """The stored tuples of a side that an instance sees, as far as one epoch placed them.

    They are in the flagged `buckets`, at coordinates in [since, until): event times, or numbers
    where windows count tuples. New tuples belong to the `newest` epoch; instances of older epochs
    see them too, to compare their stored tuples with them.
    """

    since: int
    until: int
    buckets: Mask
    newest: bool

    def meets(self, low: int, high: int) -> bool:
        """Whether stored tuples with coordinates from `low` to `high` can be among those."""
        return low < self.until and high >= self.since

    def sees(self, buckets: Int32s, places: npt.NDArray[np.int64]) -> Mask:
        """Which of some stored tuples are among those; `places` are their coordinates."""
        within = (places >= self.since) & (places < self.until)
        return np.asarray(self.buckets[buckets] & within)


@dataclass(frozen=True)
class OwnerSpread:
    """Only the owner of its bucket sees a tuple, new or stored. The other spreads derive from this.

    Total work does not depend on the number of instances.
    """

    everywhere: ClassVar[bool] = False
    """Whether all instances see all new tuples."""

    holds_all: ClassVar[bool] = False
    """Whether an instance compares with all stored tuples that it sees, not only with its own."""

    @property
    def lines(self) -> tuple[str, ...]:
        """Lines about the spread for `explain`."""
        return ()

    def sees(self, instance: int, side: int, owners: Int32s, instances: int) -> Mask:
        """Flags for the buckets of a side whose stored tuples an instance compares with."""
        return np.asarray(owners == instance)

    def shares(self, work: MapWork, side: int, tuples: pa.Table) -> list[Share]:
        """Shares of new tuples, which have their buckets, for the instances that see them."""
        # Former owners compare new tuples with those that they still hold, and store none.
        if work.mapping.formers:
            return self._in_sight(work, side, tuples)
        return work.by_bucket(tuples)

    def sights(self, instance: int, side: int, mapping: Mapping) -> list[Sight]:
        """The sights of an instance on a side, by epoch, the newest last; one without formers."""
        ends = [former.until(SIDES[side]) for former in mapping.formers]
        sizes = [*(former.instances for former in mapping.formers), mapping.instances]
        bounds = zip([MIN_US, *ends], [*ends, MAX_US], strict=True)
        found: list[Sight] = []
        for owners, size, (since, until) in zip(mapping.tenures, sizes, bounds, strict=True):
            seen = self.sees(instance, side, owners, size) & (instance < size)
            found.append(Sight(since, until, seen, newest=len(found) == len(ends)))
        return found

    def _in_sight(self, work: MapWork, side: int, tuples: pa.Table) -> list[Share]:
        """Shares of new tuples for all instances that see them in any epoch that has tuples."""
        bucket, shares = tuples.column(BUCKET).to_numpy(), []
        for instance in range(work.mapping.running):
            epochs = self.sights(instance, side, work.mapping)
            mine = tuples.filter(pa.array(np.any([e.buckets[bucket] for e in epochs], axis=0)))
            if mine.num_rows:
                shares.append(Share(instance, mine))
        return shares


@dataclass(frozen=True)
class AllSpread(OwnerSpread):
    """All instances see all new tuples, and compare them with the tuples that they own."""

    everywhere = True

    def shares(self, work: MapWork, side: int, tuples: pa.Table) -> list[Share]:
        return [Share.for_all(tuples)]


@dataclass(frozen=True)
class RangeSpread(AllSpread):
    """The placement sends new tuples where their bounds reach, or to all where it cannot tell."""

    everywhere = False


@dataclass(frozen=True)
class GridSpread(OwnerSpread):
    """A row of a grid of instances sees a left tuple, a column of it sees a right one.

    A pair is found by the one instance in both. Each tuple goes to about the square root of the
    number of instances, which is what sending costs.
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
    """Only its owner, its home, sees a tuple of the side `home`; all homes see the other side.

    All pairs of a tuple are found at its home, which so knows whether it has a partner. Total work
    is that of the inner join; every home holds the other side.
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
    """The columns of a grid with exactly this number of instances, as square as possible."""
    rows = next(r for r in range(int(instances**0.5), 0, -1) if instances % r == 0)
    return instances // rows
