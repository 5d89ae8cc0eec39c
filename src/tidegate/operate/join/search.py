"""Searches a run of tuples for the candidates of new tuples, by one index or none.

A new tuple of one side is a **probe**. It asks the **runs** of the other side: stored tuples, and
the new ones that are stored by this batch. The intervals of the predicate narrow a run down to
candidates; they may let a pair pass that the predicate refuses, never the other way round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.batch import MIN_US, TS, ints
from tidegate.operate.join.chain.part import BucketPart
from tidegate.operate.join.chain.run_index import SearchableRun
from tidegate.operate.join.pair_step import Candidates, compiled_pairs, tested_pairs
from tidegate.operate.join.predicate.bound import bounds_of, key_of, key_order
from tidegate.operate.join.spec import Probe, WindowExtent
from tidegate.operate.kernels.join.bisect import below, bisect
from tidegate.operate.kernels.join.pair import find, passing
from tidegate.operate.kernels.join.program import PairRun
from tidegate.operate.kernels.order import inverse

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_FEW_PAIRS = 2**12
COMPILED_PAIRS = 2**16
"""The compiled predicate is used for more candidates than this; fewer do not repay its start."""

_FEW_ASKS = 2**12
"""Up to so many probes numpy searches faster than the compiled loop is loaded."""


@dataclass
class ComparedWork:
    """Counts comparisons: `implied` by the definition of the join, and `made` by the search.

    `rows` has the comparisons made by each new tuple, by side; None where nobody needs them. A
    piece of a batch counts for the tuples from `starts` on only. `side` is the side that asks now;
    the caller sets it.
    """

    implied: int = 0
    made: int = 0
    rows: tuple[Ints, Ints] | None = None
    side: int = 0
    starts: tuple[int, int] = (0, 0)

    @staticmethod
    def of(news: Sequence[News], by_row: bool, starts: tuple[int, int] = (0, 0)) -> ComparedWork:
        """Counters at zero, for these new tuples of both sides."""
        if not by_row:
            return ComparedWork()
        left, right = (np.zeros(n.table.num_rows, np.int64) for n in news)
        return ComparedWork(rows=(left, right), starts=starts)

    def add(self, other: ComparedWork) -> None:
        """Add the counts of a piece of the batch."""
        self.implied += other.implied
        self.made += other.made
        if self.rows is not None and other.rows is not None:
            for mine, more, start in zip(self.rows, other.rows, other.starts, strict=True):
                mine[start : start + len(more)] += more

    @property
    def candidates(self) -> int:
        """An upper bound on the pairs within the windows that were looked at.

        `made` alone may exceed what a scan does: the index of a range also finds tuples outside the
        windows, and several indexes of one join may find the same pair.
        """
        return min(self.made, self.implied)

    def count(self, ask: Ask, compared: Ints) -> None:
        """Note how many tuples each probe was compared with; does nothing without `rows`."""
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

    `place` is the position of each among the new tuples of both sides; it ascends. `held` marks
    those that this instance compares later ones with. `before` is how many tuples the side had
    before the batch. `asks` marks those that may have pairs at this instance; None for all.
    """

    table: pa.Table
    place: Ints
    held: Mask
    before: int = 0
    asks: Mask | None = None
    _keys: dict[tuple[int, ...], Floats] = field(default_factory=dict, repr=False, compare=False)
    _orders: dict[tuple[int, ...], Ints] = field(default_factory=dict, repr=False, compare=False)

    def between(self, low: int, high: int) -> tuple[News, int]:
        """The tuples at places [low, high), and the row of the first; keys are not computed again.

        All of them are the same object, so a batch of one piece costs nothing.
        """
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
        """The keys of `key_of`, computed once: for asking, for being asked and for the segment."""
        # By identity: one join has all the intervals, and comparing expression trees is slow.
        wanted = tuple(map(id, probe.indexed))
        if wanted not in self._keys:
            self._keys[wanted] = key_of(probe, side, self.table)
        return self._keys[wanted]

    def key_order(self, probe: Probe, side: int) -> Ints:
        """The rows in the stable order of their keys; sorted once."""
        wanted = tuple(map(id, probe.indexed))
        if wanted not in self._orders:
            self._orders[wanted] = key_order(probe, self.key(probe, side))
        return self._orders[wanted]


@dataclass(frozen=True)
class IndexedRun:
    """Tuples of a side in the order of one index, with what a search needs of them.

    `place` has their places among the new tuples, -1 for tuples of earlier batches; it is None
    where all are of earlier batches. Tuples below the coordinate `needed` have left the window and
    are still here. `compiled` gives the compiled predicate over these tuples and the probes.
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
    """New tuples as probes: where the window of each begins (`low`), and its bounds per interval.

    Probes are in the order of the index's lower bound, so that neighbours search the same part of
    a run. `order` has the row of each probe, None where probes are the rows. `in_time` has `place`
    and `low` in the order of time, in which both ascend. `newest_low` is the largest `low`.
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
        """The probes that new tuples are for the tuples of `side`, whose window is the extent."""
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
        """The rows of the asking table for some probes."""
        return probe if self.order is None else self.order[probe]

    def probes(self, rows: Ints) -> Ints:
        """The probes for some rows of the asking table; the inverse of `rows`."""
        return rows if self.order is None else self._inverse[rows]

    @cached_property
    def unknown(self) -> Ints:
        """The probes that find nothing, because a bound is NULL (NaN here)."""
        assert self.index is not None
        return np.flatnonzero(np.isnan(self.index[0]) | np.isnan(self.index[1]))

    @cached_property
    def _inverse(self) -> Ints:
        assert self.order is not None
        return inverse(self.order)


