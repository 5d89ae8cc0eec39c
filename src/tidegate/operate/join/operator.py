"""A join as an operator, between dealt tuples of two sides and the pairs that match."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.batch import MIN_US, ORDER, TS, ints
from tidegate.collect.pair import PairOrder
from tidegate.duration import duration_text
from tidegate.expression.tree import Expr
from tidegate.memory import MEMORY
from tidegate.model.operation import Operation
from tidegate.model.window import TimeWindow, TupleWindow, Window
from tidegate.operate.bucket_work import BucketWork
from tidegate.operate.join.chain import BUCKET, Chain, ChainRun
from tidegate.operate.join.concept import FIRST, ConceptSieve, FirstKeeper, FirstTuples
from tidegate.operate.join.division import held_work, pair_work, stored_work
from tidegate.operate.join.left import Found, find, leave
from tidegate.operate.join.match import (
    RANK,
    Held,
    Matching,
    Pairs,
    Stored,
    order_columns,
    places,
    with_key,
)
from tidegate.operate.join.newest import Newest, newest_of
from tidegate.operate.join.output import output_rows
from tidegate.operate.join.pieces import in_pieces
from tidegate.operate.join.search import Ints, News, Work
from tidegate.operate.join.spec import LEFT, RIGHT, Extent, JoinSpec
from tidegate.operate.join.spread import OVER_GRID, TO_ALL, TO_OWNER, Sight, seen_by, sights
from tidegate.operate.join.state import BY_KEY, SIDES, SideKeeper
from tidegate.operate.join.stored import StoredSegments, fewer
from tidegate.operate.keeper import Keeper
from tidegate.operate.kernels.expression import evaluate
from tidegate.operate.operator import (
    Arrival,
    BatchFacts,
    InstanceWork,
    MapWork,
    Migration,
    Operator,
    Result,
    Share,
    plain_names,
)
from tidegate.operate.spill import Spill
from tidegate.route.former import Position
from tidegate.route.hash import Hash
from tidegate.route.mapping import Mapping as BucketMapping
from tidegate.route.partitioner import Partitioner, Router
from tidegate.route.reach import Reach
from tidegate.route.round_robin import RoundRobin
from tidegate.state.bucket_set import BucketSet
from tidegate.state.segment import Segment, write_segment

_MOST_NEW_ROWS = 8_192
"""What a batch with more new tuples of a side leaves is mapped: it is read once for many rows."""

_SHARE = 32
"""A side of an instance keeps tuples up to this part of the memory for caches."""

_STORED = "stored tuples"


@dataclass(frozen=True)
class _SideTuples:
    """The tuples of a side in one batch: the newest, the others, and what was in memory."""

    newest: Newest
    stored: Stored
    chain: Chain | None


@dataclass(frozen=True)
class StreamJoin(Operator):
    """Every tuple is stored in one bucket; new ones are compared with what is stored.

    It works on what the prefixes put out: l0, l1, ... and r0, r1, ... `sides` says by input which
    side it feeds: 0 left, 1 right. `conjuncts` are the conditions of the predicate as the query
    writes them, `reasons` why this method and routing. `expected` and `warned` say how much is
    compared without an index, and put out. `before` is how many tuples of each side came in earlier
    batches. `sieve` says which tuples are kept where others are shed by concept; tuples are then
    routed by their keys.
    """

    kind: ClassVar[str] = "join"
    multiplies: ClassVar[bool] = True
    counted: ClassVar[tuple[str, ...]] = SIDES
    totals: ClassVar[tuple[str, ...]] = ("comparisons", "compared")
    map_steps = ("project", "sort")

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

    @property
    def operation(self) -> Operation:
        return Operation(
            self.kind,
            method=self.spec.method,
            windows=tuple(_window(s.extent) for s in (self.spec.left, self.spec.right)),
            sides=self.sides,
            everywhere=self.spread == TO_ALL,
        )

    def for_batch(self, facts: BatchFacts) -> StreamJoin:
        left, right = (facts.counts.get(side, 0) for side in SIDES)
        return replace(self, before=(left, right))

    def across_hosts(self) -> StreamJoin:
        return replace(self, remote=True)

    def deal(self, work: MapWork, tuples: pa.Table) -> list[Share]:
        """Give every tuple of a split its bucket, and send it to the instances that see it."""
        table, side = plain_names(tuples), self.sides[work.input]
        if self.sieve is not None:
            table = self.sieve.of_split(side, table)
            work.shed.append(tuples.num_rows - table.num_rows)
        bucket = self._buckets(work.router(self.partitioner), side, table)
        table = table.add_column(3, BUCKET, pa.array(bucket))
        if self.spread == TO_ALL:
            return [Share.for_all(table)]
        shares = []
        for instance in range(work.mapping.running):
            seen = self._seen(work.mapping, instance, side, bucket)
            mine = table.filter(pa.array(seen))
            if mine.num_rows:
                shares.append(Share(instance, mine))
        return shares

    def run(self, work: InstanceWork, arrived: Sequence[Arrival]) -> Result:
        """Match new tuples with those held here and among themselves; keep the instance's own."""
        owners = work.mapping.owner_array
        first = None if self.sieve is None else FirstTuples(self.sieve, work)
        ordered = (self._in_order(side, arrived, first) for side in range(2))
        tables, orders = zip(*ordered, strict=True)
        at = places(orders[0], orders[1])
        news, own, dealt = [], [], []
        for side, table in enumerate(tables):
            bucket: npt.NDArray[np.int32] = table.column(BUCKET).to_numpy()
            owned = owners[bucket] == work.instance
            held = np.ones(len(owned), np.bool_) if self.spread == OVER_GRID else owned
            news.append(News(table, at[side], held, self.before[side]))
            own.append(owned)
            dealt.append(bucket)
        work.spans.mark("instance merge")
        in_memory = find(work, self._stored(work))
        sides: list[_SideTuples] = []
        compared = Work.of(news, self.routing == BY_KEY)
        if self.spread == OVER_GRID and work.mapping.formers:
            parts, compared = self._by_epoch(work, news), Work()
        else:
            part, sides = self._matching(work, news, in_memory)
            parts = [part]
        rows = self._rows(work, in_pieces(parts, sum(map(len, at)), compared))
        segments = {SIDES[side]: self._kept(work, side, news[side], own[side]) for side in range(2)}
        if first is not None:
            segments[FIRST] = first.written()
        if sides:
            self._leave(work, sides, news)
        work.spans.mark("instance write")
        counts = {
            "comparisons": compared.implied,
            "compared": compared.candidates,
            SIDES[0]: int(own[0].sum()),
            SIDES[1]: int(own[1].sum()),
        }
        counts |= {} if first is None else {"shed": first.shed}
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
        sides: Sequence[_SideTuples],
        news: Sequence[News],
        compared: Work,
    ) -> BucketWork:
        """How the work was divided among the buckets: new tuples, and what they met."""
        touched = stored_work([b[o] for b, o in zip(dealt, own, strict=True)], buckets)
        if compared.rows is not None:
            return touched + pair_work(dealt, compared.rows, buckets)
        for side, tuples in enumerate(sides):
            asking = news[1 - side].table.num_rows
            touched += held_work(tuples.newest, tuples.stored, asking, buckets)
        return touched

    def _rows(self, work: InstanceWork, pieces: Iterator[list[Pairs]]) -> tuple[pa.Table, ...]:
        """The output rows by port, made piece by piece and spilled where they are many."""
        spills = [Spill.of(work, i) for i in range(len(work.ports))]
        try:
            for found in pieces:
                work.spans.mark("instance match")
                for port, spill in zip(work.ports, spills, strict=True):
                    spill.add(output_rows(port, self.spec, found))
                work.spans.mark("instance output")
            return tuple(spill.table() for spill in spills)
        finally:
            for spill in spills:
                spill.drop()

    def _matching(
        self,
        work: InstanceWork,
        news: Sequence[News],
        in_memory: Sequence[Found],
        sights: Sequence[Sequence[Sight]] | None = None,
    ) -> tuple[Matching, list[_SideTuples]]:
        """New tuples and the stored ones they meet, or those of them that are in sight."""
        sights = self._sights(work) if sights is None else sights
        sides = [self._side(work, i, news, in_memory[i], sights[i]) for i in range(2)]
        work.spans.mark("instance read state")
        newest, stored = (sides[0].newest, sides[1].newest), (sides[0].stored, sides[1].stored)
        by_row = self.routing == BY_KEY
        return Matching(self.spec, (news[0], news[1]), newest, stored, by_row), sides

    def _by_epoch(self, work: InstanceWork, news: Sequence[News]) -> list[Matching]:
        """The same where epochs have grids of their own, while former owners finish something.

        What was stored in an epoch lies over its grid, and a new tuple meets it where the grid has
        both. So each epoch has the new tuples that its grid gives to this instance.
        """
        parts = []
        # Nothing is left for the next batch, so nothing is put together for it.
        nothing = [Found(Chain(self._begin(work, side))) for side in range(2)]
        for epoch in zip(*self._sights(work), strict=True):
            asking = []
            for new, sight in zip(news, epoch, strict=True):
                seen = np.flatnonzero(sight.buckets[new.table.column(BUCKET).to_numpy()])
                held = np.full(len(seen), sight.newest)
                asking.append(News(new.table.take(seen), new.place[seen], held, new.before))
            parts.append(self._matching(work, asking, nothing, [[s] for s in epoch])[0])
        return parts

    @property
    def reach(self) -> Reach | str:
        if self.sieve is not None:
            return "which tuples of a key are kept depends on those before them"
        return self._reach

    @property
    def _reach(self) -> Reach:
        extents = [self.spec.side(side).extent for side in (LEFT, RIGHT)]
        return Reach(max(e.range_us or 0 for e in extents), max(e.rows or 0 for e in extents))

    def migration(
        self, frontier_us: int, state: Mapping[str, Sequence[Segment]], counts: Mapping[str, int]
    ) -> Migration | None:
        """Tuples stay with who has stored them; those from the frontier on are new.

        Of a side that keeps the last n tuples those are dead when n more have come.
        """
        if frontier_us == MIN_US or not any(state.values()):
            return None
        positions = []
        for side, name in enumerate(SIDES):
            rows, count = self.spec.side(side).extent.rows, counts.get(name, 0)
            if rows is not None:
                positions.append(Position(name, count, count + rows))
        return Migration(frontier_us, frontier_us + self._reach.us, tuple(positions))

    def reads(self, what: str, mapping: BucketMapping, instance: int) -> BucketSet:
        if what == FIRST:
            return super().reads(what, mapping, instance)
        spread = TO_OWNER if self.spread == TO_ALL else self.spread
        owners, side = mapping.owner_array, SIDES.index(what)
        return BucketSet.where(seen_by(instance, spread, side, owners, mapping.instances))

    def keepers(self) -> Mapping[str, Keeper]:
        kept: dict[str, Keeper] = {name: self._keeper(i) for i, name in enumerate(SIDES)}
        if self.sieve is not None:
            kept[FIRST] = FirstKeeper(self.sieve.pane_us)
        return kept

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return self.spec.predicate

    @property
    def warnings(self) -> tuple[str, ...]:
        return self.warned

    def title(self) -> str:
        left, right = (_extent(s.extent) for s in (self.spec.left, self.spec.right))
        return f"join, keeps {left} of the left side and {right} of the right"

    def details(self, texts: Mapping[str, str]) -> list[str]:
        spec = self.spec
        lines = [f"method: {self.reasons[0]}", *self.expected]
        probed = [i.text for i in spec.probe.indexed]
        lines += [f"index: {text}" for text in probed]
        for number, branch in enumerate(spec.branches):
            index = " AND ".join(i.text for i in branch.indexed)
            lines.append(f"index of branch {number + 1}: {index}")
        lines += [f"then: {text}" for text in self.conjuncts if not self._is_among(text, probed)]
        if spec.function is not None:
            lines.append(f"then: the function {qualified_name(spec.function.call)}")
        if self.sieve is not None:
            lines.append(f"sheds: {self.sieve.text}")
        return [*lines, f"routing: {self.reasons[1]}", "pairs: one task per instance"]

    def _is_among(self, text: str, probed: list[str]) -> bool:
        """Whether a conjunct is one that the index answers, alone or as one end of a band."""
        ends = {text, *(f"{text} AND {other}" for other in self.conjuncts)}
        ends |= {f"{other} AND {text}" for other in self.conjuncts}
        return any(index in ends for index in probed)

    def _keeper(self, side: int) -> SideKeeper:
        return self._keepers[side]

    @cached_property
    def _keepers(self) -> tuple[SideKeeper, SideKeeper]:
        return (
            SideKeeper(self.spec, self.routing, LEFT),
            SideKeeper(self.spec, self.routing, RIGHT),
        )

    def _buckets(self, router: Router, side: int, table: pa.Table) -> npt.NDArray[np.int32]:
        keys: list[pa.Array] = []
        if self.routing == BY_KEY:
            keys = [evaluate(i.value(side), table) for i in self.spec.equalities]
        return router.buckets(keys, table.num_rows)

    def _in_order(
        self, side: int, arrived: Sequence[Arrival], first: FirstTuples | None
    ) -> tuple[pa.Table, list[Ints]]:
        """The new tuples of a side in the total order, and the columns that place them in it.

        Where the join sheds, they are those that are kept.
        """
        mine = [a.rows for a in arrived if self.sides[a.input] == side]
        if not mine:
            table = _schema(self.spec, side).empty_table()
            return table, order_columns(table)
        table = (pa.concat_tables(mine) if len(mine) > 1 else mine[0]).combine_chunks()
        columns = order_columns(table)
        order = np.lexsort(columns[::-1])
        if (order[1:] < order[:-1]).any():
            table, columns = table.take(pa.array(order)), [column[order] for column in columns]
        if first is not None:
            table, kept = first.sieved(side, table)
            columns = [column[kept] for column in columns]
        return table, columns

    def _side(
        self,
        work: InstanceWork,
        side: int,
        news: Sequence[News],
        in_memory: Found,
        sights: Sequence[Sight],
    ) -> _SideTuples:
        """The tuples of a side that are compared with: what is in memory is not read again."""
        stored, chain = self._segments(work, side, sights), in_memory.chain
        begin, needed = self._begin(work, side), stored.horizon.needed
        held: list[Held] = []
        few = news[side].table.num_rows <= _MOST_NEW_ROWS
        if chain is not None and in_memory.gained is not None:
            chain = stored.taken_over(chain, in_memory.gained, begin) if few else None
        if chain is not None and chain.since <= needed:
            stored.release()
        elif chain is not None:
            chain = chain.apart([(s.low, s.high) for s in stored.live], begin)
            held = stored.read([s for s in stored.live if s.low < chain.since])
        elif few:
            chain, held = stored.newest(begin, _most_bytes())
        else:
            held = stored.read(stored.live)
        chain = None if chain is None else chain.needed(needed)
        behind = chain.newest if few and chain is not None else None
        asked = news[1 - side].table.num_rows > 0
        newest = newest_of(self.spec, side, news[side], behind, asked)
        runs: Sequence[ChainRun] = ()
        if chain is not None:
            runs = chain.others if newest.behind else chain.runs
        held = fewer(self.spec, side, held)
        return _SideTuples(newest, Stored(held, runs, needed), chain if few else None)

    def _seen(
        self, mapping: BucketMapping, instance: int, side: int, bucket: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.bool_]:
        """Which new tuples an instance sees, also to compare them with what it has of before."""
        if not mapping.formers:
            owners = mapping.owner_array[bucket]
            return seen_by(instance, self.spread, side, owners, mapping.instances)
        every = sights(instance, self.spread, side, mapping)
        return np.asarray(np.any([sight.buckets[bucket] for sight in every], axis=0))

    def _sights(self, work: InstanceWork) -> list[list[Sight]]:
        """What the instance sees of what is stored, by side."""
        # Where all new tuples are seen, the stored ones are divided.
        spread = TO_OWNER if self.spread == TO_ALL else self.spread
        return [sights(work.instance, spread, side, work.mapping) for side in range(2)]

    def _segments(self, work: InstanceWork, side: int, sights: Sequence[Sight]) -> StoredSegments:
        keeper = self._keeper(side)
        by_key = None
        if self.routing == BY_KEY:
            by_key = partial(self._buckets, Router(self.partitioner, work.mapping), side)
        return StoredSegments(
            work,
            keeper,
            keeper.horizon(work.previous_us, self.before[side]),
            sights,
            by_key,
        )

    def _begin(self, work: InstanceWork, side: int) -> int:
        """The coordinate from which on tuples are new."""
        return work.previous_us if self._keeper(side).order == TS else self.before[side]

    def _leave(
        self, work: InstanceWork, sides: Sequence[_SideTuples], news: Sequence[News]
    ) -> None:
        """Leave in memory what the next batch compares with, where it is little enough."""
        chains = []
        for side, tuples in enumerate(sides):
            newest, chain = tuples.newest, tuples.chain
            if newest.terms is None or chain is None:
                return
            keeper = self._keeper(side)
            count = news[side].before + news[side].table.num_rows
            needed = keeper.horizon(work.frontier_us, count).needed
            kept = newest.coordinate >= needed
            since = self._begin(work, side)
            if newest.behind:
                assert chain.newest is not None
                since = chain.newest.since
            run = newest.stored(kept, since) if kept.any() else None
            end = work.frontier_us if keeper.order == TS else count
            chains.append(chain.grown(run, needed=needed, end=end, most_bytes=_most_bytes()))
        leave(work, self._stored(work), (chains[LEFT], chains[RIGHT]))

    def _stored(self, work: InstanceWork) -> str:
        """The name of what stays in memory; over a grid, whose tuples are seen is up to all."""
        if self.spread != OVER_GRID:
            return _STORED
        return f"{_STORED} {zlib.crc32(work.mapping.owner_array.tobytes())}"

    def _kept(
        self, work: InstanceWork, side: int, news: News, own: npt.NDArray[np.bool_]
    ) -> tuple[Segment, ...]:
        """Store the instance's own new tuples that a later one may still meet."""
        keeper, table = self._keeper(side), news.table
        if keeper.order == RANK:
            table = table.append_column(RANK, pa.array(news.ranks))
        horizon = keeper.horizon(work.frontier_us, news.before + table.num_rows)
        kept = np.flatnonzero(own & (ints(table, keeper.order) >= horizon.needed))
        if not len(kept):
            return ()
        name = f"{work.name}-{SIDES[side]}"
        key = None
        if not self.spec.in_time_order:
            key = news.key(self.spec.probe, side)[kept]
            order = np.argsort(key, kind="stable")
            kept, key = kept[order], key[order]
        table = with_key(table.take(pa.array(kept)), key)
        return (write_segment(work.store, name, table, keeper.order, keeper.way, grouped=False),)


def qualified_name(function: Callable[..., object]) -> str:
    """A function by its module and name, for people and fingerprints."""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{getattr(function, '__module__', None)}.{name}"


def _most_bytes() -> int:
    """How much one side of an instance keeps in memory."""
    return MEMORY.limit_bytes // _SHARE


def _schema(spec: JoinSpec, side: int) -> pa.Schema:
    order = [(c, pa.int64()) for c in ORDER]
    return pa.schema([*order, (BUCKET, pa.int32()), *spec.side(side).columns])


def _window(extent: Extent) -> Window:
    """As the model has it."""
    if extent.range_us is not None:
        return TimeWindow(max(extent.range_us, 1) / 1e6)  # of nothing: of one instant
    assert extent.rows is not None, "a window is of time or of tuples"
    return TupleWindow(extent.rows)


def _extent(extent: Extent) -> str:
    if extent.range_us is not None:
        return duration_text(extent.range_us)
    return f"{extent.rows} tuples"
