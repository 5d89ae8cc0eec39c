"""Windows of many distributions, and how often what is said of them from samples is wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tidegate.approx.array import Floats, Ints
from tidegate.approx.bound import Kind, Sample, most
from tidegate.approx.decision import Promise, Windows, decide, sizes_for
from tidegate.approx.error import combined, relative
from tidegate.approx.moments import Moments
from tidegate.approx.priority import priorities

ERRORS = (0.01, 0.05, 0.10, 0.15)
CONFIDENCES = (0.90, 0.95, 0.99)
SLACK = 0.015
"""By how much the share of windows that are off may be above what was asked for."""

Shape = tuple[int, int]
Distribution = Callable[[np.random.Generator, Shape], Floats]


def _normal(chance: np.random.Generator, shape: Shape) -> Floats:
    return chance.normal(100, 30, shape)


def _log_normal(chance: np.random.Generator, shape: Shape) -> Floats:
    return chance.lognormal(2, 1, shape)


def _zipf(chance: np.random.Generator, shape: Shape) -> Floats:
    """Values k with a share proportional to k ** -2.5: their variance is infinite."""
    return chance.zipf(2.5, shape).astype(np.float64)


def _spiked(chance: np.random.Generator, shape: Shape) -> Floats:
    """Most values near 5.5, few very large: narrow intervals that are wrong."""
    return 5 + chance.pareto(1.5, shape)


def _bimodal(chance: np.random.Generator, shape: Shape) -> Floats:
    """One tuple in twenty is of another kind, ten times as large."""
    rare = chance.random(shape) < 0.05
    return np.where(rare, chance.normal(200, 20, shape), chance.normal(20, 2, shape))


def _drifting(chance: np.random.Generator, shape: Shape) -> Floats:
    """The mean rises within each window and from window to window, the spread falls."""
    windows, size = shape
    within = np.linspace(0, 50, size)[None, :]
    between = np.linspace(10, 200, windows)[:, None]
    return chance.gamma(4, 5, shape) * np.linspace(3, 1, size)[None, :] + within + between


DISTRIBUTIONS: dict[str, Distribution] = {
    "normal": _normal,
    "log-normal": _log_normal,
    "Zipf": _zipf,
    "spiked": _spiked,
    "bimodal": _bimodal,
    "drifting": _drifting,
}


@dataclass(frozen=True)
class Outcome:
    """Shares of windows: answered by samples, and with a larger error than was allowed."""

    answered: float
    exceeded: float
    rows: float
    """How many rows the samples had that answered, as a share of the tuples."""

    def keeps(self, promise: Promise) -> bool:
        return self.exceeded <= 1 - promise.confidence + SLACK


@dataclass(frozen=True)
class Drawn:
    """Values of groups in the order of their priorities, group by group; windows of groups."""

    values: Floats
    tuples: Ints
    windows: Windows

    @staticmethod
    def of(groups: Sequence[Floats], seed: int, in_window: int = 1) -> Drawn:
        """From the values of each group; so many groups are a window."""
        tuples = np.array([len(group) for group in groups])
        codes = np.repeat(np.arange(len(groups)), tuples)
        seq = np.arange(len(codes))
        order = np.lexsort((priorities(seed, 0 * seq, seq), codes))
        windows = Windows(np.arange(len(groups)) // in_window, len(groups) // in_window)
        return Drawn(np.concatenate(groups)[order], tuples, windows)

    def rows(self, sizes: Ints | int) -> tuple[Ints, Ints, Floats]:
        """Group, place in its sample and value of each row, of the lowest so many."""
        taken = np.minimum(sizes, self.tuples)
        codes = np.repeat(np.arange(len(taken)), taken)
        ranks = np.arange(len(codes)) - (np.cumsum(taken) - taken)[codes]
        starts = np.cumsum(self.tuples) - self.tuples
        return codes, ranks, self.values[starts[codes] + ranks]

    def sample(self, sizes: Ints | int) -> Sample:
        """The lowest so many of each group."""
        codes, _, values = self.rows(sizes)
        return Sample.of(self.tuples, codes, values)

    def outcome(self, kind: Kind, promise: Promise, budget: int | None = None) -> Outcome:
        """Every window decided: with a budget for each group, or with sizes from a first look."""
        sizes = np.full(len(self.tuples), budget or most(promise.error, promise.confidence))
        if budget is None:
            pilot = self.sample(promise.pilot)
            sizes = np.minimum(sizes_for(kind, pilot, promise, self.windows), sizes)
        sizes = np.minimum(sizes, self.tuples)
        found = decide(kind, self.sample(sizes), promise, self.windows)
        errors = relative(self.truth(kind), found.interval.value)
        true = combined(promise.metric, errors, self.windows.of_group, self.windows.count)
        answered = found.answered & self.windows.any(sizes < self.tuples)
        own = answered[self.windows.of_group]
        rows = sizes[own].sum() / max(self.tuples[own].sum(), 1)
        exceeded = answered & (true > promise.error)
        return Outcome(float(answered.mean()), float(exceeded.mean()), float(rows))

    def truth(self, kind: Kind) -> Floats:
        """What would have been computed from all values."""
        whole = self._whole
        if kind is Kind.SUM:
            return whole.mean * self.tuples
        if kind is Kind.MEAN:
            return whole.mean
        return whole.variance if kind is Kind.VARIANCE else np.sqrt(whole.variance)

    @cached_property
    def _whole(self) -> Moments:
        return self.sample(self.tuples).moments
