"""Merges the panes of windows that end, step by step within a bound of memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from tidegate.operate.aggregate.function import Function
from tidegate.operate.aggregate.pane.overlap import Overlap, overlaps, words_of
from tidegate.operate.kernels.family import States
from tidegate.operate.kernels.group import Groups, Rank, dense, pack, rank_integers, run_starts
from tidegate.operate.kernels.order import Ints
from tidegate.operate.kernels.window.tree import Ranges
from tidegate.operate.kernels.window.window import Cover, expand, once, spans

_EXPANSION_LIMIT = 4_000_000
"""How many pane rows and list values one step may copy into windows."""

_STEP_WINDOWS = 1_000_000
"""How many windows of keys one step may make where they share more than panes."""


@dataclass(frozen=True)
class Panes:
    """Partials in time order, with the windows to close that need them.

    By partial: `pane` is its pane, `by_key` its key, `low` and `high` are the first and the last
    window to close that covers it. `states` has the columns of each function for all `held`
    partials, and `place` says where in these a partial stands: states are copied late, or never.
    """

    pane: Ints
    by_key: Groups
    low: Ints
    high: Ints
    functions: Sequence[Function]
    states: Sequence[States]
    held: int
    place: Ints

    def take(self, rows: Ints) -> Panes:
        return replace(
            self,
            pane=self.pane[rows],
            by_key=Groups(self.by_key.codes[rows], self.by_key.n),
            low=self.low[rows],
            high=self.high[rows],
            place=self.place[rows],
        )

    def states_of(self, number: int, rows: Ints | slice = slice(None)) -> States:
        """The states of one function, for some partials or for all."""
        place = self.place[rows]
        # Windows that do not overlap have all partials once: there is nothing to copy.
        if len(place) == self.held and bool(np.all(place == np.arange(self.held))):
            return list(self.states[number])
        picked = pa.array(place)
        return [column.take(picked) for column in self.states[number]]

    def by_key_and_pane(self) -> tuple[Panes, list[States]]:
        """Sort by key and pane, and merge the partials of one key and pane.

        Gives one row for each key and pane, and the states of each function for these rows.
        """
        panes = self.take(self.by_key.order)
        states = [panes.states_of(i) for i in range(len(self.functions))]
        new = run_starts(panes.by_key.codes, panes.pane)
        if bool(new.all()):
            return panes, states
        groups = Groups(np.cumsum(new) - 1, int(new.sum()))
        pairs = zip(self.functions, states, strict=True)
        merged = [function.family.merge(groups, columns) for function, columns in pairs]
        return panes.take(np.flatnonzero(new)), merged


@dataclass(frozen=True)
class Closed:
    """Closed windows, one row for each window and key: sorted by window, and then by key.

    `columns` has the results or the states.
    """

    window: Ints
    key: Ints
    columns: Sequence[pa.Array | pa.ChunkedArray]


def closed(panes: Panes, cover: Cover, partly: bool) -> Iterator[Closed]:
    """Close all windows that have panes, in order, a bounded number at a time.

    The columns are the results of the functions, or with `partly` their states.
    """
    if overlaps(cover.windows, () if partly else panes.functions):
        yield from _overlapping(panes, cover, partly)
    else:
        yield from _apart(panes, partly)


def _apart(panes: Panes, partly: bool) -> Iterator[Closed]:
    """Merge the panes of every window by itself, in time order."""
    # Each pane is copied into every window that covers it. The weights bound that copy.
    weights = np.ones(len(panes.pane), np.int64)
    for columns in panes.states:
        weights += words_of(columns, panes.held)[panes.place] - len(columns)
    for first, last in spans(panes.low, panes.high, weights, _EXPANSION_LIMIT):
        low, high = np.maximum(panes.low, first), np.minimum(panes.high, last)
        row, window = expand(low, high)
        key = Rank(panes.by_key.codes[row], panes.by_key.n)
        groups = dense(pack([rank_integers(window), key], len(row)))
        columns = []
        for number, function in enumerate(panes.functions):
            merged = function.family.merge(groups, panes.states_of(number, row))
            columns += merged if partly else [function.family.finish(merged)]
        yield Closed(window[groups.rows], key.codes[groups.rows], columns)


def _overlapping(panes: Panes, cover: Cover, partly: bool) -> Iterator[Closed]:
    """Merge panes once for all windows that share them (`Overlap`).

    Each window needs its first and its last pane. So the windows of a key are listed twice: at the
    first pane that each has, and at the last. Both lists have the same windows in the same order.
    """
    panes, states = panes.by_key_and_pane()
    codes = panes.by_key.codes
    overlap = Overlap(
        panes.functions,
        states,
        codes=codes,
        panes=panes.pane,
        length=cover.length,
        windows=cover.windows,
    )
    own_low = once(codes, panes.low, panes.high)
    # Read backwards and negated, `once` gives the highest window that no later pane is in.
    own_high = -once(codes[::-1], -panes.high[::-1], -panes.low[::-1])[::-1]
    one = np.ones(len(codes), np.int64)
    for low, high in spans(own_low, panes.high, one, _STEP_WINDOWS):
        first, window = expand(np.maximum(own_low, low), np.minimum(panes.high, high))
        last, _ = expand(np.maximum(panes.low, low), np.minimum(own_high, high))
        by_window = np.argsort(window, kind="stable")
        ranges = Ranges(first, last, window * cover.step).take(by_window)
        columns = overlap.merged(ranges) if partly else overlap.results(ranges)
        yield Closed(window[by_window], codes[ranges.first], columns)
