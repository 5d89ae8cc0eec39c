"""Places the tuples of a join: who stores them, who sees them, and who finds their pairs.

Every tuple is stored in one bucket. The bucket decides which instance finds its pairs, never which
pairs there are: no placement changes the output. A new placement is a class, and an entry in
`PLACEMENTS` of `operator.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import pyarrow as pa

from tidegate.operate.join.chain.chain import BUCKET
from tidegate.operate.join.kind import LEFT, RIGHT
from tidegate.operate.join.placement.spread import (
    AllSpread,
    GridSpread,
    HomeSpread,
    Mask,
    OwnerSpread,
)
from tidegate.operate.join.search import ComparedWork, News
from tidegate.operate.join.spec import JoinSpec
from tidegate.operate.join.state import BY_KEY, ROUND_ROBIN, SideKeeper
from tidegate.operate.kernels.expression.expression import evaluate
from tidegate.operate.operator import Arrival, InstanceWork, MapWork, Share
from tidegate.route.cell import CellGrid
from tidegate.route.hash import Hash
from tidegate.route.mapping import Mapping as BucketMapping
from tidegate.route.partitioner import Int32s, Partitioner, Router
from tidegate.route.round_robin import RoundRobin
from tidegate.state.segment.segment import Segment


@dataclass(frozen=True)
class JoinPlacement(ABC):
    """How the tuples of a join are placed in one batch.

    Each kind says in its docstring how the total work grows with instances. `sides` has the side of
    each input, `before` how many tuples of each side came before the batch. `remote` says that
    instances are on several hosts, where sending a tuple costs. `first` is the grid with which a
    query begins that places tuples by cells.
    """

    routing: ClassVar[str]
    """Its name, for people and in fingerprints of the state."""

    partitioner: ClassVar[Partitioner] = RoundRobin()
    dealt_by: ClassVar[tuple[str, ...]] = ()
    """The parts of the state that `deal` reads, as they were one batch earlier."""

    within_buckets: ClassVar[bool] = False
    """Whether both tuples of a pair are in one bucket, so that work is counted by tuple."""

    spec: JoinSpec
    sides: tuple[int, ...]
    before: tuple[int, int]
    remote: bool
    first: CellGrid

    @property
    @abstractmethod
    def spread(self) -> OwnerSpread:
        """Which instances see a tuple. Where windows count tuples, all of them see new ones."""

    def deal(self, work: MapWork, side: int, tuples: pa.Table) -> list[Share]:
        """Give new tuples their buckets, and send them to the instances that see them."""
        bucket = self.buckets(work.router(self.partitioner), side, tuples)
        return self.spread.shares(work, side, tuples.add_column(3, BUCKET, pa.array(bucket)))

    def buckets(self, router: Router, side: int, tuples: pa.Table) -> Int32s:
        """The buckets in which new tuples of a side are stored; in turn, unless overridden."""
        return router.buckets([], tuples.num_rows)

    @property
    def keys(self) -> tuple[str, ...]:
        """The expressions that tuples are placed by, as text that identifies them."""
        return ()

    @cached_property
    def keepers(self) -> tuple[SideKeeper, SideKeeper]:
        """The keepers of the stored tuples, by side."""
        left, right = (SideKeeper(self.spec, self.routing, self.keys, s) for s in (LEFT, RIGHT))
        return left, right

    def asks(self, work: InstanceWork, side: int, tuples: pa.Table) -> Mask | None:
        """Which new tuples may have pairs with tuples that are stored here; None for all."""
        return None

    def adopted(self, mapping: BucketMapping, side: int, stored: pa.Table) -> pa.Table:
        """Tuples that an earlier run has placed otherwise, with the buckets that they have now."""
        return stored

    def cells(self, work: InstanceWork) -> str:
        """Text for all that decides who sees new tuples besides the owners of buckets."""
        return ""

    def comparisons(
        self, work: InstanceWork, arrived: Sequence[Arrival], compared: ComparedWork
    ) -> int:
        """How many pairs within the windows this instance counts: one instance counts each."""
        return compared.implied

    def written(
        self, work: InstanceWork, arrived: Sequence[Arrival], news: Sequence[News]
    ) -> Mapping[str, tuple[Segment, ...]]:
        """New segments of the placement's own state, by part of the state."""
        return {}


@dataclass(frozen=True)
class TurnPlacement(JoinPlacement):
    """Deals tuples to buckets in turn: each instance compares new tuples with its part (ScaleJoin).

    Even under any skew. Total work: the same for any number of instances where all pairs are
    compared. With an index every instance searches for every new tuple, so searches grow with the
    instances.
    """

    routing = ROUND_ROBIN

    @property
    def spread(self) -> OwnerSpread:
        home = self.spec.kind.home
        if home is not None:
            return HomeSpread(home)
        return GridSpread() if self.remote and not self.spec.counts else AllSpread()


@dataclass(frozen=True)
class KeyPlacement(JoinPlacement):
    """Stores tuples in the bucket of their keys, where alone they search.

    Total work: the same for any number of instances. Where windows count tuples, every instance
    sees every tuple too, to count it. As even as the keys are; without an equality there is one
    key, and one instance does all.
    """

    routing = BY_KEY
    partitioner = Hash()
    within_buckets = True

    @property
    def spread(self) -> OwnerSpread:
        return AllSpread() if self.spec.counts else OwnerSpread()

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(i.exact for i in self.spec.equalities)

    def buckets(self, router: Router, side: int, tuples: pa.Table) -> Int32s:
        keys = [evaluate(i.value(side), tuples) for i in self.spec.equalities]
        return router.buckets(keys, tuples.num_rows)

    def adopted(self, mapping: BucketMapping, side: int, stored: pa.Table) -> pa.Table:
        bucket = self.buckets(Router(self.partitioner, mapping), side, stored)
        return stored.set_column(stored.column_names.index(BUCKET), BUCKET, pa.array(bucket))
