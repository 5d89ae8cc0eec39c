"""The promise: at most 1 - confidence and 1.5 points of the windows are off by more than the error.

Over the same seeds every time, with fewer windows than `benchmarks/promise.py`, which has the grid
of 1,000 windows each.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tests.approx.simulation import CONFIDENCES, DISTRIBUTIONS, ERRORS, Drawn
from tidegate.approx.bound import Kind
from tidegate.approx.decision import Promise
from tidegate.approx.error import Metric

WINDOWS, SIZE = 150, 2000
GRID = [(error, confidence) for error in ERRORS for confidence in CONFIDENCES]


@cache
def drawn(name: str) -> Drawn:
    chance = np.random.default_rng(101)
    return Drawn.of(list(DISTRIBUTIONS[name](chance, (WINDOWS, SIZE))), seed=102)


@pytest.mark.parametrize("kind", [Kind.MEAN, Kind.DEVIATION])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_it_is_kept_for_every_distribution_error_and_confidence(name: str, kind: Kind) -> None:
    found = {one: drawn(name).outcome(kind, Promise(*one)) for one in GRID}
    assert len(found) == 12
    broken = {one: o for one, o in found.items() if not o.keeps(Promise(*one))}
    assert not broken


def test_samples_answer_where_they_can() -> None:
    """The promise could be kept by never using a sample: few rows answer what behaves well."""
    for name in ("normal", "drifting"):
        found = drawn(name).outcome(Kind.MEAN, Promise(0.1, 0.95))
        assert found.answered > 0.95
        assert found.rows < 0.16
    for name in ("bimodal", "log-normal"):
        assert drawn(name).outcome(Kind.MEAN, Promise(0.1, 0.95)).answered > 0.6
    assert drawn("log-normal").outcome(Kind.DEVIATION, Promise(0.01, 0.95)).answered < 0.05


@pytest.mark.parametrize("budget", [300, 1000])
def test_it_is_kept_with_any_budget(budget: int) -> None:
    for name in DISTRIBUTIONS:
        for one in ((0.05, 0.9), (0.1, 0.95), (0.15, 0.99)):
            assert drawn(name).outcome(Kind.MEAN, Promise(*one), budget).keeps(Promise(*one))


@cache
def grouped() -> Drawn:
    """Windows of ten groups with other means."""
    chance = np.random.default_rng(103)
    means = np.tile(np.arange(100, 200, 10), 100)[:, None]
    return Drawn.of(list(chance.normal(means, 50, (1000, 1200))), seed=104, in_window=10)


@pytest.mark.parametrize("metric", Metric)
def test_it_is_kept_for_windows_of_several_groups(metric: Metric) -> None:
    """With `max` all of them must be within the error at once."""
    for budget in (530, None):
        for one in ((0.05, 0.9), (0.05, 0.95), (0.1, 0.99)):
            promise = Promise(*one, metric)
            assert grouped().outcome(Kind.MEAN, promise, budget).keeps(promise)
    assert grouped().outcome(Kind.MEAN, Promise(0.1, 0.9, metric)).answered > 0.9
