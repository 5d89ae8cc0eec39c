"""Least squares for costs: never negative, robust, and honest about what the data cannot tell.

A batch takes `y = x . costs` seconds, where `x` has how often each cost was due in it. Measured
times scatter in proportion to their size, and some are far off (first batches, a long collection of
garbage, another process on the machine), nearly always to the same side. So squares are of relative
errors; what is far off counts little at first (Huber's weights), then nothing (Tukey's).

The others scatter to one side as well: a batch has more ways to be slow than to be fast, and its
typical length, which those weights find, is below the mean. Throughput and latency follow the mean.
So in the end all that is not far off counts the same.

Where two columns of `x` go together in all batches, only the sum of their parts is known. Then the
solution is the one that gives them even parts, and their intervals reach from nothing to all. That
is what the prior does: it says that the part of each cost in an average batch is 0 plus or minus 1,
or less where the caller knows what a cost can be at most. It has the weight of a single batch with
an error of 100 percent, which nobody notices where the data can tell.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate.model.operation import Floats

CONFIDENCE = 0.95
"""How often the interval of a cost has the true one in it."""

_HUBER, _BISQUARE = 1.345, 4.685
"""Tuning constants: with them little is lost where errors are normal."""

_ROUNDS, _LAST_ROUNDS = 5, 4
"""In which weights and costs settle; the very last is for all that is not far off."""

_LEAST_S = 5e-5
"""Below it, errors are no longer relative: clocks are not that good."""

_LEAST_SCATTER = 1e-3
"""Nobody measures better than so: else exact numbers would have no scatter at all."""


@dataclass(frozen=True, eq=False)
class FitMoments:
    """What is left of batches that are not kept one by one: weighted products of their columns.

    `count` is how many of them there are, by their weights.
    """

    products: Floats
    targets: Floats
    count: float

    @staticmethod
    def none(columns: int) -> FitMoments:
        return FitMoments(np.zeros((columns, columns)), np.zeros(columns), 0.0)

    def fading(self, kept: float) -> FitMoments:
        """The same, counting less."""
        return FitMoments(self.products * kept, self.targets * kept, self.count * kept)

    def with_more(self, x: Floats, y: Floats, weights: Floats, count: float) -> FitMoments:
        """With more batches, each with its weight; `count` is what they count for."""
        weighted = x * weights[:, None]
        return FitMoments(
            self.products + weighted.T @ x, self.targets + weighted.T @ y, self.count + count
        )

    def recorded(self) -> dict[str, Any]:
        """As JSON has it."""
        products, targets = self.products.tolist(), self.targets.tolist()
        return {"products": products, "targets": targets, "count": self.count}

    @staticmethod
    def restored(of: Mapping[str, Any]) -> FitMoments:
        """What `recorded` gave."""
        return FitMoments(np.array(of["products"]), np.array(of["targets"]), of["count"])


@dataclass(frozen=True, eq=False)
class Fit:
    """Costs, and how sure they are.

    `costs` are the best that are not negative. `free` are those without that bound, whose errors
    have the covariance `covariance`. `most` is what each cost is at most if it alone explains
    everything. `weights` are those of the batches, `counted` the part of each that is not far off,
    `freedom` the degrees of freedom of intervals, `scatter` the standard deviation of a batch as a
    part of what it takes.
    `off` is how far these batches are from the costs on the whole, as a part of what they take, and
    `drift` how many standard errors that is: where the past says something else than they, both are
    large.
    """

    costs: Floats
    free: Floats
    covariance: Floats
    most: Floats
    weights: Floats
    counted: Floats
    freedom: float
    scatter: float
    off: float
    drift: float

    def variance(self, of: Floats) -> float:
        """Of the error of a sum of costs, each so often."""
        return max(float(of @ self.covariance @ of), 0.0)


def fitted(x: Floats, y: Floats, past: FitMoments, likely: Floats | None = None) -> Fit:
    """The costs that explain `y` best; `x` has a row for each batch, `past` what was before them.

    Needs one batch at least. The costs of columns that are all zero are zero. `likely` says how
    large costs may well be, by column; without it, as large as would explain everything.
    """
    seen = (x != 0).any(axis=0) | (np.diag(past.products) > 0)
    size = _alone(past.with_more(x, y, 1 / np.maximum(y, _LEAST_S) ** 2, float(len(y))))
    size = size if likely is None else np.minimum(size, likely)
    relative, robust, scatter = 1 / np.maximum(y, _LEAST_S), np.ones(len(y)), 1.0
    costs = np.zeros(x.shape[1])
    now = past.with_more(x, y, relative**2, float(len(y)))
    for turn in range(_ROUNDS + _LAST_ROUNDS):
        costs = _positive(now, size, scatter, seen)
        # An error is relative to what was expected: to what was measured, it would favour the low.
        relative = 1 / np.maximum(x @ costs, _LEAST_S)
        errors = (y - x @ costs) * relative
        if turn < _ROUNDS:
            scatter = _scatter(errors, now.count, float(seen.sum()))
            robust = np.minimum(1.0, _HUBER * scatter / np.maximum(np.abs(errors), 1e-12))
        elif turn < _ROUNDS + _LAST_ROUNDS - 1:
            robust = np.maximum(1 - (errors / (_BISQUARE * scatter)) ** 2, 0.0) ** 2
        else:
            robust = (np.abs(errors) < _BISQUARE * scatter).astype(np.float64)
        now = past.with_more(x, y, relative**2 * robust, float(robust.sum()))
    costs = _positive(now, size, scatter, seen)
    near = ((y - x @ costs) * relative)[robust > 0]
    scatter = max(scatter, _deviation(near, now.count, float(seen.sum())))
    free, covariance = _free(now, size, scatter, seen)
    freedom = max(now.count - float(seen.sum()), 1.0)
    return Fit(
        costs=costs,
        free=free,
        covariance=covariance,
        most=_alone(now, scatter * student(freedom)),
        weights=relative**2 * robust,
        counted=robust,
        freedom=freedom,
        scatter=scatter,
        off=abs(float(np.mean(near))) if len(near) else 0.0,
        drift=_drift(near),
    )


def _scatter(errors: Floats, count: float, costs: float) -> float:
    """The standard deviation of relative errors, from their median, which nothing far off moves.

    As many costs as batches fit anything, and say nothing of errors.
    """
    if count < costs + 1:
        return 1.0
    median = 1.4826 * float(np.median(np.abs(errors)))
    return max(median * float(np.sqrt(count / (count - costs))), _LEAST_SCATTER)


def _deviation(errors: Floats, count: float, costs: float) -> float:
    """The same of those that are near, all of which count."""
    if count < costs + 1 or not len(errors):
        return 0.0
    return float(np.sqrt(np.mean(errors**2) * count / (count - costs)))


def _drift(errors: Floats) -> float:
    """How far the mean of the errors is from nothing, in standard errors of a mean."""
    if len(errors) < 2:
        return 0.0
    spread = max(float(np.std(errors)), _LEAST_SCATTER)
    return abs(float(np.mean(errors))) / spread * float(np.sqrt(len(errors)))


def _alone(now: FitMoments, reach: float = 0.0) -> Floats:
    """What each cost would be if it alone explained everything, and with the reach of its error."""
    squares = np.diag(now.products)
    due = np.where(squares > 0, squares, np.inf)
    alone: Floats = now.targets / due + reach / np.sqrt(due)
    return alone


def _scaled(
    now: FitMoments, size: Floats, scatter: float, chosen: npt.NDArray[Any]
) -> tuple[Floats, Floats]:
    """The equations of some costs in units of their sizes, with the prior."""
    products = now.products[np.ix_(chosen, chosen)] * np.outer(size[chosen], size[chosen])
    return products + scatter**2 * np.eye(len(chosen)), now.targets[chosen] * size[chosen]


def _positive(now: FitMoments, size: Floats, scatter: float, seen: npt.NDArray[np.bool_]) -> Floats:
    """The best costs that are not negative.

    Costs that come out negative are held at zero one by one, the worst first. With four costs at
    most that is the best there is but in made-up cases, which are then looked for among all
    choices of costs that are not zero.
    """
    usable = np.flatnonzero(seen & (size > 0))
    products, targets = _scaled(now, size, scatter, usable)
    parts, chosen = np.zeros(len(usable)), np.ones(len(usable), np.bool_)
    while chosen.any():
        parts = _solved(products, targets, chosen)
        if (parts >= 0).all():
            break
        chosen[np.argmin(parts)] = False
    if (targets - products @ parts > 1e-9 * np.abs(targets).max(initial=0.0))[~chosen].any():
        choices = (np.array(c, np.bool_) for c in product((False, True), repeat=len(usable)))
        solved = [_solved(products, targets, choice) for choice in choices]
        allowed = [parts for parts in solved if (parts >= 0).all()]
        parts = min(allowed, key=lambda parts: parts @ products @ parts - 2 * targets @ parts)
    costs = np.zeros(len(size))
    costs[usable] = parts * size[usable]
    return costs


def _solved(products: Floats, targets: Floats, chosen: npt.NDArray[np.bool_]) -> Floats:
    """The best parts, where those that are not chosen are zero."""
    parts = np.zeros(len(targets))
    parts[chosen] = np.linalg.solve(products[np.ix_(chosen, chosen)], targets[chosen])
    return parts


def _free(
    now: FitMoments, size: Floats, scatter: float, seen: npt.NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """The best costs of either sign, and the covariance of their errors."""
    usable = np.flatnonzero(seen & (size > 0))
    free, covariance = np.zeros(len(size)), np.zeros((len(size), len(size)))
    if len(usable):
        products, targets = _scaled(now, size, scatter, usable)
        inverse = np.linalg.inv(products)
        free[usable] = inverse @ targets * size[usable]
        unit = np.outer(size[usable], size[usable])
        covariance[np.ix_(usable, usable)] = scatter**2 * inverse * unit
    return free, covariance


def student(freedom: float = math.inf) -> float:
    """Between minus and plus so many standard errors the true value is, by Student's distribution.

    The expansion of Cornish and Fisher, within 1 percent from 4 degrees of freedom on.
    """
    z = 1.959964  # of the normal distribution, for CONFIDENCE
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + sum(term / freedom ** (power + 1) for power, term in enumerate(terms))
