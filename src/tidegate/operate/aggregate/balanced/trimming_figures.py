"""Measures how even the load of a window was before and after its groups were trimmed.

A load is the number of tuples that an instance evaluates. The **imbalance** is that of equation
3.1: how many more the fullest instance has than the mean.
"""

from __future__ import annotations

import numpy as np

from tidegate.operate.aggregate.balanced.answer import Balanced
from tidegate.operate.aggregate.figures import WindowTotals
from tidegate.operate.figures import ShownFigure, ToldWindow
from tidegate.operate.kernels.order import Ints, Mask

_HELD, _LEFT, _GROUPS, _SKIPPED = "held", "left", "trimmed_groups", "skipped_by"

SKIPPED = "skipped"
"""The figure that is 1 if the window was not searched for groups to trim. It is known where tuples
are surveyed."""

BALANCED_SHOWN = (
    ShownFigure("trimmed", "trimmed", "share", brief=True),
    ShownFigure("groups_trimmed", "groups trimmed"),
    ShownFigure("largest_before", "largest load"),
    ShownFigure("largest_after", "largest load after", brief=True),
    ShownFigure("imbalance_before", "imbalance"),
    ShownFigure("imbalance_after", "imbalance after"),
    ShownFigure(SKIPPED, "windows not trimmed", "share"),
)


POINTLESS_SHOWN = (
    ShownFigure("trimmed", "trimmed", "share", brief=True),
    ShownFigure("pointless", "windows where trimming is pointless", "share"),
)
POINTLESS = {"trimmed": 0.0, "pointless": 1.0}
"""The figures of a window of a query in which nothing is held that could be trimmed."""


class BalancedCounts(WindowTotals):
    """Counts the tuples of windows, and how many of them were evaluated."""

    def add(self, ends: Ints, found: Balanced, skipped: Mask) -> None:
        """Add answered rows, by the ends of their windows; `skipped` marks windows not trimmed."""
        trimmed = found.looked_at < found.tuples
        self.add_rows(
            ends,
            {
                _HELD: found.tuples,
                _LEFT: found.looked_at,
                _GROUPS: trimmed.astype(np.int64),
                _SKIPPED: skipped.astype(np.int64),
            },
        )


def balanced_window(told: ToldWindow) -> dict[str, float]:
    """The figures of a window; none where no group could be trimmed."""
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
        SKIPPED: int(told.largest(_SKIPPED) > 0),
    }
