"""Intervals from samples: how often they hold the truth, and where they are not to be relied on."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tests.approx.simulation import DISTRIBUTIONS, Drawn
from tidegate.approx.array import Floats
from tidegate.approx.bound import Interval, Kind, Sample, interval, least, most, needed, trusted
from tidegate.approx.error_scale import Absolute, Relative
from tidegate.approx.moments import Moments

KINDS = pytest.mark.parametrize("kind", Kind)
WINDOWS, SIZE = 1500, 1000


@cache
def normal() -> Drawn:
    """Windows of normal values."""
    chance = np.random.default_rng(11)
    return Drawn.of(list(DISTRIBUTIONS["normal"](chance, (WINDOWS, SIZE))), seed=5)


def test_moments_are_those_of_the_values() -> None:
    values = np.array([1.0, 2.0, 4.0, 9.0, 5.0, 3.0, 3.0])
    found = Moments.of(np.array([0, 0, 0, 0, 1, 3, 3]), 4, values)
    own = values[:4]
    z = (own - own.mean()) / own.std()
    assert found.n.tolist() == [4, 1, 0, 2]
    assert found.mean[[0, 1, 3]].tolist() == [4.0, 5.0, 3.0]
    assert found.variance[0] == pytest.approx(own.var(ddof=1))
    assert np.isnan(found.variance[[1, 2]]).all()
    assert found.variance[3] == 0
    assert found.skewness[0] == pytest.approx((z**3).mean())
    assert found.kurtosis[0] == pytest.approx((z**4).mean())
    assert found.sixth[0] == pytest.approx((z**6).mean())
    assert (found.skewness[3], found.kurtosis[3], found.sixth[3]) == (0.0, 1.0, 1.0)


def test_moments_do_not_overflow_and_infinities_are_no_numbers() -> None:
    huge = Moments.of(np.zeros(3, np.int64), 1, np.array([1e150, 2e150, 4e150]))
    assert np.isfinite([huge.mean[0], huge.variance[0], huge.sixth[0]]).all()
    odd = Moments.of(np.zeros(2, np.int64), 1, np.array([1.0, np.inf]))
    assert np.isnan(odd.variance[0])


@KINDS
@pytest.mark.parametrize("confidence", [0.90, 0.99])
def test_an_interval_holds_the_truth_as_often_as_it_says(kind: Kind, confidence: float) -> None:
    """Of 1,500 windows of 1,000 normal values, 400 of them in the sample: within 5 deviations.

    Variances of 400 values are slightly skewed: a point more of them may be missed.
    """
    sample, truth = normal().sample(400), normal().truth(kind)
    found = interval(kind, sample, 1 - confidence)
    assert ((found.low <= found.value) & (found.value <= found.high)).all()
    held = np.mean((found.low <= truth) & (truth <= found.high))
    off = 5 * np.sqrt(confidence * (1 - confidence) / WINDOWS)
    assert confidence - off - (0.01 if kind.of_squares else 0) <= held <= confidence + off


@KINDS
def test_a_sample_of_everything_is_the_answer(kind: Kind) -> None:
    drawn = Drawn.of([np.arange(50.0), np.arange(5.0), np.ones(1)], seed=5)
    found = interval(kind, drawn.sample(50), 0.05)
    truth = drawn.truth(kind)
    some = slice(2 if kind.of_squares else 3)
    for one in (found.value, found.low, found.high):
        assert one[some] == pytest.approx(truth[some])
    assert Relative(0.1).of(found)[some].tolist() == [0.0] * len(truth[some])
    assert Absolute(0.1).of(found)[some].tolist() == [0.0] * len(truth[some])


def test_the_error_is_relative_to_any_truth_between_the_bounds() -> None:
    def error(low: float, value: float, high: float) -> float:
        bounds = (np.array([one]) for one in (value, low, high))
        return float(Relative(0.1).of(Interval(*bounds))[0])

    assert error(8.0, 10.0, 12.0) == pytest.approx(0.25)
    assert error(-12.0, -10.0, -8.0) == pytest.approx(0.25)
    assert error(-1.0, 1.0, 3.0) == np.inf
    assert error(0.0, 1.0, 2.0) == np.inf
    assert error(0.0, 0.0, 0.0) == 0.0
    assert error(np.nan, np.nan, np.nan) == np.inf


def test_an_absolute_error_is_the_distance_to_the_farther_bound() -> None:
    bounds = ([10.0, -1.0, 0.0, np.nan, 1.0], [8.0, -2.0, 0.0, np.nan, -np.inf])
    found = Interval(*map(np.array, bounds), np.array([13.0, 0.5, 0.0, np.nan, 2.0]))
    assert Absolute(0.1).of(found).tolist() == [3.0, 1.5, 0.0, np.inf, np.inf]


def sample_of(values: Floats, tuples: int = 10**6) -> Sample:
    return Sample.of(np.array([tuples]), np.zeros(len(values), np.int64), values)


def test_what_is_skewed_constant_or_scarce_is_not_relied_on() -> None:
    chance = np.random.default_rng(2)
    plain = chance.normal(10, 1, 1000)
    assert least([0.1, 0.05, 0.01]).tolist() == [230, 299, 459]
    assert trusted(Kind.MEAN, sample_of(plain), 0.05).tolist() == [True]
    assert trusted(Kind.MEAN, sample_of(plain[:298]), 0.05).tolist() == [False]
    assert trusted(Kind.MEAN, sample_of(plain[:300]), 0.01).tolist() == [False]
    for odd in (
        np.ones(1000),
        np.full(1000, 0.1),
        chance.pareto(1.5, 1000),
        np.append(plain, 1000),
        plain * np.inf,
    ):
        assert trusted(Kind.MEAN, sample_of(odd), 0.05).tolist() == [False]


@KINDS
def test_a_first_look_says_how_many_rows_are_needed(kind: Kind) -> None:
    """A sample of that size is narrow enough in most windows, and not much too narrow."""
    error = {Kind.VARIANCE: 0.05, Kind.DEVIATION: 0.025}.get(kind, 0.02)
    truth = float(np.abs(normal().truth(kind)).mean())
    for allowed in (Relative(error), Absolute(error * truth)):
        sizes = needed(kind, normal().sample(300), allowed, 0.05)
        found = allowed.of(interval(kind, normal().sample(sizes), 0.05))
        assert np.mean(found <= allowed.size) > 0.88
        assert np.mean(found) > 0.7 * allowed.size


def test_needs_have_bounds() -> None:
    plain = np.random.default_rng(2).normal(10, 1, 300)
    assert needed(Kind.MEAN, sample_of(plain), Relative(0.5), 0.05).tolist() == [299]
    assert needed(Kind.MEAN, sample_of(plain, 310), Relative(1e-9), 0.05).tolist() == [310]
    around_0 = sample_of(plain - plain.mean())
    assert needed(Kind.MEAN, around_0, Relative(0.1), 0.05).tolist() == [10**6]
    assert 299 < needed(Kind.MEAN, around_0, Absolute(0.1), 0.05)[0] < 1000
    assert needed(Kind.MEAN, sample_of(plain[:1]), Relative(0.1), 0.05).tolist() == [10**6]
    assert needed(Kind.MEAN, sample_of(plain[:0]), Relative(0.1), 0.05).tolist() == [10**6]
    assert [most(0.1, 0.95), most(0.15, 0.9), most(0.9, 0.95)] == [1860, 637, 299]
