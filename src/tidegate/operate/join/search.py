"""Searches candidate pairs by one index or none.

New tuples of one side ask the **runs** of the other: stored tuples, and the new ones that will be
stored. Intervals narrow a run down to candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.batch import MIN_US, TS, ints
from tidegate.operate.join.bound import bounds_of, key_of, key_order
from tidegate.operate.join.pair_step import Candidates, compiled_pairs, tested_pairs
from tidegate.operate.join.part import BucketPart
from tidegate.operate.join.run_index import SearchableRun
from tidegate.operate.join.spec import Probe, WindowExtent
from tidegate.operate.kernels.bisect import below, bisect
from tidegate.operate.kernels.order import inverse
from tidegate.operate.kernels.pair import find, passing
from tidegate.operate.kernels.program import PairRun

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_FEW_PAIRS = 2**12
COMPILED_PAIRS = 2**16
"""For more pairs than this the predicate runs compiled, where it can."""

_FEW_ASKS = 2**12
"""For so many that ask, it takes longer to load the compiled loop than to search by numpy."""


@dataclass
class ComparedWork:
    """How much was compared: what the definition implies, and what was done.

    `rows` has the latter for each new tuple of a side, as it asks; None where nobody wants to know.
    They are some of all, which begin at these `starts`. `side` is the one that asks now.
    """

    implied: int = 0
    made: int = 0
    rows: tuple[Ints, Ints] | None = None
    side: int = 0
    starts: tuple[int, int] = (0, 0)

    @staticmethod
    def of(news: Sequence[News], by_row: bool, starts: tuple[int, int] = (0, 0)) -> ComparedWork:
        """Nothing yet, for these new tuples of either side."""
        if not by_row:
            return ComparedWork()
        left, right = (np.zeros(n.table.num_rows, np.int64) for n in news)
        return ComparedWork(rows=(left, right), starts=starts)

    def add(self, other: ComparedWork) -> None:
        """Take in what was done for some of the new tuples."""
        self.implied += other.implied
        self.made += other.made
        if self.rows is not None and other.rows is not None:
            for mine, more, start in zip(self.rows, other.rows, other.starts, strict=True):
                mine[start : start + len(more)] += more

    @property
    def candidates(self) -> int:
        """How many pairs of the windows were looked at, at most.

        An index by a range looks at tuples outside the windows too, of which large batches have
        more than the windows hold; several indexes of one join may look at the same pair.
        """
        return min(self.made, self.implied)

    def count(self, ask: Ask, compared: Ints) -> None:
        """Note with how many each probe was compared."""
        if self.rows is None:
            return
        rows = self.rows[self.side]
        if ask.order is None:
            rows += compared
        else:
            rows[ask.order] += compared


@dataclass(frozen=True)
class News:
    """The new tuples of one side that an instance sees, in the total order.

    `place` is where each stands among the new tuples of both sides, `held` says which are stored
    here, and `before` is how many tuples of the side there were before the batch. `asks` says which
    may have pairs here with what is held; None for all.
    """

    table: pa.Table
    place: Ints
    held: Mask
    before: int = 0
    asks: Mask | None = None
    _keys: dict[tuple[int, ...], Floats] = field(default_factory=dict, repr=False, compare=False)
    _orders: dict[tuple[int, ...], Ints] = field(default_factory=dict, repr=False, compare=False)

    def between(self, low: int, high: int) -> tuple[News, int]:
        """Those at places from `low` to before `high`, and the row at which they begin."""
        start, stop = (int(i) for i in np.searchsorted(self.place, (low, high)))
        if stop - start == len(self.place):
            return self, 0
        keys = {wanted: key[start:stop] for wanted, key in self._keys.items()}
        orders = {
            wanted: order[(order >= start) & (order < stop)] - start
            for wanted, order in self._orders.items()
        }
        some = slice(start, stop)
        table = self.table.slice(start, stop - start)
        asks = None if self.asks is None else self.asks[some]
        place, held = self.place[some], self.held[some]
        return News(table, place, held, self.before, asks, keys, orders), start

    @property
    def ranks(self) -> Ints:
        """The number of each tuple in its side, over all batches."""
        return np.arange(self.before, self.before + self.table.num_rows, dtype=np.int64)

    def key(self, probe: Probe, side: int) -> Floats:
        """As `key_of`; computed once for asking, for being asked, and for what is stored."""
        wanted = tuple(map(id, probe.indexed))  # one join has them; comparing them takes long
        if wanted not in self._keys:
            self._keys[wanted] = key_of(probe, side, self.table)
        return self._keys[wanted]

    def key_order(self, probe: Probe, side: int) -> Ints:
        """The rows in the order of their keys; sorted once, as those are."""
        wanted = tuple(map(id, probe.indexed))
        if wanted not in self._orders:
            self._orders[wanted] = key_order(probe, self.key(probe, side))
        return self._orders[wanted]


@dataclass(frozen=True)
class IndexedRun:
    """Tuples that are held, as one index finds them, with what pairs need of them.

    `place` is None for tuples of earlier batches, which are before all new ones; among new ones
    such tuples are at -1. Those below the coordinate `needed` are there, but in no window.
    `compiled` gives the compiled predicate over these tuples and those that ask.
    """

    searched: SearchableRun
    place: Ints | None
    needed: int = MIN_US
    compiled: Callable[[Ask], PairRun] | None = None

    @property
    def coordinate(self) -> Ints:
        return self.searched.coordinate


@dataclass(frozen=True)
class Ask:
    """New tuples that ask: from which coordinate on, and the bounds of every interval.

    In the order of the index's lower bound, so that neighbours search the same part of a run;
    `order` are their rows. `in_time` are `place` and `low` in the order of time, where both ascend.
    """

    order: Ints | None
    place: Ints
    low: Ints
    in_time: tuple[Ints, Ints]
    bounds: tuple[tuple[Floats, Floats], ...]
    index: tuple[Floats, Floats] | None
    newest_low: int
    one_key: bool

    @staticmethod
    def of(probe: Probe, extent: WindowExtent, side: int, asking: News, mine: News) -> Ask:
        """How new tuples ask for those of `side`, whose window is the extent."""
        table, place, order = asking.table, asking.place, None
        if extent.rows is not None:
            low = mine.before + np.searchsorted(mine.place, asking.place) - extent.rows
        else:
            assert extent.range_us is not None
            low = ints(table, TS) - extent.range_us
        newest_low, in_time = int(low.max()), (place, low)
        bounds = tuple(bounds_of(i, side, table) for i in probe.tests)
        index = None
        if probe.one_key:
            codes = asking.key(probe, 1 - side)
            index = codes, codes
        elif probe.index is not None:
            index = bounds_of(probe.intervals[probe.index], side, table)
        if index is not None:
            by_key = probe.one_key
            order = (
                asking.key_order(probe, 1 - side) if by_key else np.argsort(index[0], stable=True)
            )
            if asking.asks is not None:
                order = order[asking.asks[order]]
            place, low = place[order], low[order]
            bounds = tuple((a[order], b[order]) for a, b in bounds)
            index = index[0][order], index[1][order]
        return Ask(order, place, low, in_time, bounds, index, newest_low, probe.one_key)

    def rows(self, probe: Ints) -> Ints:
        """The rows of the asking table that are these probes."""
        return probe if self.order is None else self.order[probe]

    def probes(self, rows: Ints) -> Ints:
        """The probes that are these rows."""
        return rows if self.order is None else self._inverse[rows]

    @cached_property
    def unknown(self) -> Ints:
        """The probes that find nothing: a bound is NULL, which is NaN here."""
        assert self.index is not None
        return np.flatnonzero(np.isnan(self.index[0]) | np.isnan(self.index[1]))

    @cached_property
    def _inverse(self) -> Ints:
        assert self.order is not None
        return inverse(self.order)


def candidates(run: IndexedRun, ask: Ask, work: ComparedWork) -> Iterator[Candidates]:
    """Pairs (probe, place in the run) that are in the window and pass every interval.

    Where they are many, none is among them that a compiled conjunct refuses. `work.made` grows;
    what the definition implies is for `implied`.
    """
    if ask.index is None:
        first, last = _window(run, ask)
    elif ask.one_key and len(ask.low) > _FEW_ASKS:
        first, last = _key_ranges(run, ask, ask.index[0])
    else:
        first, last = _ranges(run, ask, ask.index)
        if ask.one_key:
            if not run.searched.values and int((last - first).sum()) <= _FEW_PAIRS:
                yield from _few(run, ask, first, last, work)
                return
            first, last = _within(run, ask, first, last)
    made = int((last - first).sum())
    if not made:
        return
    work.made += made if ask.one_key else made - _past(run, ask, first, last)
    work.count(ask, last - first)
    for probe, place, settled in _passing(run, ask, first, last, made):
        if ask.index is not None and not ask.one_key:
            kept = _in_window(run, ask, probe, place)
            if kept is not None:
                probe, place = probe[kept], place[kept]
        if len(probe):
            yield probe, place, settled


def _passing(run: IndexedRun, ask: Ask, first: Ints, last: Ints, made: int) -> Iterator[Candidates]:
    """The pairs of ranges, `made` of them, that pass the tests of the other intervals.

    And, where they are many, the compiled predicate.
    """
    values = run.searched.values
    lows, highs = run.searched.narrowed(ask.bounds)
    if made <= _FEW_PAIRS:  # to begin the compiled loop takes longer than to look at these
        yield *passing(*find(first, last, (), (), ()), lows, highs, values), False
        return
    if run.compiled is not None and made > COMPILED_PAIRS:
        compiled = run.compiled(ask).ordered(first, last)
        yield from compiled_pairs(compiled, first, last, (lows, highs, values))
        return
    yield from tested_pairs(first, last, (lows, highs, values))


def candidates_of(
    part: BucketPart, run: IndexedRun, ask: Ask, work: ComparedWork
) -> list[tuple[Ints, Ints]] | None:
    """The same of a part of a run, by the keys of all of it; None where that takes too long.

    All tuples of the run must be in the windows of all that ask. The tests of other intervals are
    left to the predicate where the run has no values for them.
    """
    if ask.index is None or run.searched.oldest < ask.newest_low:
        return None
    first, last = _ranges(run, ask, ask.index)
    if not part.affords(int((last - first).sum())):
        return None
    work.implied += part.rows * len(ask.low)
    probe, place = find(first, last, (), (), ())
    kept = part.has(run.searched.rows(place))
    probe, place = probe[kept], place[kept]
    work.made += len(probe)
    if run.searched.values:
        lows, highs = run.searched.narrowed(ask.bounds)
        probe, place = passing(probe, place, lows, highs, run.searched.values)
    return [(probe, place)] if len(probe) else []


def _ranges(run: IndexedRun, ask: Ask, index: tuple[Floats, Floats]) -> tuple[Ints, Ints]:
    """What of a run the index of each asking tuple finds.

    Most find nothing in a run that is small: a look at the first key then spares half the search.
    """
    key = run.searched.key
    assert key is not None
    first = np.searchsorted(key, index[0])
    last = first.copy()
    if len(key):
        some = np.flatnonzero(key[np.minimum(first, len(key) - 1)] <= index[1])
        last[some] = np.maximum(first[some], np.searchsorted(key, index[1][some], "right"))
    if len(ask.unknown):
        last[ask.unknown] = first[ask.unknown]
    return first, last


def _key_ranges(run: IndexedRun, ask: Ask, wanted: Floats) -> tuple[Ints, Ints]:
    """What `_ranges` and then `_within` give; costs about a step for each key and tuple."""
    from tidegate.operate.kernels.key_loop import ranges

    place = np.empty(0, np.int64) if run.place is None else run.place
    given = (wanted, ask.low, ask.place, run.searched.key, run.coordinate, place)
    first, last = ranges()(*map(np.ascontiguousarray, given))
    return first, last


def _few(
    run: IndexedRun, ask: Ask, first: Ints, last: Ints, work: ComparedWork
) -> Iterator[Candidates]:
    """Candidates of one key each: looking at few of them takes less than searching their ranges."""
    probe, place = find(first, last, (), (), ())
    kept = _in_window(run, ask, probe, place)
    if kept is not None:
        probe, place = probe[kept], place[kept]
    work.made += len(probe)
    if len(probe):
        work.count(ask, np.bincount(probe, minlength=len(first)))
        yield probe, place, False


def _past(run: IndexedRun, ask: Ask, first: Ints, last: Ints) -> int:
    """How many tuples in the ranges are in no window any more.

    How long these stay is up to who keeps them; what is compared must not depend on it.
    """
    if ask.index is None or run.searched.oldest >= run.needed:
        return 0
    past = np.flatnonzero(run.coordinate < run.needed)
    return int((np.searchsorted(past, last) - np.searchsorted(past, first)).sum())


def implied(run: IndexedRun, ask: Ask) -> int:
    """How many tuples of a run are in the windows of the asking tuples."""
    if run.place is None and run.searched.oldest >= ask.newest_low:
        return len(run.coordinate) * len(ask.in_time[1])
    if ask.index is None:
        first, last = _window(run, ask)
        return int((last - first).sum())
    place, low = ask.in_time
    if run.place is None:
        until = np.full(len(low), len(run.coordinate))
    else:
        until = below(np.sort(run.place), place)
    since = below(run.searched.in_order, low)
    return int(np.maximum(until - since, 0).sum())


def _window(run: IndexedRun, ask: Ask) -> tuple[Ints, Ints]:
    """The range of a run in the order of time that is in the window of each asking tuple."""
    rows = len(run.coordinate)
    in_all = not rows or run.searched.oldest >= ask.newest_low
    first = np.zeros(len(ask.low), np.int64) if in_all else below(run.coordinate, ask.low)
    if run.place is None:
        return first, np.full(len(first), rows, np.int64)
    return first, np.maximum(first, below(run.place, ask.place))


def _within(run: IndexedRun, ask: Ask, first: Ints, last: Ints) -> tuple[Ints, Ints]:
    """Ranges of one key each, cut to the window and to what is earlier."""
    if run.searched.oldest < ask.newest_low:
        first = bisect(run.coordinate, ask.low, first, last)
    if run.place is not None:
        last = bisect(run.place, ask.place, first, last)
    return first, last


def _in_window(run: IndexedRun, ask: Ask, probe: Ints, place: Ints) -> Mask | None:
    """Which candidates of an index are in the window; None for all."""
    kept: Mask | None = None
    if run.searched.oldest < ask.newest_low:
        kept = run.coordinate[place] >= ask.low[probe]
    if run.place is not None:
        earlier = run.place[place] < ask.place[probe]
        kept = earlier if kept is None else kept & earlier
    return kept
