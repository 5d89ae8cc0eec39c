"""Batches that follow one another, against what can be worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model.join.traces import changing, constant
from tidegate.errors import OptionError
from tidegate.model.cost.calibration import JoinCosts
from tidegate.model.join.micro_batch import Batching
from tidegate.model.join.predict import Prediction, predict
from tidegate.model.join.trace import Trace
from tidegate.model.operation import Lookback

RATE = 500.0
"""Of each stream; with windows of a row, each tuple meets one other."""


def _said(costs: JoinCosts, batching: Batching, trace: Trace | None = None) -> Prediction:
    trace = constant([RATE], [RATE], 30) if trace is None else trace
    return predict(trace, Lookback(rows=1), costs, instances=1, batch=batching)


def test_self_paced_batches_find_their_length() -> None:
    """T = f + rho T, and a tuple waits half a batch and its own."""
    costs = JoinCosts(alpha=3e-4, beta=0, sigma=0, batch_s=0.02, tuple_s=2e-4)
    said = _said(costs, Batching())
    length = 0.02 / (1 - 1000 * 5e-4)
    assert said.latency_in[-1] == pytest.approx(1 / RATE)
    assert said.latency_join[-1] == pytest.approx(3e-4 * 1000 * length, rel=1e-3)
    wait_and_rest = length / 2 + 0.02 + 2e-4 * 1000 * length
    assert said.latency_batch[-1] == pytest.approx(wait_and_rest, rel=1e-3)
    assert said.latency[-1] == pytest.approx(1 / RATE + 1.5 * length, rel=1e-3)
    assert said.throughput[-1] == pytest.approx(1000, rel=1e-3)


def test_a_trigger_is_waited_for() -> None:
    costs = JoinCosts(alpha=1e-4, beta=0, sigma=0, batch_s=0.02, tuple_s=2e-4)
    said = _said(costs, Batching(trigger_s=0.25))
    length = 0.02 + 3e-4 * 1000 * 0.25
    assert said.latency[-1] == pytest.approx(1 / RATE + 0.125 + length, rel=1e-3)


def test_a_trigger_of_several_intervals_leaves_none_without_latency() -> None:
    costs = JoinCosts(alpha=1e-4, beta=0, sigma=0, batch_s=0.02)
    said = _said(costs, Batching(trigger_s=3))
    assert said.latency[6:] == pytest.approx(np.full(24, 1 / RATE + 1.5 + 0.02 + 0.3), rel=1e-3)
    assert said.throughput[9:].reshape(-1, 3).max(axis=1) == pytest.approx(
        np.full(7, 3000), rel=0.01
    )


def test_a_trigger_that_is_too_short_changes_nothing() -> None:
    costs = JoinCosts(alpha=1e-4, beta=0, sigma=0, batch_s=0.02)
    alone, triggered = (_said(costs, Batching(seconds)) for seconds in (0.0, 0.01))
    assert triggered.latency == pytest.approx(alone.latency)


def test_rare_tuples_have_batches_of_their_own() -> None:
    costs = JoinCosts(alpha=0, beta=0, sigma=0, batch_s=0.02, tuple_s=0.001)
    said = _said(costs, Batching(), constant([4.0], [4.0], 30))
    assert said.latency_batch[-1] == pytest.approx(0.021)
    assert said.latency_in[-1] == pytest.approx(0.25)


def test_a_quota_and_instances_change_what_comparisons_take() -> None:
    costs = JoinCosts(alpha=3e-4, beta=0, sigma=0, batch_s=0.02)
    window, trace = Lookback(rows=1), constant([RATE], [RATE], 30)
    one = predict(trace, window, costs, instances=1, batch=Batching())
    same = predict(trace, window, costs, instances=2, quota=0.5, batch=Batching())
    more = predict(trace, window, costs, instances=2, batch=Batching())
    assert same.latency == pytest.approx(one.latency)
    assert more.latency[-1] == pytest.approx(1 / RATE + 1.5 * 0.02 / (1 - 0.15), rel=1e-3)


def test_a_slowdown_is_as_if_everything_cost_more() -> None:
    costs = JoinCosts(alpha=3e-4, beta=0, sigma=0, batch_s=0.02, tuple_s=1e-4, scatter=0.3)
    dearer = JoinCosts(alpha=3.6e-4, beta=0, sigma=0, batch_s=0.024, tuple_s=1.2e-4, scatter=0.3)
    trace = constant([RATE], [RATE], 30)
    slow = np.where(np.arange(30) < 15, 1.0, 1.2)
    said = predict(trace, Lookback(rows=1), costs, instances=1, batch=Batching(), slowdown=slow)
    before, after = _said(costs, Batching()), _said(dearer, Batching())
    assert said.latency[:15] == pytest.approx(before.latency[:15])
    assert said.latency[20:] == pytest.approx(after.latency[20:], rel=1e-3)
    with pytest.raises(OptionError, match="slowdown: must be one number, or one for each of 30"):
        predict(trace, Lookback(rows=1), costs, instances=1, batch=Batching(), slowdown=slow[1:])
    with pytest.raises(OptionError, match="slowdown: must be above 0, and finite; got 0"):
        predict(trace, Lookback(rows=1), costs, instances=1, batch=Batching(), slowdown=slow * 0)


@pytest.mark.parametrize("load", [0.2, 0.5, 0.8])
def test_near_full_load_costs_that_are_a_little_off_put_latency_far_off(load: float) -> None:
    """As docs/model.md derives it: by 1 / (1 - load) times as much."""
    costs = JoinCosts(alpha=0, beta=0, sigma=0, batch_s=0.02, tuple_s=load / (2 * RATE))
    trace, off = constant([RATE], [RATE], 60), 0.01
    alone, slower = (
        predict(
            trace,
            Lookback(rows=1),
            costs,
            instances=1,
            deterministic=False,
            batch=Batching(),
            slowdown=slow,
        ).latency[-1]
        for slow in (1.0, 1.0 + off)
    )
    assert slower / alone - 1 == pytest.approx(off / (1 - load), rel=0.06)


def test_in_overload_latency_is_as_far_off() -> None:
    """By 1 / (load - 1) times as much as costs, where batches are of so many rows."""
    costs = JoinCosts(alpha=0, beta=0, sigma=0, tuple_s=1.3 / (2 * RATE))
    trace, off = constant([RATE], [RATE], 60), 0.01
    alone, slower = (
        predict(
            trace,
            Lookback(rows=1),
            costs,
            instances=1,
            deterministic=False,
            batch=Batching(rows=50),
            slowdown=slow,
        ).latency[-1]
        for slow in (1.0, 1.0 + off)
    )
    assert slower / alone - 1 == pytest.approx(off / 0.3, rel=0.06)


def test_more_instances_count_from_the_next_batch_on() -> None:
    costs = JoinCosts(alpha=8e-4, beta=0, sigma=0, batch_s=0.02)
    number = np.repeat([1, 2], 15)
    said = predict(
        constant([RATE], [RATE], 30), Lookback(rows=1), costs, instances=number, batch=Batching()
    )
    assert said.latency[14] == pytest.approx(1 / RATE + 1.5 * 0.02 / 0.2, rel=0.02)
    assert said.latency[-1] == pytest.approx(1 / RATE + 1.5 * 0.02 / 0.6, rel=1e-3)


def test_overloaded_batches_of_so_many_rows_leave_a_backlog() -> None:
    """40 rows take 0.06 s: two thirds of what comes is done, and the rest waits."""
    costs = JoinCosts(alpha=1e-3, beta=0, sigma=0, batch_s=0.02)
    said = _said(costs, Batching(rows=40), constant([RATE], [RATE], 60))
    assert said.throughput[2:] == pytest.approx(np.full(58, 40 / 0.06), rel=0.01)
    assert said.latency[-1] == pytest.approx(59.5 / 3, rel=0.02)


def test_overloaded_batches_grow_by_the_utilisation() -> None:
    costs = JoinCosts(alpha=2e-3, beta=0, sigma=0, batch_s=0.02)
    said = _said(costs, Batching(), constant([RATE], [RATE], 300))
    assert said.throughput[-1] == pytest.approx(500, rel=0.01)
    # The batch of length T that is at work has what came in T / 2 before it began.
    assert 100 < said.latency_join[-1] < 300
    assert said.latency_batch[-1] == pytest.approx(said.latency_join[-1] / 4 + 0.02, rel=0.01)


def test_a_silence_ends_a_run_and_begins_another() -> None:
    costs = JoinCosts(alpha=1e-4, beta=0, sigma=0, batch_s=0.02)
    rates = np.repeat([RATE, 0.0, RATE], 10)
    said = _said(costs, Batching(), changing(rates, rates))
    assert (said.throughput[10:20] == 0).sum() >= 9
    assert np.isnan(said.latency[11:20]).all()
    assert said.latency[29] == pytest.approx(said.latency[9], rel=1e-3)
