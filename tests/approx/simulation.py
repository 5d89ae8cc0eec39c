"""Windows of many distributions, and how often what is said of them from samples is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tidegate.approx.array import Floats, Ints
from tidegate.approx.bound import Kind, Sample, most
from tidegate.approx.decision import Promise, Windows, decide, sizes_for
from tidegate.approx.error import relative
from tidegate.approx.priority import priorities
from tidegate.approx.sample import EVERYTHING, lowest

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
    """Values k of at most 1,000 with a share proportional to k ** -1.5."""
    weights = np.arange(1, 1001) ** -1.5
    edges = np.cumsum(weights) / weights.sum()
    return 1.0 + np.searchsorted(edges, chance.random(shape), "right")


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
    "bimodal": _bimodal,
    "drifting": _drifting,
}


@dataclass(frozen=True)
class Outcome:
    """Shares of windows: answered by a sample, and with a larger error than was allowed."""

    answered: float
    exceeded: float
    rows: float
    """How many rows the samples had that answered, as a share of the tuples."""


@dataclass(frozen=True)
class Drawn:
    """Tuples of windows in the order of their priorities, window by window."""

    codes: Ints
    ranks: Ints
    values: Floats
    tuples: Ints

    @staticmethod
    def of(windows: list[Floats], seed: int) -> Drawn:
        """From the values of each window."""
        tuples = np.array([len(window) for window in windows])
        codes = np.repeat(np.arange(len(windows)), tuples)
        seq = np.arange(len(codes))
        order = lowest(codes, len(windows), priorities(seed, 0 * seq, seq), EVERYTHING)
        ranks = seq - (np.cumsum(tuples) - tuples)[codes]
        return Drawn(codes, ranks, np.concatenate(windows)[order], tuples)

    def sample(self, kind: Kind, sizes: Ints | int) -> Sample:
        """The lowest so many of each window."""
        taken = self.ranks < (sizes if isinstance(sizes, int) else sizes[self.codes])
        return Sample.of(kind, self.tuples, self.codes[taken], self.values[taken])

    def outcome(self, kind: Kind, promise: Promise, budget: int | None = None) -> Outcome:
        """Every window decided by itself: with a budget, or with a size from a first look."""
        apart = Windows(np.arange(len(self.tuples)), len(self.tuples))
        sizes = np.full(len(self.tuples), budget or most(promise.error, promise.confidence))
        if budget is None:
            wanted = sizes_for(kind, self.sample(kind, promise.pilot), promise, apart)
            sizes = np.minimum(wanted, sizes)
        sizes = np.minimum(sizes, self.tuples)
        found = decide(kind, self.sample(kind, sizes), promise, apart)
        answered = found.by_sample & (sizes < self.tuples)
        off = relative(self.truth(kind), found.interval.value) > promise.error
        rows = sizes[answered].sum() / max(self.tuples[answered].sum(), 1)
        return Outcome(float(answered.mean()), float((answered & off).mean()), float(rows))

    def truth(self, kind: Kind) -> Floats:
        whole = self.sample(kind, EVERYTHING).moments
        if kind is Kind.SUM:
            return whole.mean * self.tuples
        if kind is Kind.MEAN:
            return whole.mean
        return whole.variance if kind is Kind.VARIANCE else np.sqrt(whole.variance)
