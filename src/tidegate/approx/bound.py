"""Intervals of means, sums, variances and deviations from samples.

All are Student's intervals of a mean, with the correction for a finite population: a sample of n of
N tuples, without replacement, with mean m and variance v holds the mean of all in
m +- t sqrt(v / n) sqrt(1 - n / N) with the confidence that t is for. A sum is N times a mean; a
variance is the mean of squared deviations; a deviation is its root.

The interval rests on means of samples being normally distributed. They are for large samples; how
large, depends on the skewness of the values. The share of intervals that miss the truth grows by
about 0.25 skewness**2 / n (Hall, The Bootstrap and Edgeworth Expansion, 1992, section 2.6), which
is Cochran's rule n > 25 skewness**2 for one percentage point. `trusted` says where it can be relied
on; the skewness of a sample is less than that of what it was taken from, so it asks for more.
What no row of a sample shows cannot be accounted for: see `least`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt

from tidegate.approx.array import Floats, Ints, Mask
from tidegate.approx.error_scale import AllowedError
from tidegate.approx.moments import Moments
from tidegate.approx.student import deviate, normal_deviate

RARE = 0.01
"""The share of a group's tuples from which on a sample must have seen them."""

SKEW = 50.0
"""How many values must be there for the square of the skewness; twice Cochran's."""

_ROUNDING = 1e-12
"""Standard deviation by mean: what varies less does not vary."""

_LARGEST_VARIATION = 2.0
"""Standard deviation by mean: what varies more is not worth a sample."""


class Kind(Enum):
    """What is estimated of the values of a group."""

    MEAN = "mean"
    SUM = "sum"
    VARIANCE = "variance"
    DEVIATION = "deviation"

    @property
    def of_squares(self) -> bool:
        """Whether it is a mean of squared deviations, or made of one."""
        return self in (Kind.VARIANCE, Kind.DEVIATION)


@dataclass(frozen=True)
class Sample:
    """Samples of groups: how many values there were, how many were taken, and what they are."""

    tuples: Ints
    rows: Ints
    moments: Moments

    @staticmethod
    def of(tuples: Ints, codes: Ints, values: Floats) -> Sample:
        """Of sampled values with their groups."""
        rows = np.bincount(codes, minlength=len(tuples)).astype(np.int64)
        return Sample(tuples, rows, Moments.of(codes, len(tuples), values))

    @property
    def whole(self) -> Mask:
        """Which groups have all their tuples in the sample: nothing is estimated of them."""
        return self.rows >= self.tuples

    @property
    def rest(self) -> Floats:
        """The share of the tuples that is not in the sample."""
        return 1 - self.rows / np.maximum(self.tuples, 1)


@dataclass(frozen=True)
class Interval:
    """An estimate of each group, and bounds that hold the truth with the confidence asked for."""

    value: Floats
    low: Floats
    high: Floats


def least(alpha: npt.ArrayLike) -> Ints:
    """The fewest values of which an interval is made that may miss with the probability alpha.

    So many show any kind of tuple that is at least `RARE` of a group, but for that probability: a
    few large values among many small ones, none of which is in a sample, would make any interval
    wrong. About 230, 300 and 460 for a confidence of 90, 95 and 99 percent.
    """
    values: Ints = np.ceil(np.log(alpha) / np.log1p(-RARE)).astype(np.int64)
    return values


def interval(kind: Kind, sample: Sample, alpha: npt.ArrayLike) -> Interval:
    """Estimates, wrong about their bounds with the probability alpha, one for all or for each.

    Where a group is in the sample as a whole, both bounds are the value.
    """
    moments = sample.moments
    with np.errstate(all="ignore"):
        value, spread = _of_squares(moments) if kind.of_squares else _of_values(moments)
        half = deviate(alpha, moments.n - 1) * spread / np.sqrt(moments.n) * np.sqrt(sample.rest)
        half = np.where(sample.whole, 0.0, half)
        low, high = value - half, value + half
        if kind is Kind.SUM:
            value, low, high = (sample.tuples * bound for bound in (value, low, high))
        elif kind.of_squares:
            low = np.maximum(low, 0.0)
        if kind is Kind.DEVIATION:
            value, low, high = np.sqrt(value), np.sqrt(low), np.sqrt(high)
    return Interval(value, low, high)


def trusted(kind: Kind, sample: Sample, alpha: npt.ArrayLike) -> Mask:
    """Where an interval can be relied on: enough values, which vary, and are not too skewed.

    Values that are all the same say nothing about others that may be there, as in a column that is
    mostly 0; neither do those that differ by rounding only.
    """
    moments = sample.moments
    with np.errstate(all="ignore"):
        enough = moments.n >= np.maximum(least(alpha), SKEW * _skewness(kind, moments) ** 2)
        varies = moments.variance > (_ROUNDING * moments.mean) ** 2
        return enough & varies & np.isfinite(moments.variance)


def needed(kind: Kind, pilot: Sample, allowed: AllowedError, alpha: npt.ArrayLike) -> Ints:
    """How many rows of each group a sample needs for an error, from a first look at a few.

    Values are taken to vary more than they do in the pilot, by two standard errors of its variance
    (three for squares, of which less is known), and to be more skewed: the larger sample will show
    it. At least as many as `least` says, at most all tuples, which is also the answer where the
    pilot says nothing.
    """
    moments = pilot.moments
    with np.errstate(all="ignore"):
        value, spread = _of_squares(moments) if kind.of_squares else _of_values(moments)
        unsure = np.sqrt(np.maximum(moments.kurtosis - 1, 0.0) / np.maximum(moments.n, 1))
        spread = spread * np.sqrt(1 + (3 if kind.of_squares else 2) * unsure)
        tuples = pilot.tuples
        if kind is Kind.SUM:  # of so many values
            value, spread = tuples * value, tuples * spread
        half = allowed.half_of_square if kind is Kind.DEVIATION else allowed.half
        without = (normal_deviate(alpha) * spread / half(value)) ** 2
        size = without / (1 + without / tuples)
        size = np.maximum(size, np.minimum(2 * SKEW * _skewness(kind, moments) ** 2, tuples))
        size = np.maximum(size, least(alpha))
        size = np.where(np.isfinite(size), np.minimum(size, tuples), tuples)
    rows: Ints = np.minimum(np.ceil(size), tuples).astype(np.int64)
    return rows


def most(error: float, confidence: float) -> int:
    """The largest sample of a group that is worth keeping: what varies more is computed exactly."""
    z = float(normal_deviate(1 - confidence))
    rows = int(np.ceil((z * _LARGEST_VARIATION * (1 + error) / error) ** 2))
    return max(rows, int(least(1 - confidence)))


def _of_values(moments: Moments) -> tuple[Floats, Floats]:
    return moments.mean, np.sqrt(moments.variance)


def _of_squares(moments: Moments) -> tuple[Floats, Floats]:
    """The mean and the deviation of squared deviations."""
    return moments.variance, moments.variance * np.sqrt(np.maximum(moments.kurtosis - 1, 0.0))


def _skewness(kind: Kind, moments: Moments) -> Floats:
    """The skewness of the values, or of their squared deviations."""
    if not kind.of_squares:
        return moments.skewness
    third = moments.sixth - 3 * moments.kurtosis + 2
    skewness: Floats = third / np.maximum(moments.kurtosis - 1, 1e-9) ** 1.5
    return skewness
