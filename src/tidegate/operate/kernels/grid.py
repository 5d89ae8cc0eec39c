"""Searches for many values among sorted ones that stay: those of a table, or of an index."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate.operate.kernels.order import Ints

Numbers = npt.NDArray[Any]
"""Of type int64 or float64."""

_FEW = 8192
"""So few values are looked for by numpy, without machine code."""


class SortedGrid:
    """Ascending values without NaN; finds what `np.searchsorted` finds, in less time.

    Values that are looked for have the same type. Holds a number for each value, from the first
    search for many on.
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
        from tidegate.operate.kernels.grid_loop import places

        low, scale, starts = self._grid
        loop, one_piece = places(self.values.dtype.name), np.ascontiguousarray(wanted)
        found: Ints = loop(self.values, starts, low, scale, one_piece, after)
        return found

    @cached_property
    def _grid(self) -> tuple[float, float, Ints]:
        """Where the first cell begins, how many there are in 1, how many values are before each.

        Infinite values, and those whose distance is infinite, are all in one cell.
        """
        from tidegate.operate.kernels.grid_loop import starts

        low, high = float(self.values[0]), float(self.values[-1])
        scale = len(self.values) / (high - low) if low < high else 0.0
        if not np.isfinite(low) or not np.isfinite(scale):
            low = scale = 0.0
        return low, scale, starts(self.values.dtype.name)(self.values, low, scale)
