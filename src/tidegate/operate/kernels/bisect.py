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
