"""The concept of a window, and how far it drifts from one window to the next.

After section 5.3 of the dissertation: the **concept** of a window is what its query makes of it.
For a grouped aggregate it is how often each group occurs; for one without groups, the mean and the
variance. It drifts from window to window in two ways. **Overlap** is the share of groups that two
windows have in common, 1 where they have the same. **Distance** is how different they are: 0 where
every group has the same share of the tuples, 1 where they have no group in common.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, sqrt

import numpy as np

from tidegate.approx.array import Ints, Words


@dataclass(frozen=True)
class Drift:
    """From one window to the next; both from 0 to 1."""

    overlap: float
    distance: float


@dataclass(frozen=True)
class GroupConcept:
    """How often groups occur: words that stand for them, ascending, and their tuples."""

    groups: Words
    tuples: Ints

    @staticmethod
    def of(groups: Words, tuples: Ints) -> GroupConcept:
        """From groups in any order, each once."""
        order = np.argsort(groups)
        return GroupConcept(groups[order], tuples[order])

    def common(self, after: GroupConcept) -> tuple[Ints, Ints]:
        """Where the groups of both are, here and there."""
        if not len(self.groups):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        places = np.minimum(np.searchsorted(self.groups, after.groups), len(self.groups) - 1)
        there = np.flatnonzero(self.groups[places] == after.groups)
        return places[there], there

    def drift_to(self, after: GroupConcept) -> Drift:
        """Jaccard's overlap, and Hellinger's distance of the frequencies."""
        here, there = self.common(after)
        either = len(self.groups) + len(after.groups) - len(here)
        if either == 0:
            return Drift(1.0, 0.0)
        mine = self.tuples / max(int(self.tuples.sum()), 1)
        theirs = after.tuples / max(int(after.tuples.sum()), 1)
        affinity = float(np.sqrt(mine[here] * theirs[there]).sum())
        return Drift(len(here) / either, sqrt(max(1.0 - affinity, 0.0)))


@dataclass(frozen=True)
class ScalarConcept:
    """The mean and the variance of a value."""

    mean: float
    variance: float

    def drift_to(self, after: ScalarConcept) -> Drift:
        """Of normal distributions with these: Bhattacharyya's overlap and Hellinger's distance."""
        total = self.variance + after.variance
        if total == 0:
            common = 1.0 if self.mean == after.mean else 0.0
        else:
            narrow = sqrt(2 * sqrt(self.variance * after.variance) / total)
            common = narrow * exp(-((self.mean - after.mean) ** 2) / (4 * total))
        return Drift(common, sqrt(max(1.0 - common, 0.0)))
