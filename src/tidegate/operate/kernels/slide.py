"""Quantiles and distinct counts of overlapping windows, each from the one before it.

A window is [first, last) over a sequence of values. Neither bound falls from one window to the
next, so that values enter in order and leave in order; windows of another key lie further on.
"""

from __future__ import annotations

import numpy as np

from tidegate.operate.kernels.group import stable_order
from tidegate.operate.kernels.order import Floats, Ints, inverse


def places_in_order(values: Floats, first: Ints, last: Ints, k: Ints) -> tuple[Floats, Floats]:
    """Of each window the values at place k in ascending order and at the next one, if there is one.

    NaN is greatest. An empty window has any value. Costs O(log(run)) for every value and window,
    where a run is the values that windows lead over to.
    """
    from tidegate.operate.kernels import slide_loop

    if len(values) == 0 or len(first) == 0:
        return np.zeros(len(first)), np.zeros(len(first))
    starts_run = np.append(True, first[1:] >= np.maximum.accumulate(last)[:-1])
    starts, run = first[starts_run], np.cumsum(starts_run) - 1
    ends = np.append(starts[1:], len(values))
    run_of = np.searchsorted(starts, np.arange(len(values)), side="right")
    by_value = np.argsort(values)
    order = by_value[stable_order(run_of[by_value], len(starts) + 1)]
    given = (inverse(order), starts[run], (ends - starts)[run], first, last, k)
    low, high = slide_loop.select()(*map(np.ascontiguousarray, given))
    return values[order[low]], values[order[high]]


def distinct_counts(codes: Ints, size: int, first: Ints, last: Ints) -> Ints:
    """How many different codes, of [0, size), each window has; costs O(1) for every value."""
    from tidegate.operate.kernels import slide_loop

    bounds = (np.ascontiguousarray(first), np.ascontiguousarray(last))
    found: Ints = slide_loop.distinct()(np.ascontiguousarray(codes), size, *bounds)
    return found
