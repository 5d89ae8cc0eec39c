"""Finds the pairs of the new tuples of a batch with the tuples before them.

New tuples of one side ask the other side: tables of stored tuples, and the new tuples that are
stored now. Stored tuples are in the order that the method searches: that of the index, or of time
for a scan and a union. `search` and `union` give candidates, the predicate decides on them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial

import numpy as np
import pyarrow as pa

from tidegate.batch import MIN_US, TS, ints
from tidegate.errors import TaskError
from tidegate.expression.tree import Expr
from tidegate.operate.join.chain.chain import ChainRun
from tidegate.operate.join.chain.newest import Newest
from tidegate.operate.join.chain.part import BucketPart
from tidegate.operate.join.chain.run_index import Floats, SearchableRun, Terms, kept, known, let_go
from tidegate.operate.join.kind import LEFT, RIGHT
from tidegate.operate.join.pair_step import Candidates
from tidegate.operate.join.predicate.bound import key_of, value_of
from tidegate.operate.join.predicate.decide import GatheredRows, joined, true_of
from tidegate.operate.join.predicate.program import ASKING, STORED, PairProgram
from tidegate.operate.join.predicate.program_columns import SideColumns, pair_run
from tidegate.operate.join.search import (
    Ask,
    ComparedWork,
    IndexedRun,
    Ints,
    News,
    candidates,
    candidates_of,
    implied,
)
from tidegate.operate.join.spec import JoinSpec, Probe
from tidegate.operate.join.union import union
from tidegate.operate.kernels.join.program import PairRun

RANK = "rank"
"""The column of the number of a tuple in its side, where windows count tuples."""

_EVERYTHING = Probe((), None)
"""No index and no test: every pair of the window is a candidate."""

_FEW_PAIRS = 16_384
"""Candidates are collected up to this many before the predicate is evaluated on them.

