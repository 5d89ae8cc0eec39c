"""Finds the rows of a table that may fit a tuple: a stretch of them in a sorted order.

Each class sorts the rows in its own way, by key first, and gives the begin and end of the stretch
of every tuple. A stretch has all rows that fit, and may have others.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tidegate.operate.kernels.join.grid import SortedGrid
from tidegate.operate.kernels.key_code import NO_KEY
from tidegate.operate.kernels.order import Floats, Ints

Stretch = tuple[Ints, Ints]
"""For each tuple the first place of its rows, and the one after the last."""

NO_ROW = -1
"""The place that stands for no row."""

Values = npt.NDArray[np.int64] | npt.NDArray[np.float64]


class ByKey:
    """Rows by key, in their order in the table within a key; `order` has their positions there."""

    def __init__(self, keys: Ints, size: int) -> None:
        self.order = _sorted(keys, keys != NO_KEY)
        self.unique = len(self.order) == size
        self._starts = np.searchsorted(keys[self.order], np.arange(size + 1))

    def stretch(self, keys: Ints) -> Stretch:
        known = keys != NO_KEY
        at = np.where(known, keys, 0)
        if len(self._starts) < 2:
            return np.zeros_like(keys), np.zeros_like(keys)
        first = self._starts[at]
        return first, np.where(known, self._starts[at + 1], first)


class ByValue:
    """Rows by key, then by a value that tuples bound from below, from above, or both.

    Keys and ranks of values are packed into one integer, so that one search finds an end.
    """

    def __init__(self, keys: Ints, values: Values) -> None:
        self.order = _sorted(values, (keys != NO_KEY) & ~np.isnan(values))
        self.order = self.order[np.argsort(keys[self.order], kind="stable")]
        self._distinct = SortedGrid(np.unique(values[self.order]))
        self._size = len(self._distinct.values) + 1
        ranks = self._distinct.below(values[self.order])
        self._places = keys[self.order] * self._size + ranks

    def stretch(self, keys: Ints, low: Floats | None, high: Values | None) -> Stretch:
        known = keys != NO_KEY
        ends = []
        sides = (low, self._distinct.below, 0), (high, self._distinct.up_to, self._size - 1)
        for bound, search, default in sides:
            if bound is None:
                rank = np.full(len(keys), default)
            else:
                known &= ~np.isnan(bound)
                rank = search(bound)
            ends.append(np.searchsorted(self._places, keys * self._size + rank))
        first = ends[0]
        return first, np.where(known, np.maximum(ends[1], first), first)

    def newest(self, keys: Ints, at: Ints) -> Ints:
        """The place of the last row of each key whose value is not above that of the tuple."""
        first, last = self.stretch(keys, None, at)
        return np.where(last > first, last - 1, NO_ROW)


class ByInterval:
    """Rows by key as intervals, for tuples that have a value inside of them.

    Rows are sorted by their lower ends, and up to each place the greatest upper end is known. So
    the stretch of a value begins at the first row whose greatest upper end reaches it, and ends
    before the first lower end above it. Where a table has no key and its intervals do not overlap,
    as ranges of network addresses, they are `apart`: one search finds the only row.
    """

    def __init__(self, keys: Ints, low: Floats, high: Floats) -> None:
        self.order = _sorted(low, (keys != NO_KEY) & ~np.isnan(low) & ~np.isnan(high))
        self.order = self.order[np.argsort(keys[self.order], kind="stable")]
        low, high = low[self.order], high[self.order]
        self.apart = not keys.any() and bool((high[:-1] < low[1:]).all())
        if self.apart:
            self._lows, self._ends = SortedGrid(low), np.r_[high, -np.inf]
            return
        self._lows, self._highs = SortedGrid(np.unique(low)), SortedGrid(np.unique(high))
        self._size = len(self.order) + 1
        starts = keys[self.order] * self._size
        self._begun = starts + self._lows.below(low)
        reached = starts + self._highs.below(high)
        self._reached = np.maximum.accumulate(reached)

    def only(self, keys: Ints, values: Floats) -> Ints:
        """The place of the row whose interval has a value, NO_ROW for none; if they are `apart`."""
        place = self._lows.up_to(values) - 1
        # Before the first is place -1, whose upper end nothing reaches; NaN compares false.
        return np.where((keys != NO_KEY) & (self._ends[place] >= values), place, NO_ROW)

    def stretch(self, keys: Ints, values: Floats) -> Stretch:
        known = (keys != NO_KEY) & ~np.isnan(values)
        starts = keys * self._size
        begun = starts + self._lows.up_to(values)
        first = np.searchsorted(self._reached, starts + self._highs.below(values))
        last = np.searchsorted(self._begun, begun)
        return first, np.where(known, np.maximum(last, first), first)


def _sorted(values: Values, usable: npt.NDArray[np.bool_]) -> Ints:
    """The usable rows in the stable order of their values."""
    rows = np.flatnonzero(usable)
    return rows[np.argsort(values[rows], kind="stable")]


def expanded(tuples: Ints, first: Ints, counts: Ints) -> Stretch:
    """Pairs of tuples and places, `counts` places from `first` on for each tuple."""
    if len(counts) and counts.min() == 1 == counts.max():
        return tuples, first
    p = np.repeat(tuples, counts)
    return p, np.arange(len(p)) + np.repeat(first - (np.cumsum(counts) - counts), counts)
