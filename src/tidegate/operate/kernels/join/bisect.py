"""Binary search for many values at once, each in a range of its own."""

from __future__ import annotations

import numpy as np

from tidegate.operate.kernels.order import Ints


def bisect(values: Ints, wanted: Ints, first: Ints, last: Ints) -> Ints:
    """For each range [first, last) of `values`: the place of the first value >= wanted.

    Values ascend within each range; an empty range gives `first`. All arrays are int64. Costs
    O(log(longest range)) passes over the ranges that are still open.
    """
    low, high = first.copy(), last.copy()
    rest = np.flatnonzero(low < high)
    while len(rest):
        middle = (low[rest] + high[rest]) >> 1
        less = values[middle] < wanted[rest]
        low[rest[less]] = middle[less] + 1
        high[rest[~less]] = middle[~less]
        rest = rest[low[rest] < high[rest]]
    return low


def below(values: Ints, wanted: Ints) -> Ints:
    """How many values are less than each wanted one; both ascend.

    As `np.searchsorted(values, wanted)`. Where values are few, it looks for them among the wanted
    ones instead, and counts.
    """
    if 2 * len(values) >= len(wanted):
        return np.searchsorted(values, wanted)
    since = np.searchsorted(wanted, values, "right")
    return np.cumsum(np.bincount(since, minlength=len(wanted))[: len(wanted)])
