"""Joins two streams: map tasks deal tuples, and each instance matches new tuples with stored ones.

The result is the same for any placement; `placement` decides who stores a tuple and who sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.batch import MIN_US, ORDER
from tidegate.calendar.duration import duration_text
from tidegate.collect.pair import PairOrder
from tidegate.model.operation import Lookback, Operation
from tidegate.operate.bucket_work import BucketWork
from tidegate.operate.join.chain.chain import BUCKET
from tidegate.operate.join.concept import ConceptSieve, KeptTuples
from tidegate.operate.join.instance import InstanceJoin, SideTuples
from tidegate.operate.join.key_count import FIRST, FirstKeeper
from tidegate.operate.join.kind import LEFT, RIGHT
from tidegate.operate.join.mark import MATCHED, MarkKeeper
from tidegate.operate.join.partner import OuterRows, SidePartners
from tidegate.operate.join.pieces import in_pieces
from tidegate.operate.join.placement.division import held_work, pair_work, stored_work
from tidegate.operate.join.placement.grid import GRIDS, GridKeeper
from tidegate.operate.join.placement.placement import JoinPlacement, KeyPlacement, TurnPlacement
from tidegate.operate.join.placement.range_placement import RangePlacement
from tidegate.operate.join.search import ComparedWork, Ints, News
from tidegate.operate.join.spec import JoinSpec, WindowExtent
from tidegate.operate.join.state import SIDES
from tidegate.operate.join.tuple_order import order_columns, places
from tidegate.operate.keeper import Keeper
from tidegate.operate.operator import (
    Arrival,
    BatchFacts,
    InstanceWork,
    MapWork,
    Migration,
    Operator,
    OperatorState,
    Result,
    Share,
    Traits,
    owned,
    plain_names,
)
from tidegate.route.cell import IN_TURN, CellGrid
from tidegate.route.former_owner import Position
from tidegate.route.mapping import Mapping as BucketMapping
from tidegate.route.partitioner import Partitioner
from tidegate.route.reach import Reach
from tidegate.state.bucket_set import BucketSet
from tidegate.state.segment.segment import Segment

PLACEMENTS: dict[str, type[JoinPlacement]] = {
    placement.routing: placement for placement in (KeyPlacement, TurnPlacement, RangePlacement)
}
"""The placements by the name of their routing."""


@dataclass(frozen=True)
class StreamJoin(Operator):
    """A join of two streams. Every tuple is stored in one bucket, and met by later tuples.

    The prefixes name the columns l0, l1, ... and r0, r1, ... `sides` has the side of each input: 0
    left, 1 right. `conjuncts` are the conditions as the query writes them, `reasons` say why this
    method and this routing were chosen, `expected` and `warned` how much is compared without an
    index and put out. `before` is how many tuples of each side came in earlier batches. With a
    `sieve` tuples are shed by concept, and routed by key. `grid` is the first grid of a join that
    is routed by range.
    """

    kind: ClassVar[str] = "join"

    spec: JoinSpec
    sides: tuple[int, ...]
    routing: str
    reasons: tuple[str, ...]
    conjuncts: tuple[str, ...] = ()
    expected: tuple[str, ...] = ()
    warned: tuple[str, ...] = ()
    before: tuple[int, int] = (0, 0)
    remote: bool = False
    sieve: ConceptSieve | None = None
    grid: CellGrid = IN_TURN

    @property
    def order(self) -> PairOrder:
        if not self.spec.kind.tracked:
            return PairOrder()
        return PairOrder("the instant of the decision: pairs, then tuples without a partner")

    @property
    def traits(self) -> Traits:
        return Traits(
            multiplies=True,
            map_steps=("project", "sort"),
            expressions=self.spec.predicate,
            warnings=self.warned,
            counted=SIDES,
            deals_ahead=True,
            dealt_by=self.placement.dealt_by,
        )

    @property
    def partitioner(self) -> Partitioner:
        return self.placement.partitioner

    @cached_property
    def placement(self) -> JoinPlacement:
        """Who stores tuples and who sees them."""
        kind = PLACEMENTS[self.routing]
        return kind(self.spec, self.sides, self.before, self.remote, self.grid)

    @property
    def operation(self) -> Operation:
        return Operation(
            self.kind,
            method=self.spec.method,
            windows=tuple(_window(s.extent) for s in (self.spec.left, self.spec.right)),
            sides=self.sides,
            everywhere=self.placement.spread.everywhere,
        )

    def for_batch(self, facts: BatchFacts) -> StreamJoin:
        left, right = (facts.counts.get(side, 0) for side in SIDES)
        return replace(self, before=(left, right))

    def across_hosts(self) -> StreamJoin:
        return replace(self, remote=True)

    def deal(self, work: MapWork, tuples: pa.Table) -> list[Share]:
        """Give every tuple of a split its bucket; send it to the instances that see it."""
        table, side = plain_names(tuples), self.sides[work.input]
        if self.sieve is not None:
            table = self.sieve.of_split(side, table)
            work.shed.append(tuples.num_rows - table.num_rows)
        return self.placement.deal(work, side, table)

    def run(self, work: InstanceWork, arrived: Sequence[Arrival]) -> Result:
        """Match new tuples with stored ones and with each other; store the instance's own."""
        placement, owners = self.placement, work.mapping.owner_array
        in_order = [self._in_order(side, arrived) for side in range(2)]
        tables, orders = [table for table, _ in in_order], [order for _, order in in_order]
        sieved = None if self.sieve is None else KeptTuples(self.sieve, work)
        if sieved is not None:
            tables, orders = sieved.sieved(tables, orders)
        at = places(orders[0], orders[1])
        news, own, dealt = [], [], []
        for side, table in enumerate(tables):
            bucket: npt.NDArray[np.int32] = table.column(BUCKET).to_numpy()
            owned = owners[bucket] == work.instance
            held = np.ones(len(owned), np.bool_) if placement.spread.holds_all else owned
            asks = placement.asks(work, side, table)
            news.append(News(table, at[side], held, self.before[side], asks))
            own.append(owned)
            dealt.append(bucket)
        work.spans.mark("instance merge")
        instance = InstanceJoin(work, placement)
        parts, sides = instance.parts(news)
        compared = ComparedWork.of(news, placement.within_buckets)
        pieces = in_pieces(parts, sum(map(len, at)), compared)
        kind = self.spec.kind
        keepers = placement.keepers
        partners = [SidePartners(work, self.spec, keepers[i], sides[i]) for i in kind.tracked]
        if partners:
            pieces = OuterRows(self.spec, partners, news).pieces(pieces)
        rows = instance.rows(pieces)
        segments = {SIDES[i]: instance.segments(i, news[i], own[i]) for i in range(2)}
        segments |= {side.part: side.written() for side in partners}
        if sieved is not None:
            segments[FIRST] = sieved.written()
        segments |= placement.written(work, arrived, news)
        if sides:
            instance.leave(sides, news)
        work.spans.mark("instance write")
        counts = {
            "comparisons": placement.comparisons(work, arrived, compared),
            "compared": compared.candidates,
            SIDES[0]: int(own[0].sum()),
            SIDES[1]: int(own[1].sum()),
        }
        counts |= {} if sieved is None else {"shed": sieved.shed}
        return Result(
            rows,
            counts[SIDES[0]] + counts[SIDES[1]],
            segments,
            counts,
            self._divided(work.mapping.buckets, dealt, own, sides, news, compared),
        )

    def _divided(
        self,
        buckets: int,
        dealt: Sequence[npt.NDArray[np.int32]],
        own: Sequence[npt.NDArray[np.bool_]],
        sides: Sequence[SideTuples],
        news: Sequence[News],
        compared: ComparedWork,
    ) -> BucketWork:
        """The work of each bucket: new tuples that it stores, and comparisons with its tuples."""
        touched = stored_work([b[o] for b, o in zip(dealt, own, strict=True)], buckets)
        if compared.rows is not None:
            return touched + pair_work(dealt, compared.rows, buckets)
        for side, tuples in enumerate(sides):
            asking = news[1 - side].table.num_rows
            touched += held_work(tuples.newest, tuples.stored, asking, buckets)
        return touched

    @property
    def state(self) -> OperatorState:
        keepers = self.placement.keepers
        kept: dict[str, Keeper] = dict(zip(SIDES, keepers, strict=True))
        # For any placement: an earlier run may have routed by range and left grids.
        kept[GRIDS] = GridKeeper(keepers[LEFT].way)
        reach: Reach | str = self._reach
        if self.sieve is not None:
            kept[FIRST] = FirstKeeper(self.sieve.pane_us, max(self.sieve.reach))
            reach = "which tuples of a key are kept depends on those before them"
        for side in self.spec.kind.tracked:
            kept[MATCHED[side]] = MarkKeeper(keepers[side])
            reach = "a tuple must meet all its partners in one place to know that it has none"
        return OperatorState(kept, reach, self._migration, self._reads)

    @property
    def _reach(self) -> Reach:
        extents = [self.spec.side(side).extent for side in (LEFT, RIGHT)]
        return Reach(max(e.range_us or 0 for e in extents), max(e.rows or 0 for e in extents))

    def _migration(
        self, frontier_us: int, state: Mapping[str, Sequence[Segment]], counts: Mapping[str, int]
    ) -> Migration | None:
        """Tuples below the frontier stay with the instances that stored them; None without any.

        The tuples of a side that keeps the last n are dead when n more have come.
        """
        if frontier_us == MIN_US or not any(state.get(side) for side in SIDES):
            return None
        positions = []
        for side, name in enumerate(SIDES):
            rows, count = self.spec.side(side).extent.rows, counts.get(name, 0)
            if rows is not None:
                positions.append(Position(name, count, count + rows))
        return Migration(frontier_us, frontier_us + self._reach.us, tuple(positions))

    def _reads(self, what: str, mapping: BucketMapping, instance: int) -> BucketSet:
        if what not in SIDES:
            return owned(what, mapping, instance)
        owners, side = mapping.owner_array, SIDES.index(what)
        spread = self.placement.spread
        return BucketSet.where(spread.sees(instance, side, owners, mapping.instances))

    def title(self) -> str:
        left, right = (_extent(s.extent) for s in (self.spec.left, self.spec.right))
        return f"{self.spec.kind.summary}, keeps {left} of the left side and {right} of the right"

    def details(self, texts: Mapping[str, str]) -> list[str]:
        spec = self.spec
        lines = [f"method: {self.reasons[0]}", *self.expected]
        probed = [i.text for i in spec.probe.indexed]
        lines += [f"index: {text}" for text in probed]
        for number, branch in enumerate(spec.branches):
            index = " AND ".join(i.text for i in branch.indexed)
            lines.append(f"index of branch {number + 1}: {index}")
        for number, text in enumerate(self.conjuncts):
            if not self._is_among(text, probed):
                compiled = " (compiled)" if number in spec.compiled else ""
                lines.append(f"then: {text}{compiled}")
        if spec.function is not None:
            lines.append(f"then: the function {qualified_name(spec.function.call)}")
        if self.sieve is not None:
            lines.append(f"sheds: {self.sieve.text}")
        lines += [f"routing: {self.reasons[1]}", *self.placement.spread.lines]
        for side in spec.kind.tracked if spec.kind.unmatched else ():
            after = _extent(spec.side(side).extent)
            lines.append(f"without a partner: a {SIDES[side]} tuple is put out after {after}")
        return [*lines, "pairs: one task per instance"]

    def _is_among(self, text: str, probed: list[str]) -> bool:
        """Whether the index answers a conjunct, by itself or as one end of a band."""
        ends = {text, *(f"{text} AND {other}" for other in self.conjuncts)}
        ends |= {f"{other} AND {text}" for other in self.conjuncts}
        return any(index in ends for index in probed)

    def _in_order(self, side: int, arrived: Sequence[Arrival]) -> tuple[pa.Table, list[Ints]]:
        """The new tuples of a side in the total order, and their columns of that order."""
        mine = [a.rows for a in arrived if self.sides[a.input] == side and not a.channel]
        if not mine:
            table = _schema(self.spec, side).empty_table()
            return table, order_columns(table)
        table = (pa.concat_tables(mine) if len(mine) > 1 else mine[0]).combine_chunks()
        columns = order_columns(table)
        order = np.lexsort(columns[::-1])
        if (order[1:] < order[:-1]).any():
            table, columns = table.take(pa.array(order)), [column[order] for column in columns]
        return table, columns


def qualified_name(function: Callable[..., object]) -> str:
    """The module and name of a function, for people and fingerprints."""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{getattr(function, '__module__', None)}.{name}"


def _schema(spec: JoinSpec, side: int) -> pa.Schema:
    order = [(c, pa.int64()) for c in ORDER]
    return pa.schema([*order, (BUCKET, pa.int32()), *spec.side(side).columns])


def _window(extent: WindowExtent) -> Lookback:
    """The window of a side as the model describes it."""
    if extent.range_us is not None:
        return Lookback(seconds=max(extent.range_us, 1) / 1e6)  # of nothing: of one instant
    assert extent.rows is not None, "a window is of time or of tuples"
    return Lookback(rows=extent.rows)


def _extent(extent: WindowExtent) -> str:
    if extent.range_us is not None:
        return duration_text(extent.range_us)
    return f"{extent.rows} tuples"
