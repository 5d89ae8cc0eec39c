"""Binary search for many values at once, each in a range of its own."""

from __future__ import annotations

import numpy as np

from tidegate.operate.kernels.order import Ints


def bisect(values: Ints, wanted: Ints, first: Ints, last: Ints) -> Ints:
    """For each range [first, last) of ascending values: where the first is that is >= wanted."""
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
    """How many of ascending values are less than each wanted, these ascending too.

    As `np.searchsorted`, but few values are looked for among many wanted.
    """
    if 2 * len(values) >= len(wanted):
        return np.searchsorted(values, wanted)
    since = np.searchsorted(wanted, values, "right")
    return np.cumsum(np.bincount(since, minlength=len(wanted))[: len(wanted)])
