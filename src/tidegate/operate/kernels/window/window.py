"""Numbers the windows that cover each pane.

Pane p is [p * w, (p + 1) * w). Window k is [k * s, k * s + r), that is, the panes from
k * s / w up to before (k * s + r) / w, because w divides both r and s.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tidegate.operate.kernels.order import Ints


@dataclass(frozen=True)
class Cover:
    """Windows over panes, both in pane units: `length` panes each, a new one every `step`."""

    length: int
    step: int

    def bounds(self, panes: Ints, first: int, last: int) -> tuple[Ints, Ints]:
        """The lowest and highest window in [first, last] that covers each pane.

        Where low > high there is none. `first` and `last` are Python integers and may exceed int64,
        as +inf does in windows: they are clamped to the windows that there are.
        """
        low, high = (panes - self.length) // self.step + 1, panes // self.step
        floor, ceiling = int(low.min()), int(high.max())
        first = min(max(first, floor), ceiling + 1)
        last = max(min(last, ceiling), floor - 1)
        return np.maximum(low, first), np.minimum(high, last)

    @property
    def windows(self) -> int:
        """The most windows that a pane is in."""
        return -(-self.length // self.step)


def expand(low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """One entry per (row, window) with low[row] <= window <= high[row], rows in their order."""
    counts = np.maximum(high - low + 1, 0)
    rows = np.repeat(np.arange(len(low)), counts)
    offset = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    return rows, low[rows] + offset


def once(codes: Ints, low: Ints, high: Ints) -> Ints:
    """The lowest window of each row that has no earlier row of its key.

    Rows ascend by key, which `codes` number, and by pane within a key. Expanding each row from here
    to `high` gives every window of a key once.
    """
    own = low.copy()
    same = codes[1:] == codes[:-1]
    own[1:] = np.where(same, np.maximum(low[1:], high[:-1] + 1), low[1:])
    return own


def spans(low: Ints, high: Ints, weights: Ints, limit: int) -> Iterator[tuple[int, int]]:
    """Cut the windows that occur into ascending ranges whose expansion weighs at most `limit`.

    A single window is never cut, however heavy.
    """
    used = high >= low
    if not bool(used.any()):
        return
    pending = [(int(low[used].min()), int(high[used].max()))]
    while pending:
        first, last = pending.pop()
        counts = np.minimum(high, last) - np.maximum(low, first) + 1
        weight = float((np.maximum(counts, 0) * weights.astype(np.float64)).sum())
        if weight <= limit or first == last:
            if weight > 0:
                yield first, last
            continue
        # The earlier half is on top of the stack, so ranges come out ascending.
        middle = (first + last) // 2
        pending += [(middle + 1, last), (first, middle)]
