"""Quantiles from samples, with bounds of their ranks.

The bound is of ranks and holds for every distribution, however skewed, so it can be promised before
a value is seen. By Hoeffding's inequality, in Serfling's form for samples without replacement, of n
of N values, a share in the sample is off by more than d on one side with a probability of at most
exp(-2 n d**2 / (1 - (n - 1) / N)); a quantile of a sample has a rank that is off by more only if
such a share is. For an infinite N it is the bound of Dvoretzky, Kiefer and Wolfowitz for a fixed
quantile. What is interpolated lies between two values: that costs at most 1 / n.
"""

from __future__ import annotations

from math import ceil, log, sqrt

import numpy as np

from tidegate.approx.array import Floats, Ints
from tidegate.approx.bound import Interval


def rank_rows(error: float, confidence: float, fraction: float = 0.5) -> int:
    """How many values a sample needs for a quantile whose rank is off by at most `error`.

    195 for the median at 10 percent and a confidence of 95; the size of the window does not matter.
    """
    spread = sqrt(log(2 / (1 - confidence)) / 2)
    root = (spread + sqrt(spread**2 + 4 * error * _farther(fraction))) / (2 * error)
    return ceil(root**2)


def rank_bound(rows: Ints, tuples: Ints, confidence: float, fraction: float = 0.5) -> Floats:
    """By how much ranks are off at most, as a share; 0 where the sample is everything."""
    with np.errstate(all="ignore"):
        bound = _off(rows, tuples, confidence) + _farther(fraction) / rows
    return np.where(rows >= tuples, 0.0, np.where(rows > 0, np.minimum(bound, 1.0), 1.0))


def quantiles(
    codes: Ints, values: Floats, tuples: Ints, *, fraction: float, confidence: float
) -> Interval:
    """A quantile of each group from sampled values, with values that hold that of all tuples.

    `tuples` are all that could have been sampled, of each group. The value is interpolated as the
    exact function does it. A bound is infinite where the sample does not reach so far.
    """
    groups = len(tuples)
    order = np.lexsort((values, codes))
    ordered = np.append(values[order], np.nan)
    n = np.bincount(codes, minlength=groups).astype(np.int64)
    starts = np.cumsum(n) - n
    place = np.maximum(n - 1, 0) * fraction
    below, above = np.floor(place).astype(np.int64), np.ceil(place).astype(np.int64)
    low_value, high_value = ordered[starts + below], ordered[starts + above]
    with np.errstate(all="ignore"):
        between = (above - place) * low_value + (place - below) * high_value
        value = np.where((below == above) | (low_value == high_value), low_value, between)
    first, last = rank_places(n, tuples, fraction=fraction, confidence=confidence)
    low = np.where(first >= 0, ordered[starts + np.maximum(first, 0)], -np.inf)
    high = np.where(last < n, ordered[starts + np.clip(last, 0, n)], np.inf)
    whole, empty = n >= tuples, n == 0
    low, high = np.where(whole, value, low), np.where(whole, value, high)
    return Interval(*(np.where(empty, np.nan, one) for one in (value, low, high)))


def rank_places(
    rows: Ints, tuples: Ints, *, fraction: float, confidence: float
) -> tuple[Ints, Ints]:
    """Places in the order of sampled values between which the quantile of all tuples is.

    -1 and the number of rows stand for ends that the sample does not reach. Far from the middle the
    bound of ranks may lie outside of the sample. That all of n values are on one side of a quantile
    has the probability fraction ** n, and mostly rules it out.
    """
    off = _off(rows, tuples, confidence) + _farther(fraction) / np.maximum(tuples, 1)
    off = np.where(np.isfinite(off), off, 1.0)
    first = np.floor(rows * (fraction - off)).astype(np.int64) - 1
    last = np.ceil(rows * (fraction + off)).astype(np.int64) - 1
    rare = (1 - confidence) / 2
    sure_below, sure_above = (1 - fraction) ** rows <= rare, fraction**rows <= rare
    first = np.where(first >= 0, first, np.where(sure_below, 0, -1))
    return first, np.where(last < rows, last, np.where(sure_above, rows - 1, rows))


def _off(rows: Ints, tuples: Ints, confidence: float) -> Floats:
    """How far a share of a sample is from that of all tuples, on either side."""
    with np.errstate(all="ignore"):
        rest = 1 - (rows - 1) / np.maximum(tuples, 1)
        off: Floats = np.sqrt(np.maximum(rest, 0.0) * log(2 / (1 - confidence)) / (2 * rows))
    return off


def _farther(fraction: float) -> float:
    return max(fraction, 1 - fraction)
