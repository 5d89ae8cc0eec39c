"""Batches that vary: what the model says of latency, beside batches that are drawn one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.model.cost.test_estimator import Machine
from tidegate.model.cost.calibration import JoinCosts
from tidegate.model.cost.estimator import Estimator
from tidegate.model.join.micro_batch import Batching, CarriedVariance
from tidegate.model.join.predict import predict
from tidegate.model.join.trace import Trace
from tidegate.model.operation import Lookback
from tidegate.model.pace import BatchPace

FIXED_S, RATE, SCATTER = 0.02, 500.0, 0.4
COSTS = JoinCosts(alpha=0.0, beta=0.0, sigma=0.0, batch_s=FIXED_S, scatter=SCATTER)


def drawn(load: float, batches: int = 20_000) -> float:
    """The mean latency of tuples that come evenly, where each batch takes more or less by chance.

    Those that came during a batch wait for its end, half of it on average, and then for the next.
    """
    rng, shape = np.random.default_rng(7), 1 / SCATTER**2
    chance = rng.gamma(shape, 1 / shape, batches)
    times = [FIXED_S / (1 - load)]
    for one in chance:
        times.append(one * (FIXED_S + load * times[-1]))
    took = np.array(times)
    return float(took[:-1] @ (took[:-1] / 2 + took[1:]) / took[:-1].sum())


@pytest.mark.parametrize("load", [0.0, 0.4, 0.7])
def test_latency_is_longer_because_more_tuples_come_during_long_batches(load: float) -> None:
    wanted_s = drawn(load)
    alike_s = 1.5 * FIXED_S / (1 - load)
    assert wanted_s > 1.05 * alike_s, "it matters"
    pace = BatchPace(FIXED_S, load, 0.0, 2 * RATE, scatter=SCATTER)
    assert pace.latency_s(pace.settled_s) == pytest.approx(wanted_s, rel=0.03)
    rates = np.full((40, 1), RATE)
    trace = Trace(np.arange(40.0), rates, rates)
    costs = replace(COSTS, tuple_s=load / (2 * RATE))
    found = predict(
        trace, Lookback(rows=1), costs, instances=1, deterministic=False, batch=Batching()
    )
    assert float(found.latency[-1]) == pytest.approx(wanted_s, rel=0.03)
    alone = predict(
        trace, Lookback(rows=1), costs, instances=1, deterministic=False, batch=Batching(0.5)
    )
    assert float(alone.latency[-1]) == pytest.approx(0.25 + FIXED_S + load * 0.5, rel=0.01), (
        "batches that start by a trigger do so however long the one before took"
    )


def test_batches_that_are_alike_are_stepped_over_together() -> None:
    one_by_one, means = CarriedVariance(0.3), []
    for _ in range(5):
        mean, one_by_one = one_by_one.over(0.1, 0.6, 1)
        means.append(mean)
    mean, together = CarriedVariance(0.3).over(0.1, 0.6, 5)
    assert mean == pytest.approx(np.mean(means))
    assert together.variance == pytest.approx(one_by_one.variance)


def test_costs_are_means_of_what_is_not_far_off() -> None:
    """Times that scatter to one side: a typical batch is below the mean, which is what counts."""
    rng, estimator = np.random.default_rng(3), Estimator(everywhere=True)
    machine, took = Machine(scatter=0.0, far_off=0.0), []
    for number in range(400):
        tuples = int(rng.integers(100, 4_000))
        exact = machine.batch(rng, tuples, tuples * 500, tuples * 5)
        rest_s = (exact.seconds - exact.cpu_s) * (0.7 + rng.exponential(0.3))
        pause_s = 1.0 if number % 40 == 7 else 0.0
        seconds = exact.cpu_s + rest_s
        took.append(seconds / exact.seconds)
        estimator = estimator.after(replace(exact, seconds=seconds + pause_s))
    found = estimator.estimate()
    assert found is not None
    assert np.median(took) < 0.96, "the typical one"
    assert found.batch_s.value == pytest.approx(0.022, rel=0.04)
    assert found.scatter == pytest.approx(np.std(took), rel=0.35)
