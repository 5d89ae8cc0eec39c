"""The metrics by which an approximate answer differs from the exact one.

Numbers in brackets are those of the equations in the dissertation that Tidegate follows (section
2.5.1). NULL stands for no answer and has no error; NaN stands for it here.
"""

from __future__ import annotations

from enum import Enum

import numpy as np

from tidegate.approx.array import Floats, Ints


class Metric(Enum):
    """How the errors of the groups of a window make one."""

    MAX = "max"
    MEAN = "mean"
    RMS = "rms"


def relative(truth: Floats, estimate: Floats) -> Floats:
    """(2.2): the difference by the larger of both, in absolute terms; 0 where they are equal."""
    with np.errstate(all="ignore"):
        larger = np.maximum(np.abs(truth), np.abs(estimate))
        error: Floats = np.where(truth == estimate, 0.0, np.abs(truth - estimate) / larger)
    return error


def absolute(truth: Floats, estimate: Floats) -> Floats:
    """(2.3): the difference."""
    with np.errstate(all="ignore"):
        error: Floats = np.where(truth == estimate, 0.0, np.abs(truth - estimate))
    return error


def combined(metric: Metric, errors: Floats, window: Ints, windows: int) -> Floats:
    """(2.4) to (2.6): the error of each window from those of its groups; 0 for one without."""
    counts = np.maximum(np.bincount(window, minlength=windows), 1)
    with np.errstate(all="ignore"):
        if metric is Metric.MAX:
            largest = np.zeros(windows)
            np.maximum.at(largest, window, errors)
            return largest
        powers = errors if metric is Metric.MEAN else errors**2
        means: Floats = np.bincount(window, weights=powers, minlength=windows) / counts
        return means if metric is Metric.MEAN else np.sqrt(means)


def rank_error(ordered: Floats, fraction: float, estimate: float) -> float:
    """How far the rank of an estimate is from that of a quantile, as a share of the values.

    `ordered` are all values, ascending. An estimate between two values has the ranks of both, and
    one that occurs several times has the ranks of all: the nearest counts.
    """
    low = np.searchsorted(ordered, estimate, "left") / len(ordered)
    high = np.searchsorted(ordered, estimate, "right") / len(ordered)
    return float(max(low - fraction, fraction - high, 0.0))
