"""Searches for many values among sorted ones that stay, such as those of a table."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate.operate.kernels.order import Ints

Numbers = npt.NDArray[Any]
"""Of type int64 or float64."""

_FEW = 8192
"""Fewer values than this are looked for by numpy, without machine code."""


class SortedGrid:
    """Ascending values without NaN; finds what `np.searchsorted` finds, in less time.

    Wanted values must have the same type. From the first large search on it holds an int64 for each
    value.
    """

    def __init__(self, values: Numbers, few: int = _FEW) -> None:
        self.values: Numbers = np.ascontiguousarray(values)
        self._few = few

    def below(self, wanted: Numbers) -> Ints:
        """How many values are less than each wanted one; all of them for NaN."""
        return self._places(wanted, after=False)

    def up_to(self, wanted: Numbers) -> Ints:
        """How many values are not greater than each wanted one; all of them for NaN."""
        return self._places(wanted, after=True)

    def _places(self, wanted: Numbers, after: bool) -> Ints:
        if len(wanted) < self._few or not len(self.values):
            return np.asarray(self.values.searchsorted(wanted, "right" if after else "left"))
        from tidegate.operate.kernels.join.grid_loop import places

        low, scale, starts = self._grid
        loop, one_piece = places(self.values.dtype.name), np.ascontiguousarray(wanted)
        found: Ints = loop(self.values, starts, low, scale, one_piece, after)
        return found

    @cached_property
    def _grid(self) -> tuple[float, float, Ints]:
        """Where the first cell begins, the cells per unit, and the count of values before each.

        Where a value or the distance of two is infinite, all are in one cell.
        """
        from tidegate.operate.kernels.join.grid_loop import starts

        low, high = float(self.values[0]), float(self.values[-1])
        scale = len(self.values) / (high - low) if low < high else 0.0
        # One cell for all is slow, by bisection, and right.
        if not np.isfinite(low) or not np.isfinite(scale):
            low = scale = 0.0
        return low, scale, starts(self.values.dtype.name)(self.values, low, scale)
