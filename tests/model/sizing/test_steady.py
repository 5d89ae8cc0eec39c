"""A query at rates that last: against the model of joins, and what follows from its parts."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.model.cost.test_estimator import Machine
from tidegate.model.cost.calibration import Estimate
from tidegate.model.cost.estimator import Estimator
from tidegate.model.cost.sample import BatchSample, whole
from tidegate.model.join.micro_batch import Batching
from tidegate.model.join.predict import predict
from tidegate.model.join.trace import Trace
from tidegate.model.operation import Lookback
from tidegate.model.sizing.steady import QueryModel, SubqueryModel
from tidegate.model.sizing.workload import JoinWorkload, TupleWorkload

SIGMA = 0.01
QUIET = Machine(scatter=0.002, far_off=0.0)
TWO = {"r": 1, "s": 1}


def measured(machine: Machine = QUIET, instances: int = 2, seed: int = 1) -> Estimator:
    """A join whose constants are known, measured in batches of several sizes."""
    rng, estimator = np.random.default_rng(seed), Estimator(everywhere=True)
    for _ in range(30):
        tuples = int(rng.choice((500, 2_000, 8_000, 30_000)))
        pairs = tuples * int(rng.choice((1_000, 5_000)))
        outputs = int(rng.binomial(pairs, rng.choice((0.002, SIGMA, 0.05))))
        estimator = estimator.after(machine.batch(rng, tuples, pairs, outputs, instances))
    return estimator


def join(estimator: Estimator, window_s: float = 10) -> QueryModel:
    windows = (Lookback(seconds=window_s), Lookback(seconds=window_s))
    workload = JoinWorkload(windows, (0, 1), (1.0, 1.0), 1.0, SIGMA)
    return QueryModel(TWO, (SubqueryModel("join", ("r", "s"), workload, estimator),), estimator)


@pytest.mark.parametrize("rate", [5.0, 200.0, 1_000.0])
@pytest.mark.parametrize("instances", [1, 2])
def test_it_is_the_model_of_joins_where_the_query_is_a_join(rate: float, instances: int) -> None:
    steady = join(measured()).steady({"r": rate, "s": rate}, {"join": instances})
    times = np.arange(60.0)
    flat = np.full((60, 1), rate)
    machine = QUIET.truth(SIGMA, instances)
    costs = measured(instances=instances).estimate()
    assert costs is not None
    found = predict(
        Trace(times, flat, flat),
        Lookback(seconds=10),
        replace(costs.costs(), sigma=SIGMA),
        instances=instances,
        batch=Batching(),
    )
    assert steady.latency_s.value == pytest.approx(float(found.latency[-1]), rel=0.05)
    assert steady.latency_s.low < steady.latency_s.value < steady.latency_s.high
    assert steady.floor_s.value == pytest.approx(machine["batch_s"], rel=0.03)


def test_more_instances_divide_the_work_and_no_more_than_run_at_once() -> None:
    model = join(measured())
    rates = {"r": 900.0, "s": 900.0}
    loads = [model.steady(rates, {"join": n}).load.value for n in (1, 2, 4)]
    assert loads[0] > 1.5 * loads[1] > 2 * loads[2]
    two = replace(model, slots=2)
    on_two = [two.steady(rates, {"join": n}).load.value for n in (2, 4)]
    assert on_two[1] >= on_two[0] == loads[1]


def test_the_limit_is_where_a_second_of_input_makes_a_second_of_work() -> None:
    model = join(measured())
    limit = model.limit({"r": 100.0, "s": 100.0}, {"join": 2})
    assert limit.low <= limit.value <= limit.high
    at = dict.fromkeys(TWO, 100.0 * limit.value)
    assert model.steady(at, {"join": 2}).load.value == pytest.approx(1, rel=0.01)
    beyond = model.steady({name: rate * 1.1 for name, rate in at.items()}, {"join": 2})
    assert not beyond.keeps_up
    assert math.isinf(beyond.latency_s.value)


def test_the_rates_that_a_latency_allows() -> None:
    model = join(measured())
    rates = {"r": 100.0, "s": 100.0}
    factor = model.within(0.1, rates, {"join": 2})
    at = {name: rate * factor for name, rate in rates.items()}
    assert model.steady(at, {"join": 2}).latency_s.value == pytest.approx(0.1, rel=0.01)
    assert factor < model.limit(rates, {"join": 2}).value
    assert model.within(0.001, rates, {"join": 2}) == 0


def test_wide_intervals_of_costs_make_wide_ones_of_latency() -> None:
    rates = {"r": 800.0, "s": 800.0}
    narrow, wide = (
        join(measured(machine)).steady(rates, {"join": 2}).latency_s
        for machine in (QUIET, Machine(scatter=0.2, far_off=0.1))
    )
    assert narrow.high - narrow.low < 0.3 * (wide.high - wide.low)


def test_intervals_of_latency_contain_the_truth_as_often_as_they_say() -> None:
    """Of 40 intervals of 95 percent 6 may miss (p = 0.003)."""
    machine, rate, sigma = Machine(scatter=0.1), 900.0, 0.01
    pairs, tuples = 2 * rate * rate * 10, 2 * rate
    load = pairs * (machine.alpha + sigma * machine.beta) / 2
    load += tuples * (machine.instance_tuple_s + machine.rest_tuple_s)
    load += pairs * sigma * machine.rest_output_s
    latency_s = 1.5 * (machine.instance_batch_s + machine.rest_batch_s) / (1 - load)
    found = [
        join(measured(machine, seed=seed)).steady({"r": rate, "s": rate}, {"join": 2})
        for seed in range(40)
    ]
    misses = [not s.latency_s.low <= s.ready_s + latency_s <= s.latency_s.high for s in found]
    assert sum(misses) <= 6
    widths = [(s.latency_s.high - s.latency_s.low) / latency_s for s in found]
    assert float(np.median(widths)) < 0.3, "and they say something"


def test_subqueries_run_in_turn_and_what_is_beside_them_counts_once() -> None:
    first, second = Estimator(everywhere=False), Estimator(everywhere=False)
    beside = Estimator(everywhere=True)
    for tuples in (1_000, 4_000, 2_000, 8_000, 500) * 3:
        given, out = tuples // 2, tuples // 4
        first_s, second_s = 0.004 + 2e-6 * tuples, 0.006 + 3e-6 * given
        seconds = 0.02 + 1e-6 * (tuples + given) + 5e-6 * out + first_s + second_s
        samples = [
            BatchSample(seconds, cpu_s, cpu_s, taken, outputs=made, others_s=other_s)
            for cpu_s, taken, made, other_s in (
                (first_s, tuples, given, second_s),
                (second_s, given, out, first_s),
            )
        ]
        first, second = first.after(samples[0]), second.after(samples[1])
        beside = beside.after(whole(samples, out))
    model = QueryModel(
        {"r": 1},
        (
            SubqueryModel("a", ("r",), TupleWorkload(0.5), first, last=False),
            SubqueryModel("b", ("a",), TupleWorkload(0.5), second),
        ),
        beside,
    )
    steady = model.steady({"r": 10_000.0}, {"a": 1, "b": 1})
    assert steady.floor_s.value == pytest.approx(0.02 + 0.004 + 0.006, rel=0.02)
    beside_load = 15_000 * 1e-6 + 2_500 * 5e-6
    assert steady.load.value == pytest.approx(0.02 + 0.015 + beside_load, rel=0.03)
    assert steady.ready_s == pytest.approx(1e-4)


def test_tuples_that_are_rare_have_batches_of_their_own() -> None:
    model = join(measured())
    steady = model.steady({"r": 1.0, "s": 1.0}, {"join": 1})
    assert steady.batch_s.value == pytest.approx(0.022, rel=0.05)
    assert steady.latency_s.value == pytest.approx(steady.ready_s + steady.batch_s.value)
    assert isinstance(steady.latency_s, Estimate)
