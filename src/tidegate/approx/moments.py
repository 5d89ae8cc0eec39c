"""Counts, means and deviations of the values in samples, from which intervals are made."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidegate.approx.array import Floats, Ints


@dataclass(frozen=True)
class Moments:
    """Of each group: how many values, their mean, their variance (by n - 1), and their shape.

    `skewness`, `kurtosis` (3 for a normal distribution) and `sixth` are moments of the values less
    their mean, in units of their standard deviation (by n), so that they do not overflow; 0, 1, 1
    where values do not vary. What cannot be computed is NaN: the mean of no values, the variance
    of fewer than two, anything of infinities.
    """

    n: Ints
    mean: Floats
    variance: Floats
    skewness: Floats
    kurtosis: Floats
    sixth: Floats

    @staticmethod
    def of(codes: Ints, groups: int, values: Floats) -> Moments:
        """Of values with their groups; two passes, so that large means do not drown deviations.

        Sums are made in the order of the rows: the same rows in the same order give the same bits.
        """
        n = np.bincount(codes, minlength=groups).astype(np.int64)
        with np.errstate(all="ignore"):
            mean = _sums(codes, groups, values) / n
            apart = values - mean[codes]
            squares = _sums(codes, groups, apart * apart)
            deviation = np.sqrt(squares / n)
            apart = apart / np.where(deviation > 0, deviation, 1.0)[codes]
            square = apart * apart
            skewness = _sums(codes, groups, square * apart) / n
            kurtosis = _sums(codes, groups, square * square) / n
            sixth = _sums(codes, groups, square * square * square) / n
            varies = ~(deviation == 0)
            return Moments(
                n,
                mean,
                np.where(n > 1, squares / (n - 1), np.nan),
                np.where(varies, skewness, 0.0),
                np.where(varies, kurtosis, 1.0),
                np.where(varies, sixth, 1.0),
            )


def _sums(codes: Ints, groups: int, values: Floats) -> Floats:
    sums: Floats = np.bincount(codes, weights=values, minlength=groups).astype(np.float64)
    return sums
