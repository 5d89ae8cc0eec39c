"""Quantiles and distinct counts of overlapping windows, each made from the window before it.

A window is [first, last) over a sequence of values. Neither bound falls from one window to the
next, so values enter in order and leave in order. Windows of another key lie further on.
"""

from __future__ import annotations

import numpy as np

from tidegate.operate.kernels.group import Groups
from tidegate.operate.kernels.order import Floats, Ints, inverse
from tidegate.operate.kernels.sort import sorted_rows


class Sliding:
    """Gives the k-th smallest value of each window.

    Sorts the values once, in O(values log(values)).
    """

    def __init__(self, values: Floats, first: Ints, last: Ints) -> None:
        self._values, self._bounds = values, (first, last)
        # A run ends where a window begins at or after the end of all before it: values of
        # different runs are never in one window, so each run has a tree of its own size.
        starts_run = np.append(True, first[1:] >= np.maximum.accumulate(last)[:-1])[: len(first)]
        starts, run = first[starts_run], np.cumsum(starts_run) - 1
        ends = np.append(starts[1:], len(values))
        run_of = np.repeat(
            np.arange(len(starts) + 1), np.diff(starts, prepend=0, append=len(values))
        )
        self._order = sorted_rows(Groups(run_of, len(starts) + 1), values)
        self._runs = (inverse(self._order), starts[run], (ends - starts)[run])

    def places(self, k: Ints) -> tuple[Floats, Floats]:
        """Of each window the value at place k in ascending order, and at the next place.

        Where there is no next place it is the last one. NaN is greatest. The result for an empty
        window is arbitrary. Costs O(log(run)) for every value and window; a run is a stretch of
        values that windows overlap across.
        """
        from tidegate.operate.kernels.window import slide_loop

        if len(self._values) == 0 or len(k) == 0:
            return np.zeros(len(k)), np.zeros(len(k))
        given = (*self._runs, *self._bounds, k)
        low, high = slide_loop.select()(*map(np.ascontiguousarray, given))
        return self._values[self._order[low]], self._values[self._order[high]]


def distinct_counts(codes: Ints, size: int, first: Ints, last: Ints) -> Ints:
    """How many distinct codes, in [0, size), each window has; costs O(1) for every value."""
    from tidegate.operate.kernels.window import slide_loop

    bounds = (np.ascontiguousarray(first), np.ascontiguousarray(last))
    found: Ints = slide_loop.distinct()(np.ascontiguousarray(codes), size, *bounds)
    return found