def candidates(run: IndexedRun, ask: Ask, work: ComparedWork) -> Iterator[Candidates]:
    """Pairs (probe, place in the run) that are in the window and pass every interval.

    Each comes once, in steps of bounded size. Where there are many, those that a compiled conjunct
    refuses are left out. Adds to `work.made`; `work.implied` is for the caller, by `implied`.
    """
    # The tuples of one key are in the order of time, so the window cuts their range by binary
    # search. A band finds tuples of many keys, whose times are mixed: each pair is tested.
    if ask.index is None:
        first, last = _window(run, ask)
    elif ask.one_key and len(ask.low) > _FEW_ASKS:
        first, last = _key_ranges(run, ask, ask.index[0])
    else:
        first, last = _ranges(run, ask, ask.index)
        if ask.one_key:
            if not run.searched.values and int((last - first).sum()) <= _FEW_PAIRS:
                yield from _test_each(run, ask, first, last, work)
                return
            first, last = _cut_to_window(run, ask, first, last)
    made = int((last - first).sum())
    if not made:
        return
    work.made += made if ask.one_key else made - _expired(run, ask, first, last)
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

    Where there are many, also the compiled predicate.
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
    """The candidates in a part of a run, found by the index of the whole run.

    None where an index of the part would be cheaper, or where a tuple of the run is outside the
    window of some probe. Where the run has no values for the other intervals, the predicate tests
    them.
    """
    # The count of implied pairs below needs no look at the tuples only if all are in all windows.
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
    """The range of the run that the index finds for each probe.

    Most probes find nothing in a small run. One look at the first key not below the lower bound
    tells those, and spares them the second binary search.
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
    """What `_ranges` and `_cut_to_window` give, in one merge: about a step per key and probe."""
    from tidegate.operate.kernels.join.key_loop import ranges

    place = np.empty(0, np.int64) if run.place is None else run.place
    given = (wanted, ask.low, ask.place, run.searched.key, run.coordinate, place)
    first, last = ranges()(*map(np.ascontiguousarray, given))
    return first, last


def _test_each(
    run: IndexedRun, ask: Ask, first: Ints, last: Ints, work: ComparedWork
) -> Iterator[Candidates]:
    """Candidates of a hash join with few of them: testing each is cheaper than `_cut_to_window`."""
    probe, place = find(first, last, (), (), ())
    kept = _in_window(run, ask, probe, place)
    if kept is not None:
        probe, place = probe[kept], place[kept]
    work.made += len(probe)
    if len(probe):
        work.count(ask, np.bincount(probe, minlength=len(first)))
        yield probe, place, False


def _expired(run: IndexedRun, ask: Ask, first: Ints, last: Ints) -> int:
    """How many tuples in the ranges have left the window of every probe.

    When such tuples are dropped depends on compaction and memory. The count of comparisons must be
    the same for every run, so they are subtracted.
    """
    if ask.index is None or run.searched.oldest >= run.needed:
        return 0
    past = np.flatnonzero(run.coordinate < run.needed)
    return int((np.searchsorted(past, last) - np.searchsorted(past, first)).sum())


def implied(run: IndexedRun, ask: Ask) -> int:
    """How many pairs of a probe and a tuple of the run are within the windows; costs a sort.

    Nothing but a multiplication where every tuple is in every window, as most stored ones are.
    """
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
    """The range of each probe's window in a run that is in the order of time."""
    rows = len(run.coordinate)
    in_all = not rows or run.searched.oldest >= ask.newest_low
    first = np.zeros(len(ask.low), np.int64) if in_all else below(run.coordinate, ask.low)
    if run.place is None:
        return first, np.full(len(first), rows, np.int64)
    return first, np.maximum(first, below(run.place, ask.place))


def _cut_to_window(run: IndexedRun, ask: Ask, first: Ints, last: Ints) -> tuple[Ints, Ints]:
    """Ranges of one key each, cut to the window and to the tuples before the probe."""
    if run.searched.oldest < ask.newest_low:
        first = bisect(run.coordinate, ask.low, first, last)
    if run.place is not None:
        last = bisect(run.place, ask.place, first, last)
    return first, last


def _in_window(run: IndexedRun, ask: Ask, probe: Ints, place: Ints) -> Mask | None:
    """Which candidates of an index are in the window and before the probe; None for all."""
    kept: Mask | None = None
    if run.searched.oldest < ask.newest_low:
        kept = run.coordinate[place] >= ask.low[probe]
    if run.place is not None:
        # Of two new tuples only the later one asks: so each pair is found from one side only.
        earlier = run.place[place] < ask.place[probe]
        kept = earlier if kept is None else kept & earlier
    return kept
