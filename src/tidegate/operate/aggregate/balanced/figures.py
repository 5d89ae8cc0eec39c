"""What is told of windows whose groups are trimmed: how even they were before and after it.

Loads are tuples that an instance evaluates. The **imbalance** is that of equation 3.1: how many
more the fullest instance has than they have on average.
"""

from __future__ import annotations

import numpy as np

from tidegate.operate.aggregate.balanced.answer import Balanced
from tidegate.operate.figures import MOST_WINDOWS, Shown, ToldWindow, WindowFigures
from tidegate.operate.kernels.order import Ints, Mask

_HELD, _LEFT, _GROUPS, _SKIPPED = "held", "left", "trimmed_groups", "skipped_by"

BALANCED_SHOWN = (
    Shown("trimmed", "trimmed", "share", brief=True),
    Shown("groups_trimmed", "groups trimmed"),
    Shown("largest_before", "largest load"),
    Shown("largest_after", "largest load after", brief=True),
    Shown("imbalance_before", "imbalance"),
    Shown("imbalance_after", "imbalance after"),
    Shown("skipped", "windows not trimmed", "share"),
)


class BalancedCounts:
    """Adds up what an instance has of each window; keeps the newest."""

    def __init__(self, range_us: int) -> None:
        self._range_us = range_us
        self._held: dict[int, dict[str, float]] = {}

    def add(self, ends: Ints, found: Balanced, skipped: Mask) -> None:
        """Rows by the ends of their windows, and whether nothing was looked for in these."""
        if not len(ends):
            return
        firsts = np.flatnonzero(np.append(True, ends[1:] != ends[:-1]))
        for first, last in zip(firsts, np.append(firsts[1:], len(ends)), strict=True):
            of = slice(first, last)
            tuples, looked_at = found.tuples[of], found.looked_at[of]
            values = self._held.setdefault(int(ends[first]), {})
            told = {
                _HELD: int(tuples.sum()),
                _LEFT: int(looked_at.sum()),
                _GROUPS: int(np.count_nonzero(looked_at < tuples)),
            }
            for name, value in told.items():
                values[name] = values.get(name, 0) + value
            values[_SKIPPED] = int(skipped[first])
        for end_us in sorted(self._held)[:-MOST_WINDOWS]:
            del self._held[end_us]

    def figures(self) -> tuple[WindowFigures, ...]:
        return tuple(
            WindowFigures(end_us - self._range_us, end_us, values)
            for end_us, values in self._held.items()
        )


def balanced_window(told: ToldWindow) -> dict[str, float]:
    """The figures of a window whose groups may have been trimmed; none where none could be."""
    if not any(_HELD in values for values in told.closed.values()):
        return {}
    before, after = told.each(_HELD), told.each(_LEFT)
    whole = max(sum(before), 1)
    return {
        "trimmed": 1 - sum(after) / whole,
        "groups_trimmed": told.total(_GROUPS),
        "largest_before": max(before),
        "largest_after": max(after),
        "imbalance_before": max(before) - sum(before) / len(before),
        "imbalance_after": max(after) - sum(after) / len(after),
        "skipped": told.largest(_SKIPPED),
    }