One evaluation has a fixed cost of many pairs, and runs may give few candidates each.
"""


@dataclass(frozen=True)
class MatchedPairs:
    """Pairs of tuples, row by row; the later tuple of each is of the side `later`.

    `place` is the later tuple's place among the new tuples. For tuples without a partner the side
    `later` is missing, and `decided` has the instants at which that became certain.
    """

    left: GatheredRows
    right: GatheredRows
    later: int
    place: Ints
    decided: Ints | None = None

    def take(self, kept: Ints) -> MatchedPairs:
        """Some of the pairs; not for tuples without a partner."""
        if len(kept) == len(self.place):
            return self
        return MatchedPairs(
            self.left.take(kept), self.right.take(kept), self.later, self.place[kept]
        )


@dataclass(frozen=True)
class HeldTuples:
    """Stored tuples of a side, in the order in which they are searched.

    `token` names the table in the caches of this process, so that its index is made once; None
    for tables that every batch makes anew. Where `part` is given, only its tuples are searched.
    Where they are known, `least` is the least coordinate, `key` has the keys that the table is
    sorted by, and `by_bucket` counts the tuples of each bucket.
    """

    table: pa.Table
    token: Hashable | None = None
    part: BucketPart | None = None
    least: int | None = None
    key: Floats | None = None
    by_bucket: Ints | None = None

    def columns(self, program: PairProgram) -> SideColumns:
        """The columns that the compiled predicate reads, of the whole table."""
        compute = partial(SideColumns.of, program, STORED, self.table)
        return known(self.token, compute, "columns", program)

    @property
    def own(self) -> pa.Table:
        """The tuples that are searched, in a table of their own."""
        if self.part is None or self.part.is_whole:
            return self.table
        return self.table.filter(pa.array(self.part.has(np.arange(self.table.num_rows))))


@dataclass(frozen=True)
class StoredTuples:
    """The tuples of a side that earlier batches stored: in segments (`held`), in memory (`runs`).

    Those below the coordinate `needed` have left the window.
    """

    held: Sequence[HeldTuples] = ()
    runs: Sequence[ChainRun] = ()
    needed: int = MIN_US


@dataclass(frozen=True)
class Matching:
    """New tuples of both sides, and the tuples that they are compared with.

    Pairs are asked for by the places of their later tuples, so that a large output comes in pieces,
    one after the other in the order of the output. With `by_row` comparisons are counted for each
    new tuple.
    """

    spec: JoinSpec
    news: tuple[News, News]
    newest: tuple[Newest, Newest]
    stored: tuple[StoredTuples, StoredTuples]
    by_row: bool = False

    def pairs(
        self, low: int, high: int, most: int
    ) -> tuple[list[MatchedPairs], ComparedWork] | None:
        """All pairs whose later tuple is at a place in [low, high), each once, in no order.

        Also the comparisons made for them. None as soon as there are more than `most` pairs: the
        caller asks again for fewer places, and the comparisons do not count.
        """
        asking = [n.between(low, high) for n in self.news]
        starts = asking[LEFT][1], asking[RIGHT][1]
        work = ComparedWork.of([n for n, _ in asking], self.by_row, starts)
        found, few, waiting = _Found(self.spec, most), list[MatchedPairs](), 0
        for side in (LEFT, RIGHT):
            (asks, start), work.side = asking[1 - side], 1 - side
            if not asks.table.num_rows:
                continue
            for pairs, settled in self._candidates(side, asks, start, work):
                # Settled pairs are decided by other conjuncts, so they cannot wait with the rest.
                if settled or len(pairs.place) > _FEW_PAIRS:
                    if not found.add([pairs], settled):
                        return None
                    continue
                few.append(pairs)
                waiting += len(pairs.place)
                if waiting > _FEW_PAIRS:
                    if not found.add(few):
                        return None
                    few, waiting = [], 0
        return (found.pairs, work) if found.add(few) else None

    def _candidates(
        self, side: int, asking: News, start: int, work: ComparedWork
    ) -> Iterator[tuple[MatchedPairs, bool]]:
        """Candidates of the new tuples `asking` among the tuples of `side`.

        `asking` begins at row `start` of all new tuples of its side. Each item is candidates, and
        whether the compiled conjuncts are known to be true of them.
        """
        search = _Search.of(self.spec, side, asking, self.news[side])
        other, needed = self.newest[1 - side], self.stored[side].needed
        # The table of the newest tuples begins with stored ones: `asking` stands after those.
        before = other.behind + start
        for target in self._targets(side, search):
            for ask_rows, held_rows, settled in search.candidates(target, needed, work):
                rows = held_rows if target.rows is None else target.rows[held_rows]
                asks = ask_rows + before if before else ask_rows
                sides = GatheredRows(target.table, rows), GatheredRows(other.table, asks)
                left, right = sides if side == LEFT else sides[::-1]
                yield MatchedPairs(left, right, 1 - side, asking.place[ask_rows]), settled

    def _targets(self, side: int, search: _Search) -> list[_Target]:
        """The tuples of a side as they are searched; found once, for all pieces."""
        if side not in self._known_targets:
            self._known_targets[side] = search.targets(self.newest[side], self.stored[side])
        return self._known_targets[side]

    @cached_property
    def _known_targets(self) -> dict[int, list[_Target]]:
        return {}


@dataclass
class _Found:
    """Collects pairs that fulfil the predicate, up to `most` of them."""

    spec: JoinSpec
    most: int
    pairs: list[MatchedPairs] = field(default_factory=list)
    count: int = 0

    def add(self, candidates: Sequence[MatchedPairs], settled: bool = False) -> bool:
        """Keep the candidates that match; false once there are more than `most` pairs.

        With `settled` the compiled conjuncts are known to be true, and only the rest is evaluated.
        """
        program = self.spec.programs[LEFT] if settled else None
        decided = _decided(self.spec, candidates, None if program is None else program.rest)
        self.pairs += decided
        self.count += sum(len(p.place) for p in decided)
        return self.count <= self.most


def _decided(
    spec: JoinSpec, found: Sequence[MatchedPairs], conjuncts: Sequence[Expr] | None
) -> list[MatchedPairs]:
    """The pairs that fulfil conjuncts (None: all), in one evaluation where that is possible."""
    left = right = None
    if len(found) > 1:
        left, right = (
            joined(rows, spec.decided_by)
            for rows in ([p.left for p in found], [p.right for p in found])
        )
    if left is None or right is None:
        kept = [true_of(spec, pairs.left, pairs.right, conjuncts) for pairs in found]
    else:
        ends = np.cumsum([len(p.place) for p in found])
        true = true_of(spec, left, right, conjuncts)
        cuts = np.searchsorted(true, ends[:-1])
        parts = np.split(true, cuts)
        kept = [part - begin for part, begin in zip(parts, (0, *ends), strict=False)]
    return [p.take(k) for p, k in zip(found, kept, strict=True) if len(k)]


@dataclass(frozen=True)
class _Target:
    """One table of tuples that new ones are compared with.

    Searched are `rows` of the table, or a `part` of it; both are None for all. `searched` has one
    index for each probe of the join; it is empty where a value of a branch cannot be computed.
    `place` is given for the newest tuples only. `key` has the keys of all rows, where they are
    known. `columns` gives what the compiled predicate reads of the table.
    """

    table: pa.Table
    coordinate: Ints
    searched: tuple[SearchableRun, ...]
    rows: Ints | None = None
    place: Ints | None = None
    part: BucketPart | None = None
    key: Floats | None = None
    columns: Callable[[PairProgram], SideColumns] | None = None

    def compiled(
        self, program: PairProgram, search: _Search, searched: SearchableRun
    ) -> Callable[[Ask], PairRun]:
        """Gives for probes the compiled predicate over the tuples that one index finds."""

        def run(ask: Ask) -> PairRun:
            assert self.columns is not None
            order = searched.order
            rows = order if self.rows is None else self.rows
            if order is not None and self.rows is not None:
                rows = self.rows[order]
            return pair_run(self.columns(program), search.columns, rows, ask.order)

        return run


@dataclass(frozen=True)
class _Search:
    """New tuples that ask the tuples of `side`, by every probe of the join.

    In a union, a value of a branch may fail to compute for a tuple where the predicate never looks
    at it. The predicate then decides on every pair of the window, as without an index, and fails if
    it must. One such value in any table turns off the indexes of all tables, so that comparisons do
    not depend on how tuples are divided into runs.
    """

    spec: JoinSpec
    side: int
    asks: tuple[Ask, ...]
    everything: Ask | None
    table: pa.Table

    @staticmethod
    def of(spec: JoinSpec, side: int, asking: News, mine: News) -> _Search:
        ask = partial(Ask.of, extent=spec.side(side).extent, side=side, asking=asking, mine=mine)
        if not spec.branches:
            return _Search(spec, side, (ask(spec.probe),), None, asking.table)
        try:
            asks = tuple(ask(branch) for branch in spec.branches)
        except TaskError:
            asks = ()
        return _Search(spec, side, asks, ask(_EVERYTHING), asking.table)

    def targets(self, newest: Newest, stored: StoredTuples) -> list[_Target]:
        """The tables that are searched: segments, runs in memory, and the newest tuples."""
        found = [self._held(held, stored.needed) for held in stored.held if held.table.num_rows]
        found += [
            _Target(run.table, run.coordinate, run.searched, columns=run.columns)
            for run in stored.runs
        ]
        if len(newest.rows):
            rows = None if len(newest.rows) == newest.table.num_rows else newest.rows
            terms = newest.terms or ()
            searched = _searched(terms, newest.coordinate, sort=True)
            columns = cache(lambda program: SideColumns.of(program, STORED, newest.table))
            place = newest.place
            found.append(
                _Target(newest.table, newest.coordinate, searched, rows, place, columns=columns)
            )
        if all(target.searched for target in found):
            return found
        return [replace(target, searched=()) for target in found]

    def candidates(self, target: _Target, needed: int, work: ComparedWork) -> Iterator[Candidates]:
        """Candidates as rows of the asking table and rows of the target."""
        place, program = target.place, self.spec.programs[self.side]
        runs = [
            IndexedRun(
                s,
                None if place is None else s.arranged(place),
                needed,
                None if program is None else target.compiled(program, self, s),
            )
            for s in target.searched
        ]
        if self.everything is None:
            (run,), (ask,) = runs, self.asks
            if target.part is not None:
                found = candidates_of(target.part, run, ask, work)
                if found is not None:
                    yield from ((ask.rows(p), run.searched.rows(s), False) for p, s in found)
                    return
                token, key = target.part.token, target.key
                every = self._whole(target.table, target.coordinate, token, key)
                (searched,) = target.part.index(every)
                compiled = None
                if program is not None:
                    compiled = target.compiled(program, self, searched)
                run = replace(run, searched=searched, compiled=compiled)
            work.implied += implied(run, ask)
            for probe, spot, settled in candidates(run, ask, work):
                yield ask.rows(probe), run.searched.rows(spot), settled
            return
        whole = IndexedRun(SearchableRun.of(None, (), target.coordinate), place)
        work.implied += implied(whole, self.everything)
        if runs and self.asks:
            yield from union(runs, self.asks, work)
        else:
            yield from candidates(whole, self.everything, work)

    @cached_property
    def columns(self) -> SideColumns:
        """What the compiled predicate reads of the asking tuples, computed once."""
        program = self.spec.programs[self.side]
        assert program is not None
        return SideColumns.of(program, ASKING, self.table)

    def _held(self, held: HeldTuples, needed: int) -> _Target:
        """A table of stored tuples, with the cheapest index that is known for it."""
        order = TS if self.spec.side(self.side).extent.rows is None else RANK
        coordinate, columns = ints(held.table, order), held.columns
        if held.part is not None:
            own = held.part.indexed
            if own is not None:
                return _Target(held.table, coordinate, own, columns=columns)
            keys = kept(held.token) or self._keys(held, coordinate)
            return _Target(
                held.table, coordinate, keys, part=held.part, key=held.key, columns=columns
            )
        searched = self._whole(held.table, coordinate, held.token, held.key)
        if not searched and (live := coordinate >= needed).any() and not live.all():
            # The value that failed may be of a tuple that has left the window: when it is dropped
            # must not decide whether this batch has an index.
            rows, coordinate = np.flatnonzero(live), coordinate[live]
            index = self._index(held.table.take(pa.array(rows)), coordinate, None, None)
            return _Target(held.table, coordinate, index, rows, columns=columns)
        return _Target(held.table, coordinate, searched, columns=columns)

    def _whole(
        self, table: pa.Table, coordinate: Ints, token: Hashable | None, key: Floats | None
    ) -> tuple[SearchableRun, ...]:
        """The index of a table, from the cache or made now."""
        return known(token, partial(self._index, table, coordinate, token, key))

    def _keys(self, held: HeldTuples, coordinate: Ints) -> tuple[SearchableRun, ...]:
        """An index that has the keys alone: enough to find candidates, not to test them.

        With the keys from the segment it costs nothing, where a full index is a pass over the rows.
        """

        def searched(key: Floats) -> tuple[SearchableRun, ...]:
            return (SearchableRun(None, key, [], [], coordinate, held.least),)

        if held.key is not None:
            return searched(held.key)
        compute = partial(key_of, self.spec.probe, self.side, held.table)
        return known(held.token, lambda: searched(compute()), "keys")

    def _index(
        self,
        table: pa.Table,
        coordinate: Ints,
        token: Hashable | None,
        key: Floats | None,
    ) -> tuple[SearchableRun, ...]:
        # The keys alone were kept until now: they become part of the full index.
        keys = None if token is None else let_go((token, "keys"))
        if key is None and keys:
            key = keys[0].key
        try:
            terms = terms_of(self.spec, self.side, table, key)
        except TaskError:
            if not self.spec.branches:
                raise
            return ()
        return _searched(terms, coordinate, sort=bool(self.spec.branches))


def _searched(terms: Sequence[Terms], coordinate: Ints, sort: bool) -> tuple[SearchableRun, ...]:
    return tuple(SearchableRun.of(t.key, t.values, coordinate, sort, t.order) for t in terms)


def terms_of(
    spec: JoinSpec, side: int, table: pa.Table, key: Floats | None = None
) -> tuple[Terms, ...]:
    """The terms of each probe of a join; `key` is that of the only probe, where it is known."""
    return tuple(
        Terms(
            key if probe.index is None or key is not None else key_of(probe, side, table),
            tuple(value_of(i, side, table) for i in probe.tests),
        )
        for probe in spec.probes
    )
