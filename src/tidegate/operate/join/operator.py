"""A join as an operator, between dealt tuples of two sides and the pairs that match."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.batch import ORDER
from tidegate.collect.pair import PairOrder
from tidegate.duration import duration_text
from tidegate.expression.tree import Expr
from tidegate.operate.join.match import (
    BUCKET,
    RANK,
    Held,
    arranged,
    match,
    places,
    total_order,
)
from tidegate.operate.join.output import output_rows
from tidegate.operate.join.search import News
from tidegate.operate.join.spec import Extent, JoinSpec
from tidegate.operate.join.spread import OVER_GRID, TO_ALL, TO_OWNER, seen_by
from tidegate.operate.join.state import BY_KEY, SIDES, SideKeeper
from tidegate.operate.kernels.expression import evaluate
from tidegate.operate.opened import mapped_segments
from tidegate.operate.operator import (
    Arrival,
    BatchFacts,
    InstanceWork,
    MapWork,
    Operator,
    Result,
    Share,
    plain_names,
)
from tidegate.route.hash import Hash
from tidegate.route.mapping import Mapping as BucketMapping
from tidegate.route.partitioner import Partitioner, Router
from tidegate.route.round_robin import RoundRobin
from tidegate.state.bucket_set import BucketSet
from tidegate.state.segment import Segment, read_segment, write_segment

_SMALL_ROWS = 1_024


@dataclass(frozen=True)
class StreamJoin(Operator):
    """Every tuple is stored in one bucket; new ones are compared with what is stored.

    It works on what the prefixes put out: l0, l1, ... and r0, r1, ... `sides` says by input which
    side it feeds: 0 left, 1 right. `conjuncts` are the conditions of the predicate as the query
    writes them, `reasons` why this method and routing. `comparisons` and `warned` say how much is
    compared without an index. `before` is how many tuples of each side came in earlier batches.
    """

    kind: ClassVar[str] = "join"
    counted: ClassVar[tuple[str, ...]] = SIDES
    totals: ClassVar[tuple[str, ...]] = ("comparisons", "compared")
    map_steps: ClassVar[tuple[str, ...]] = ("project", "sort")

    spec: JoinSpec
    sides: tuple[int, ...]
    routing: str
    reasons: tuple[str, ...]
    conjuncts: tuple[str, ...] = ()
    comparisons: str | None = None
    warned: str | None = None
    before: tuple[int, int] = (0, 0)
    remote: bool = False

    order = PairOrder()

    @property
    def partitioner(self) -> Partitioner:
        return Hash() if self.routing == BY_KEY else RoundRobin()

    @property
    def spread(self) -> str:
        """Which instances see a new tuple; all of them where windows count tuples."""
        if self.spec.counts:
            return TO_ALL
        if self.routing == BY_KEY:
            return TO_OWNER
        return OVER_GRID if self.remote else TO_ALL

    def for_batch(self, facts: BatchFacts) -> StreamJoin:
        left, right = (facts.counts.get(side, 0) for side in SIDES)
        return replace(self, before=(left, right))

    def across_hosts(self) -> StreamJoin:
        return replace(self, remote=True)

    def deal(self, work: MapWork, tuples: pa.Table) -> list[Share]:
        """Give every tuple of a split its bucket, and send it to the instances that see it."""
        table, side = plain_names(tuples), self.sides[work.input]
        bucket = self._buckets(work.router(self.partitioner), side, table)
        table = table.add_column(3, BUCKET, pa.array(bucket))
        if self.spread == TO_ALL:
            return [Share.for_all(table)]
        owners = np.asarray(work.mapping.owners, np.int32)[bucket]
        shares = []
        for instance in range(work.mapping.instances):
            seen = seen_by(instance, self.spread, side, owners, work.mapping.instances)
            mine = table.filter(pa.array(seen))
            if mine.num_rows:
                shares.append(Share(instance, mine))
        return shares

    def run(self, work: InstanceWork, arrived: Sequence[Arrival]) -> Result:
        """Match new tuples with those held here and among themselves; keep the instance's own."""
        owners = np.asarray(work.mapping.owners, np.int32)
        tables = [self._in_order(side, arrived) for side in range(2)]
        at = places(tables[0], tables[1])
        news, own = [], []
        for side, table in enumerate(tables):
            bucket: npt.NDArray[np.int32] = table.column(BUCKET).to_numpy()
            owned = owners[bucket] == work.instance
            held = owned if self.spread == TO_ALL else np.ones(len(owned), np.bool_)
            news.append(News(table, at[side], held, self.before[side]))
            own.append(owned)
        work.spans.mark("instance merge")
        stored = [self._stored(work, side, owners) for side in range(2)]
        work.spans.mark("instance read state")
        wanted = {name for port in work.ports for name in port.columns}
        found, compared = match(self.spec, (news[0], news[1]), (stored[0], stored[1]), wanted)
        work.spans.mark("instance match")
        rows = tuple(output_rows(port, self.spec, found) for port in work.ports)
        work.spans.mark("instance output")
        segments = {SIDES[side]: self._kept(work, side, news[side], own[side]) for side in range(2)}
        work.spans.mark("instance write")
        counts = {
            "comparisons": compared.implied,
            "compared": compared.made,
            SIDES[0]: int(own[0].sum()),
            SIDES[1]: int(own[1].sum()),
        }
        return Result(rows, counts[SIDES[0]] + counts[SIDES[1]], segments, counts)

    def keepers(self) -> Mapping[str, SideKeeper]:
        return {name: self._keeper(i) for i, name in enumerate(SIDES)}

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return self.spec.predicate

    @property
    def warnings(self) -> tuple[str, ...]:
        return () if self.warned is None else (self.warned,)

    def title(self) -> str:
        left, right = (_extent(s.extent) for s in (self.spec.left, self.spec.right))
        return f"join, keeps {left} of the left side and {right} of the right"

    def details(self, texts: Mapping[str, str]) -> list[str]:
        spec = self.spec
        lines = [f"method: {self.reasons[0]}"]
        if self.comparisons is not None:
            lines.append(f"comparisons: {self.comparisons}")
        probed = [i.text for i in spec.probe.indexed]
        lines += [f"index: {text}" for text in probed]
        for number, branch in enumerate(spec.branches):
            index = " AND ".join(i.text for i in branch.indexed)
            lines.append(f"index of branch {number + 1}: {index}")
        lines += [f"then: {text}" for text in self.conjuncts if not self._is_among(text, probed)]
        if spec.function is not None:
            lines.append(f"then: the function {qualified_name(spec.function.call)}")
        return [*lines, f"routing: {self.reasons[1]}", "pairs: one task per instance"]

    def _is_among(self, text: str, probed: list[str]) -> bool:
        """Whether a conjunct is one that the index answers, alone or as one end of a band."""
        ends = {text, *(f"{text} AND {other}" for other in self.conjuncts)}
        ends |= {f"{other} AND {text}" for other in self.conjuncts}
        return any(index in ends for index in probed)

    def _keeper(self, side: int) -> SideKeeper:
        return SideKeeper(self.spec, self.routing, side)

    def _buckets(self, router: Router, side: int, table: pa.Table) -> npt.NDArray[np.int32]:
        keys: list[pa.Array] = []
        if self.routing == BY_KEY:
            keys = [evaluate(i.value(side), table) for i in self.spec.equalities]
        return router.buckets(keys, table.num_rows)

    def _in_order(self, side: int, arrived: Sequence[Arrival]) -> pa.Table:
        """The new tuples of a side in the total order."""
        mine = [a.rows for a in arrived if self.sides[a.input] == side]
        if not mine:
            return _schema(self.spec, side).empty_table()
        table = pa.concat_tables(mine).combine_chunks()
        order = total_order(table)
        if (order[1:] < order[:-1]).any():
            table = table.take(pa.array(order))
        return table

    def _stored(self, work: InstanceWork, side: int, owners: npt.NDArray[np.int32]) -> list[Held]:
        """The stored tuples of a side that an instance compares with, segment by segment."""
        # Where all new tuples are seen, the stored ones are divided.
        spread = TO_OWNER if self.spread == TO_ALL else self.spread
        seen = seen_by(work.instance, spread, side, owners, work.mapping.instances)
        wanted, keeper = BucketSet.where(seen), self._keeper(side)
        way = keeper.way
        horizon = keeper.horizon(work.previous_us, self.before[side])
        live = [s for s in work.state.get(SIDES[side], ()) if not horizon.passed(s)]
        known = [s for s in live if s.tag == way and s.buckets & wanted]
        own = [s for s in known if s.buckets & wanted == s.buckets]
        owner = (work.query, work.instance, side, way)
        mapped = mapped_segments(work.store, owner, own, keeper.columns)
        held = []
        for segment in known:
            mine = segment.buckets & wanted
            # Another query may have written the same file at the same place before.
            file = (work.store.location, segment.name, segment.checksum)
            rows = mapped.get(segment.name)
            if rows is None:
                rows = read_segment(work.store, segment, mine, keeper.columns)
            held.append(Held(rows, (work.query, *file, way, mine)))
        for segment in live:
            if segment.tag != way:
                rows = read_segment(work.store, segment, columns=keeper.columns)
                held.append(Held(self._adapted(work.mapping, side, rows, seen)))
        return _fewer(self.spec, side, held)

    def _adapted(
        self, mapping: BucketMapping, side: int, rows: pa.Table, seen: npt.NDArray[np.bool_]
    ) -> pa.Table:
        """The instance's tuples of a segment that an earlier run arranged or dealt otherwise.

        Tuples that were dealt in turn stay where they are; by key they belong where keys are.
        """
        bucket = rows.column(BUCKET).to_numpy()
        if self.routing == BY_KEY:
            bucket = self._buckets(Router(self.partitioner, mapping), side, rows)
        rows = rows.filter(pa.array(seen[bucket])).combine_chunks()
        return arranged(self.spec, side, rows.take(pa.array(total_order(rows))))

    def _kept(
        self, work: InstanceWork, side: int, news: News, own: npt.NDArray[np.bool_]
    ) -> tuple[Segment, ...]:
        """Store the instance's own new tuples that a later one may still meet."""
        keeper, table = self._keeper(side), news.table
        if keeper.order == RANK:
            table = table.append_column(RANK, pa.array(news.ranks))
        horizon = keeper.horizon(work.frontier_us, news.before + table.num_rows)
        kept = own & (table.column(keeper.order).to_numpy() >= horizon.needed)
        if not kept.any():
            return ()
        name = f"{work.name}-{SIDES[side]}"
        key = None if self.spec.in_time_order else news.key(self.spec.probe, side)[kept]
        table = arranged(self.spec, side, table.filter(pa.array(kept)).combine_chunks(), key)
        return (write_segment(work.store, name, table, keeper.order, keeper.way, grouped=False),)


def qualified_name(function: Callable[..., object]) -> str:
    """A function by its module and name, for people and fingerprints."""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{getattr(function, '__module__', None)}.{name}"


def _fewer(spec: JoinSpec, side: int, held: Sequence[Held]) -> list[Held]:
    """Small runs as one: sorting them again costs less than searching them one by one."""
    large = [h for h in held if h.table.num_rows > _SMALL_ROWS]
    small = [h.table for h in held if h.table.num_rows <= _SMALL_ROWS]
    if len(small) <= 1:
        return list(held)
    rows = pa.concat_tables(small).combine_chunks()
    rows = rows.take(pa.array(total_order(rows)))
    return [*large, Held(arranged(spec, side, rows))]


def _schema(spec: JoinSpec, side: int) -> pa.Schema:
    order = [(c, pa.int64()) for c in ORDER]
    return pa.schema([*order, (BUCKET, pa.int32()), *spec.side(side).columns])


def _extent(extent: Extent) -> str:
    if extent.range_us is not None:
        return duration_text(extent.range_us)
    return f"{extent.rows} tuples"
