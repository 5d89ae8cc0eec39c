"""Which windows their samples answer, and why not."""

from __future__ import annotations

import numpy as np
import pytest

from tidegate.approx.array import Floats
from tidegate.approx.bound import Kind, Sample, least
from tidegate.approx.decision import Promise, Reason, Windows, decide, early_fail, sizes_for
from tidegate.approx.error import Metric

ROWS = 1000
PROMISE = Promise(0.05, 0.95)


def sample_of(*groups: Floats, tuples: int = 10**6) -> Sample:
    codes = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    counts = np.full(len(groups), tuples)
    return Sample.of(counts, codes, np.concatenate(groups))


def normal(spread: float, rows: int = ROWS) -> Floats:
    return np.random.default_rng(1).normal(100, spread, rows)


def test_one_group_decides_for_its_window() -> None:
    """Two windows of two groups; in the second one varies too much."""
    sample = sample_of(normal(10), normal(20), normal(10), normal(200))
    found = decide(Kind.MEAN, sample, PROMISE, Windows(np.array([0, 0, 1, 1]), 2))
    assert found.answered.tolist() == [True, False]
    assert found.by_sample.tolist() == [True, True, False, False]
    assert found.reason.tolist() == [Reason.NONE, Reason.WIDE]
    assert found.window_error[0] == found.error[:2].max()
    assert (found.interval.low < found.interval.value).all()


def test_the_metrics_put_groups_together_as_they_say() -> None:
    """One group off by 10 percent at most and nine by 2: on average within 5, at most not."""
    sample = sample_of(normal(150, 2000), *[normal(20)] * 9)
    answered = {
        metric: decide(Kind.MEAN, sample, Promise(0.05, 0.95, metric)).answered.tolist()
        for metric in Metric
    }
    assert answered == {Metric.MAX: [False], Metric.MEAN: [True], Metric.RMS: [True]}


def test_with_more_groups_each_interval_is_wider() -> None:
    """With `max` all hold at once; with the others each holds by itself."""
    one, many = (
        decide(Kind.MEAN, sample_of(*[normal(20)] * groups), PROMISE).error[0] for groups in (1, 50)
    )
    assert many > 1.5 * one
    mean = Promise(0.05, 0.95, Metric.MEAN)
    assert decide(Kind.MEAN, sample_of(*[normal(20)] * 50), mean).error[0] == pytest.approx(one)


def test_groups_in_the_sample_as_a_whole_have_no_error() -> None:
    """However few and skewed they are; and they do not make the intervals of others wider."""
    few, large = np.array([1.0, 1e9, 0.0]), normal(10)
    codes = np.repeat([0, 1], [3, ROWS])
    tuples = np.array([3, 10**6])
    sample = Sample.of(tuples, codes, np.append(few, large))
    found = decide(Kind.MEAN, sample, PROMISE)
    assert found.answered.tolist() == [True]
    assert found.error[0] == 0
    assert found.error[1] == decide(Kind.MEAN, sample_of(large), PROMISE).error[0]


def test_what_cannot_be_relied_on_is_not_used() -> None:
    skewed = np.append(normal(10), 1e6)
    assert decide(Kind.MEAN, sample_of(skewed), PROMISE).reason.tolist() == [Reason.SKEWED]
    assert decide(Kind.MEAN, sample_of(normal(1, 50)), PROMISE).reason.tolist() == [Reason.SKEWED]
    assert decide(Kind.MEAN, sample_of(np.zeros(500)), PROMISE).reason.tolist() == [Reason.SKEWED]
    around_zero = decide(Kind.MEAN, sample_of(normal(10) - 100), PROMISE)
    assert around_zero.reason.tolist() == [Reason.WIDE]


def test_a_window_that_must_fail_does_so_early() -> None:
    pilot = sample_of(normal(10, 300), normal(10, 300), normal(300, 300))
    windows = Windows(np.array([0, 0, 1]), 2)
    sizes = np.full(3, 500)
    found = early_fail(Kind.MEAN, pilot, sizes, PROMISE, windows)
    assert found.tolist() == [Reason.NONE, Reason.WIDE]
    found = early_fail(Kind.MEAN, pilot, sizes, PROMISE, windows, budget=1)
    assert found.tolist() == [Reason.GROUPS, Reason.WIDE]
    decision = decide(
        Kind.MEAN, sample_of(normal(10), normal(10), normal(10)), PROMISE, windows, found
    )
    assert decision.answered.tolist() == [False, False]
    assert decision.reason.tolist() == found.tolist()


def test_sizes_follow_the_spread() -> None:
    sizes = sizes_for(Kind.MEAN, sample_of(normal(10, 300), normal(100, 300)), PROMISE)
    assert sizes[0] == least(PROMISE.alphas(np.array([2])))[0] > PROMISE.pilot
    assert 2000 < sizes[1] < 6000


def test_no_groups_make_no_windows() -> None:
    nothing = Sample.of(*(np.empty(0, np.int64),) * 2, np.empty(0))
    assert decide(Kind.MEAN, nothing, PROMISE).answered.tolist() == []
    assert early_fail(Kind.MEAN, nothing, np.empty(0, np.int64), PROMISE).tolist() == []
