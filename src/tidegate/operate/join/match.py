"""The pairs of a join, between the new tuples of a batch and the ones stored before them.

New tuples of one side ask the **runs** of the other: tables of stored tuples, and one of the new
tuples that will be stored. A run is in the order that the method searches: of time for a scan, of
the index otherwise. Intervals narrow a run down to candidates, the predicate decides on those.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.batch import ORDER, TS, ints
from tidegate.expression.tree import columns_of
from tidegate.operate.join.bound import bounds_of, index_bounds, key_of, tests, value_of
from tidegate.operate.join.predicate import asked
from tidegate.operate.join.run_index import Searched, known
from tidegate.operate.join.spec import HASH, LEFT, RIGHT, SCAN, JoinSpec
from tidegate.operate.kernels.bisect import bisect
from tidegate.operate.kernels.expression import evaluate
from tidegate.operate.kernels.pair import find

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

BUCKET, RANK = "bucket", "rank"

_FIRST_PAIRS = 2**24
_MOST_PAIRS = 2**31
_HITS = 2**22
"""How many candidates one step should give."""


@dataclass(frozen=True)
class News:
    """The new tuples of one side that an instance sees, in the total order.

    `place` is where each stands among the new tuples of both sides, `held` says which are stored
    here, and `before` is how many tuples of the side there were before the batch.
    """

    table: pa.Table
    place: Ints
    held: Mask
    before: int = 0

    @property
    def ranks(self) -> Ints:
        """The number of each tuple in its side, over all batches."""
        return np.arange(self.before, self.before + self.table.num_rows, dtype=np.int64)


@dataclass
class Work:
    """How much was compared: what the definition implies, and what was done."""

    implied: int = 0
    made: int = 0


@dataclass(frozen=True)
class Pairs:
    """Matching pairs, aligned row by row; the later tuple of each is of the side `later`.

    `place` is the later tuple's place among the new tuples.
    """

    left: pa.Table
    right: pa.Table
    later: int
    place: Ints


@dataclass(frozen=True)
class Held:
    """Stored tuples of a side, in the order they are searched.

    `token` names them for as long as the process lives, so that what searching needs of them is
    computed once; None where they are made anew for every batch.
    """

    table: pa.Table
    token: Hashable | None = None


def match(
    spec: JoinSpec, news: tuple[News, News], stored: tuple[Sequence[Held], Sequence[Held]]
) -> tuple[list[Pairs], Work]:
    """All pairs of a new tuple and an earlier one that is held here, each once, in no order."""
    found: list[Pairs] = []
    work = Work()
    for side in (LEFT, RIGHT):
        asking, mine = news[1 - side], news[side]
        if not asking.table.num_rows:
            continue
        ask = _Ask.of(spec, side, asking, mine)
        for run in _runs(spec, side, mine, stored[side]):
            for probe, place in _candidates(run, ask, work):
                pairs = _decided(spec, side, run, ask, probe, place)
                if len(pairs.place):
                    found.append(pairs)
    return found, work


def arranged(spec: JoinSpec, side: int, table: pa.Table) -> pa.Table:
    """Tuples of a side, given in the total order, in the order in which they are searched."""
    if spec.method == SCAN or not table.num_rows:
        return table
    return table.take(pa.array(np.argsort(key_of(spec, side, table), kind="stable")))


def places(left: pa.Table, right: pa.Table) -> tuple[Ints, Ints]:
    """Where the tuples of two tables, each in the total order, stand in the order of both."""
    order = total_order(pa.concat_tables([left.select(ORDER), right.select(ORDER)]))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return place[: left.num_rows], place[left.num_rows :]


def total_order(table: pa.Table) -> Ints:
    """The places of tuples in the total order."""
    return np.lexsort([ints(table, c) for c in reversed(ORDER)])


@dataclass(frozen=True)
class _Run:
    """Tuples that are held, in the order they are searched, with what pairs need of them.

    `coordinate` is what the window counts: event time, or the number in the side. `place` is None
    for tuples of earlier batches, which are before all new ones.
    """

    table: pa.Table
    coordinate: Ints
    place: Ints | None
    searched: Searched


def _runs(spec: JoinSpec, side: int, mine: News, stored: Sequence[Held]) -> Iterator[_Run]:
    counts = spec.side(side).extent.rows is not None
    for held in stored:
        if held.table.num_rows:
            coordinate = ints(held.table, RANK if counts else TS)
            compute = partial(_searched, spec, side, held.table, coordinate)
            searched = known(held.token, compute)
            yield _Run(held.table, coordinate, None, searched)
    if mine.held.any():
        chosen = np.flatnonzero(mine.held)
        fresh = mine.table.take(pa.array(chosen))
        coordinate = mine.ranks[chosen] if counts else ints(fresh, TS)
        if spec.method != SCAN:
            order = np.argsort(key_of(spec, side, fresh), kind="stable")
            fresh, chosen = fresh.take(pa.array(order)), chosen[order]
            coordinate = coordinate[order]
        searched = _searched(spec, side, fresh, coordinate)
        yield _Run(fresh, coordinate, mine.place[chosen], searched)


def _searched(spec: JoinSpec, side: int, table: pa.Table, coordinate: Ints) -> Searched:
    key = None if spec.method == SCAN else key_of(spec, side, table)
    values = [value_of(i, side, table) for i in tests(spec)]
    return Searched.of(key, values, coordinate)


@dataclass(frozen=True)
class _Ask:
    """New tuples that ask: from which coordinate on, and the bounds of every interval.

    In the order of the index's lower bound, so that neighbours search the same part of a run.
    """

    table: pa.Table
    place: Ints
    low: Ints
    bounds: tuple[tuple[Floats, Floats], ...]
    index: tuple[Floats, Floats] | None
    newest_low: int
    one_key: bool
    """Whether a range of the index has one key, so that it is in the order of time."""

    @staticmethod
    def of(spec: JoinSpec, side: int, asking: News, mine: News) -> _Ask:
        extent = spec.side(side).extent
        table = asking.table
        if extent.rows is not None:
            low = mine.before + np.searchsorted(mine.place, asking.place) - extent.rows
        else:
            assert extent.range_us is not None
            low = ints(table, TS) - extent.range_us
        bounds = tuple(bounds_of(i, side, table) for i in tests(spec))
        index = index_bounds(spec, side, table)
        place = asking.place
        if index is not None:
            order = np.argsort(index[0], kind="stable")
            table, place, low = table.take(pa.array(order)), place[order], low[order]
            bounds = tuple((a[order], b[order]) for a, b in bounds)
            index = index[0][order], index[1][order]
        return _Ask(table, place, low, bounds, index, int(low.max()), spec.method == HASH)


def _candidates(run: _Run, ask: _Ask, work: Work) -> Iterator[tuple[Ints, Ints]]:
    """Pairs (asking tuple, tuple of the run) that are in the window and pass every interval."""
    if ask.index is None:
        first = np.searchsorted(run.coordinate, ask.low)
        last = np.full(len(first), len(run.coordinate), np.int64)
        if run.place is not None:
            last = np.searchsorted(run.place, ask.place)
        last = np.maximum(first, last)
    else:
        key = run.searched.key
        assert key is not None
        nothing = np.isnan(ask.index[0]) | np.isnan(ask.index[1])
        first = np.searchsorted(key, ask.index[0])
        last = np.maximum(first, np.searchsorted(key, ask.index[1], "right"))
        last[nothing] = first[nothing]
        if ask.one_key:
            first, last = _within(run, ask, first, last)
        work.implied += _implied(run, ask)
    made = int((last - first).sum())
    work.made += made
    if ask.index is None:
        work.implied += made
    values = run.searched.values
    lows, highs = run.searched.narrowed(ask.bounds)
    for a, b, hits in _steps(first, last, bool(values)):
        probe, place = find(
            first[a:b], last[a:b], [x[a:b] for x in lows], [x[a:b] for x in highs], values
        )
        hits.append(len(probe))
        probe = probe + a
        if ask.index is not None and not ask.one_key:
            kept = _in_window(run, ask, probe, place)
            if kept is not None:
                probe, place = probe[kept], place[kept]
        if len(probe):
            yield probe, place


def _steps(first: Ints, last: Ints, narrowed: bool) -> Iterator[tuple[int, int, list[int]]]:
    """Ranges of asking tuples with so many pairs that their candidates fit into memory.

    The caller appends how many candidates a step gave, which decides about the next.
    """
    ends = np.cumsum(last - first)
    start, done = 0, 0
    most = _FIRST_PAIRS if narrowed else _HITS
    while start < len(ends):
        stop = max(int(np.searchsorted(ends, done + most, "right")), start + 1)
        hits: list[int] = []
        yield start, stop, hits
        made = int(ends[stop - 1]) - done
        if hits and made:
            share = max(hits[0], 1) / made
            most = int(min(max(_HITS / share, _HITS), _MOST_PAIRS))
        start, done = stop, int(ends[stop - 1])


def _implied(run: _Run, ask: _Ask) -> int:
    """How many tuples of a run are in the windows of the asking tuples."""
    if run.place is None:
        if run.searched.oldest >= ask.newest_low:
            return len(run.coordinate) * len(ask.low)
        until = np.full(len(ask.low), len(run.coordinate))
    else:
        until = np.searchsorted(np.sort(run.place), ask.place)
    since = np.searchsorted(run.searched.in_order(run.coordinate), ask.low)
    return int(np.maximum(until - since, 0).sum())


def _within(run: _Run, ask: _Ask, first: Ints, last: Ints) -> tuple[Ints, Ints]:
    """Ranges of one key each, cut to the window and to what is earlier."""
    if run.searched.oldest < ask.newest_low:
        first = bisect(run.coordinate, ask.low, first, last)
    if run.place is not None:
        last = bisect(run.place, ask.place, first, last)
    return first, last


def _in_window(run: _Run, ask: _Ask, probe: Ints, place: Ints) -> Mask | None:
    """Which candidates of an index are in the window; None for all."""
    kept: Mask | None = None
    if run.searched.oldest < ask.newest_low:
        kept = run.coordinate[place] >= ask.low[probe]
    if run.place is not None:
        earlier = run.place[place] < ask.place[probe]
        kept = earlier if kept is None else kept & earlier
    return kept


def _decided(spec: JoinSpec, side: int, run: _Run, ask: _Ask, probe: Ints, place: Ints) -> Pairs:
    """The candidates for which the predicate is true."""
    held, asking = run.table, ask.table
    if spec.predicate or spec.function is not None:
        left, right = (held, asking) if side == LEFT else (asking, held)
        at_left, at_right = (place, probe) if side == LEFT else (probe, place)
        kept = _true(spec, _Rows(left, at_left), _Rows(right, at_right))
        if len(kept) < len(probe):
            probe, place = probe[kept], place[kept]
    mine, others = held.take(pa.array(place)), asking.take(pa.array(probe))
    left, right = (mine, others) if side == LEFT else (others, mine)
    return Pairs(left, right, 1 - side, ask.place[probe])


@dataclass(frozen=True)
class _Rows:
    """Rows of a table by their places, columns gathered when asked for."""

    table: pa.Table
    places: Ints

    def columns(self, names: Sequence[str]) -> pa.Table:
        return self.table.select(names).take(pa.array(self.places))


def _true(spec: JoinSpec, left: _Rows, right: _Rows) -> Ints:
    """Which pairs fulfil the predicate, conjunct by conjunct on what is left."""
    kept: Ints = np.arange(len(left.places))
    for conjunct in spec.predicate:
        names = columns_of(conjunct)
        on_left = [n for n in names if n in left.table.column_names]
        on_right = [n for n in names if n not in on_left]
        parts = [
            _Rows(rows.table, rows.places[kept]).columns(mine)
            for rows, mine in ((left, on_left), (right, on_right))
            if mine
        ]
        columns = {n: part.column(n) for part in parts for n in part.column_names}
        rows = pa.table(columns) if columns else pa.table({TS: pa.array(kept)})
        truth = pc.fill_null(evaluate(conjunct, rows), False)
        kept = kept[truth.to_numpy(zero_copy_only=False)]
        if not len(kept):
            return kept
    if spec.function is not None:
        rows_of = [
            _Rows(r.table, r.places[kept]).columns([n for n, _ in s.columns])
            for r, s in ((left, spec.left), (right, spec.right))
        ]
        kept = kept[asked(spec.function, rows_of[0], rows_of[1])]
    return kept
