"""Quantiles from samples keep their rank, whatever the distribution."""

from __future__ import annotations

import numpy as np
import pytest

from tests.approx.simulation import DISTRIBUTIONS, Drawn
from tidegate.approx.error import rank_error
from tidegate.approx.rank import quantiles, rank_bound, rank_rows


def test_the_size_is_that_of_the_bound() -> None:
    assert rank_rows(0.10, 0.95) == 195
    assert rank_rows(0.10, 0.95, 0.9) == 203
    assert rank_rows(0.01, 0.99) == 26_592
    everything = np.array([10**15])
    for error, confidence, fraction in ((0.1, 0.95, 0.5), (0.01, 0.9, 0.99), (0.05, 0.99, 0.0)):
        rows = rank_rows(error, confidence, fraction)
        assert rank_bound(np.array([rows]), everything, confidence, fraction)[0] <= error
        assert rank_bound(np.array([rows - 1]), everything, confidence, fraction)[0] > error


def test_the_bound_shrinks_with_what_is_left_out() -> None:
    rows, tuples = np.array([100, 100, 100, 0]), np.array([10**6, 150, 100, 5])
    found = rank_bound(rows, tuples, 0.95)
    assert found[0] > found[1] > found[2] == 0
    assert found[3] == 1


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("fraction", [0.5, 0.9])
def test_ranks_and_intervals_hold_for_every_distribution(name: str, fraction: float) -> None:
    """With as many rows as are needed; the bound is of the worst case, so few windows are off."""
    error, confidence, windows = 0.1, 0.9, 300
    rows = rank_rows(error, confidence, fraction)
    chance = np.random.default_rng(21)
    values = DISTRIBUTIONS[name](chance, (windows, 1000))
    drawn = Drawn.of(list(values), seed=5)
    codes, _, own = drawn.rows(rows)
    found = quantiles(codes, own, drawn.tuples, fraction=fraction, confidence=confidence)
    truth = np.quantile(values, fraction, axis=1)
    held = (found.low <= truth) & (truth <= found.high)
    assert held.mean() >= confidence
    ordered = np.sort(values, axis=1)
    off = [rank_error(own, fraction, one) for own, one in zip(ordered, found.value, strict=True)]
    assert np.mean(np.array(off) > error) <= 1 - confidence


def test_what_a_sample_does_not_reach_is_infinite() -> None:
    values = np.arange(100.0)
    tuples, codes = np.array([10**6, 3]), np.zeros(100, np.int64)
    found = quantiles(codes, values, tuples, fraction=0.99, confidence=0.95)
    assert found.high.tolist()[:1] == [np.inf]
    assert 60 < found.low[0] < found.value[0] == pytest.approx(98.01)
    assert np.isnan([found.value[1], found.low[1], found.high[1]]).all()


def test_everything_is_exact_and_nan_is_greatest() -> None:
    codes, values = np.array([1, 0, 1, 1]), np.array([3.0, 5.0, np.nan, 1.0])
    found = quantiles(codes, values, np.array([1, 3]), fraction=0.5, confidence=0.95)
    assert found.value.tolist() == found.low.tolist() == found.high.tolist() == [5.0, 3.0]
