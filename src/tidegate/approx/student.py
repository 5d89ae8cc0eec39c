"""Quantiles of Student's distribution, for the width of an interval at a confidence.

By Hill's expansion (Algorithm 396, Communications of the ACM 13, 1970), so that nothing has to be
installed for them. Checked against tables to four decimals in `tests/approx/test_student.py`.
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from tidegate.approx.array import Floats

_NORMAL = NormalDist()


def normal_deviate(alpha: npt.ArrayLike) -> Floats:
    """z with P(|Z| > z) = alpha for a normal Z; alpha in (0, 1)."""
    tails, which = np.unique(np.asarray(alpha, np.float64), return_inverse=True)
    found = np.array([-_NORMAL.inv_cdf(tail / 2) for tail in tails.tolist()])
    deviates: Floats = found[which].reshape(np.shape(alpha))
    return deviates


def deviate(alpha: npt.ArrayLike, freedom: npt.ArrayLike) -> Floats:
    """t with P(|T| > t) = alpha for T with so many degrees of freedom; infinite below one."""
    alphas, degrees = np.broadcast_arrays(
        np.asarray(alpha, np.float64), np.asarray(freedom, np.float64)
    )
    with np.errstate(all="ignore"):
        n = np.maximum(degrees, 3.0)
        found = _hill(alphas, n)
        found = np.where(degrees < 3, np.sqrt(2 / (alphas * (2 - alphas)) - 2), found)
        found = np.where(degrees < 2, 1 / np.tan(alphas * np.pi / 2), found)
    deviates: Floats = np.where(degrees < 1, np.inf, found)
    return deviates


def _hill(alpha: Floats, n: Floats) -> Floats:
    """The expansion, for three degrees of freedom and more, by the names that it has there."""
    a = 1 / (n - 0.5)
    b = 48 / a**2
    c = ((20700 * a / b - 98) * a - 16) * a + 96.36
    d = ((94.5 / (b + c) - 3) / b + 1) * np.sqrt(a * np.pi / 2) * n
    y = (d * alpha) ** (2 / n)
    near = y > 0.05 + a
    x = -normal_deviate(alpha)
    square = x**2
    c = c + np.where(n < 5, 0.3 * (n - 4.5) * (x + 0.6), 0.0)
    c = (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b + c
    inner = (((((0.4 * square + 6.3) * square + 36) * square + 94.5) / c - square - 3) / b + 1) * x
    middle = np.expm1(a * inner**2)
    outer = (
        (1 / (((n + 6) / (n * y) - 0.089 * d - 0.822) * (n + 2) * 3) + 0.5 / (n + 4)) * y - 1
    ) * (n + 1) / (n + 2) + 1 / y
    found: Floats = np.sqrt(n * np.where(near, middle, outer))
    return found
