"""Random groups: intervals for functions of which only the result is known.

A sample is dealt out by priority into parts, each a sample itself, the function is computed for all
of it and for each part, and the spread of the parts says how far the whole may be off. It holds for
functions that behave like a mean: that of many tuples is close to the mean of those of parts.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tidegate.approx.array import Floats, Ints, Mask
from tidegate.approx.bound import SKEW, Interval, least
from tidegate.approx.error_scale import AllowedError
from tidegate.approx.moments import Moments
from tidegate.approx.student import deviate

PARTS = 50
"""Into how many parts a sample is dealt out: so many that a skewed function shows in them."""


_BY_CHANCE = 4.0
"""By how many standard errors the mean of a sample may be off."""


def parts_of(codes: Ints, ranks: Ints) -> Ints:
    """The part of each row, group * PARTS + part, from its group and its place in the sample."""
    return codes * PARTS + ranks % PARTS


def replicated_rows(
    values: Floats,
    of_parts: Floats,
    *,
    rows: Ints,
    tuples: Ints,
    alpha: npt.ArrayLike,
    allowed: AllowedError,
) -> Ints:
    """How many rows of each group a sample needs for an error, from a first look; 0 for not known.

    Parts are taken to vary more than they do, by two standard errors of their variance, and to be
    more skewed, as the larger sample will show; the skewness of parts falls with their size. What
    is needed is known where the mean of the parts is that of the whole, as far as one can say.
    """
    spread = Moments.of(np.repeat(np.arange(len(values)), PARTS), len(values), of_parts)
    with np.errstate(all="ignore"):
        unsure = np.sqrt(np.maximum(spread.kurtosis - 1, 0.0) / PARTS)
        half = deviate(alpha, PARTS - 1) * np.sqrt(spread.variance / PARTS * (1 + 2 * unsure))
        without = rows * (half / allowed.half(values)) ** 2
        size = without / (1 + without / tuples)
        size = np.maximum(size, rows * 2 * SKEW * spread.skewness**2 / PARTS)
        size = np.minimum(np.maximum(size, least(alpha)), tuples)
        known = (np.abs(spread.mean - values) <= half) & (spread.variance > 0) & np.isfinite(size)
    return np.where(known, np.ceil(np.where(known, size, 0)), 0).astype(np.int64)


def replicated(
    values: Floats, of_parts: Floats, *, rows: Ints, tuples: Ints, alpha: npt.ArrayLike
) -> tuple[Interval, Mask]:
    """Intervals of groups, and where they can be relied on.

    `values` are the results of whole samples, `of_parts` those of their parts in the order of
    `parts_of`; `rows` and `tuples` count what is in each sample and what it was taken from.
    """
    spread = Moments.of(np.repeat(np.arange(len(values)), PARTS), len(values), of_parts)
    whole = rows >= tuples
    with np.errstate(all="ignore"):
        rest = 1 - rows / np.maximum(tuples, 1)
        half = deviate(alpha, PARTS - 1) * np.sqrt(spread.variance / PARTS * rest)
        half = np.where(whole, 0.0, half)
        alike = np.abs(spread.mean - values) <= half
        even = SKEW * spread.skewness**2 <= PARTS
        relied_on = alike & even & (spread.variance > 0) & (rows >= least(alpha))
    return Interval(values, values - half, values + half), relied_on | whole


def agrees(sample: Moments, means: Floats, rows: Ints, tuples: Ints, allowed: AllowedError) -> Mask:
    """Where samples of so many rows have nearly the mean that all tuples have, which is known.

    By so much as is allowed for means, or by chance: `_BY_CHANCE` standard errors. NaN is the mean
    of nothing, and agrees with no sampled values.
    """
    with np.errstate(all="ignore"):
        off = np.abs(sample.mean - means)
        rest = 1 - rows / np.maximum(tuples, 1)
        chance = _BY_CHANCE * np.sqrt(sample.variance / sample.n * rest)
        larger = np.maximum(np.abs(means), np.abs(sample.mean))
        near: Mask = (off <= np.fmax(allowed.of_means(larger), chance)) | (
            np.isnan(means) & (sample.n == 0)
        )
    return near
