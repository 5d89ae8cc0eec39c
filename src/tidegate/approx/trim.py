"""Chooses the groups to be trimmed in a window, bin by bin, as ShedPart does.

Algorithm 10 of the dissertation takes the fullest worker, trims all of its groups that a sample can
stand for, and goes on with the fullest then, until that one has nothing left to trim. A worker goes
from its load to its **floor**, what is left of its groups when all are trimmed; it stops at the
highest floor. So a worker is trimmed where its load is above the floors of all, which is how it is
said here; `tests/oracle/trim.py` has it as it is printed. Workers are buckets here, because what is
trimmed must not depend on how many instances there are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidegate.approx.array import Floats, Ints, Mask
from tidegate.approx.bound import least
from tidegate.approx.student import deviate


@dataclass(frozen=True)
class TrimThresholds:
    """From where on trimming is looked for.

    `saving` is T: where less than this share of a window's tuples can be trimmed, none is; by
    default as in section 7.5 of the dissertation. `cold_rows` is T_g: what has fewer tuples is
    cold, and is not trimmed. None derives it for each window (section 7.4.3.1).
    """

    saving: float = 0.15
    cold_rows: int | None = None

    def hot_from(self, tuples: Ints) -> int:
        """T_g for a window with so many tuples in its bins.

        Where it is derived, it is the mean of the bins that have any. Groups share bins, so it is
        at least |S| / G.
        """
        if self.cold_rows is not None:
            return self.cold_rows
        groups = max(int(np.count_nonzero(tuples)), 1)
        return -(-int(tuples.sum()) // groups)


@dataclass(frozen=True)
class Trim:
    """What is trimmed of a window: by bin whether it is, and what share could be saved at all.

    `skipped` where that is so little that nothing was looked for.
    """

    bins: Mask
    saving: float
    skipped: bool


def sample_size(
    tuples: Ints, rows: Ints, mean: Floats, variance: Floats, error: float, confidence: float
) -> Ints:
    """How many tuples stand for so many: equation 7.1 for a relative error, at most all of them.

    `mean` and `variance` are those of `rows` of the tuples. With the correction for a finite
    population, and never fewer than show what is rare (`bound.least`). All where nothing is known.
    """
    alpha = 1 - confidence
    with np.errstate(all="ignore"):
        allowed = (error * mean / deviate(alpha, rows - 1)) ** 2
        size = variance / allowed * (1 + 2 / rows)
        size = size / (1 + size / np.maximum(tuples, 1))
        size = np.maximum(np.ceil(size), least(alpha))
    size = np.where(np.isfinite(size), np.minimum(size, tuples), tuples)
    sizes: Ints = size.astype(np.int64)
    return sizes


def trim(place: Ints, tuples: Ints, needed: Ints, buckets: int, thresholds: TrimThresholds) -> Trim:
    """Which bins of a window are trimmed: the hot ones of the buckets that are.

    `place` is the bucket of each bin of groups, `tuples` how many it has, `needed` how many of
    these a sample takes, at most all. Takes O(bins + buckets).
    """
    hot = tuples >= thresholds.hot_from(tuples)
    sizes = np.where(hot, np.minimum(needed, tuples), tuples)
    whole = int(tuples.sum())
    saving = float(whole - int(sizes.sum())) / max(whole, 1)
    if saving < thresholds.saving:
        return Trim(np.zeros(len(tuples), np.bool_), saving, True)
    load = np.bincount(place, tuples, buckets)
    floor = np.bincount(place, sizes, buckets)
    return Trim(hot & (load > floor.max())[place], saving, False)
