"""Finds the rows of a table that may fit a tuple: a stretch of them in a sorted order.

Each class sorts the rows in its way, those of a key together, and gives for every tuple where its
stretch begins and ends. A stretch has all rows that fit, and may have others.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tidegate.operate.kernels.key_code import NO_KEY
from tidegate.operate.kernels.order import Floats, Ints

Stretch = tuple[Ints, Ints]
"""For each tuple the first place of its rows, and the one after the last."""

NO_ROW = -1
"""The place of a row that is not there."""

Values = npt.NDArray[np.int64] | npt.NDArray[np.float64]


class ByKey:
    """The rows of each key, in their order in the table; `order` has their positions there."""

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
    """The rows of each key by a value that tuples bound from below, from above, or both."""

    def __init__(self, keys: Ints, values: Values) -> None:
        self.order = _sorted(values, (keys != NO_KEY) & ~np.isnan(values))
        self.order = self.order[np.argsort(keys[self.order], kind="stable")]
        self._distinct = np.unique(values[self.order])
        self._size = len(self._distinct) + 1
        ranks = np.searchsorted(self._distinct, values[self.order])
        self._places = keys[self.order] * self._size + ranks

    def stretch(self, keys: Ints, low: Floats | None, high: Values | None) -> Stretch:
        known = keys != NO_KEY
        ends = []
        for bound, side, default in ((low, "left", 0), (high, "right", self._size - 1)):
            if bound is None:
                rank = np.full(len(keys), default)
            else:
                known &= ~np.isnan(bound)
                rank = np.searchsorted(self._distinct, bound, side=side)  # type: ignore[call-overload]
            ends.append(np.searchsorted(self._places, keys * self._size + rank))
        first = ends[0]
        return first, np.where(known, np.maximum(ends[1], first), first)

    def newest(self, keys: Ints, at: Ints) -> Ints:
        """The place of the last row of each key whose value is not above that of the tuple."""
        first, last = self.stretch(keys, None, at)
        return np.where(last > first, last - 1, NO_ROW)


class ByInterval:
    """The rows of each key as intervals, for tuples that have a value inside of them.

    Rows are sorted by their lower ends. Up to each place the greatest upper end is known, so the
    stretch of a value begins where one reaches it, and ends where the next lower end is above it.
    Intervals of a table without a key that do not overlap, as those of addresses, need one search.
    """

    def __init__(self, keys: Ints, low: Floats, high: Floats) -> None:
        self.order = _sorted(low, (keys != NO_KEY) & ~np.isnan(low) & ~np.isnan(high))
        self.order = self.order[np.argsort(keys[self.order], kind="stable")]
        low, high = low[self.order], high[self.order]
        self.apart = not keys.any() and bool((high[:-1] < low[1:]).all())
        if self.apart:
            self._lows, self._highs = low, np.r_[high, -np.inf]
            return
        self._lows, self._highs = np.unique(low), np.unique(high)
        self._size = len(self.order) + 1
        starts = keys[self.order] * self._size
        self._begun = starts + np.searchsorted(self._lows, low)
        reached = starts + np.searchsorted(self._highs, high)
        self._reached = np.maximum.accumulate(reached)

    def only(self, keys: Ints, values: Floats) -> Ints:
        """The place of the row that a value may be in, where intervals are `apart`."""
        place = np.searchsorted(self._lows, values, side="right") - 1
        # Before the first is place -1, whose upper end nothing reaches; NaN compares false.
        return np.where((keys != NO_KEY) & (self._highs[place] >= values), place, NO_ROW)

    def stretch(self, keys: Ints, values: Floats) -> Stretch:
        known = (keys != NO_KEY) & ~np.isnan(values)
        starts = keys * self._size
        begun = starts + np.searchsorted(self._lows, values, side="right")
        first = np.searchsorted(self._reached, starts + np.searchsorted(self._highs, values))
        last = np.searchsorted(self._begun, begun)
        return first, np.where(known, np.maximum(last, first), first)


def _sorted(values: Values, usable: npt.NDArray[np.bool_]) -> Ints:
    """The usable rows by a value, those of equal ones as they stand."""
    rows = np.flatnonzero(usable)
    return rows[np.argsort(values[rows], kind="stable")]
