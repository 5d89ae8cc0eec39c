"""Costs from made-up batches of known constants: intervals contain the truth as often as they say.

All scatter is drawn from generators with fixed seeds.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import pytest

from tidegate.model.cost.calibration import Calibration, Estimate
from tidegate.model.cost.estimator import KEPT, LEAST_BATCHES, Estimator
from tidegate.model.cost.fit import student
from tidegate.model.cost.sample import BatchSample

RUNS = 80
"""For each way to run; of so many, an interval of 95 percent may miss 10 (p = 0.003)."""

MOST_MISSES = 10


@dataclass(frozen=True)
class Machine:
    """What everything takes where the made-up batches run, and how times scatter."""

    alpha: float = 2e-8
    beta: float = 1e-6
    instance_batch_s: float = 0.002
    instance_tuple_s: float = 1e-6
    rest_batch_s: float = 0.02
    rest_tuple_s: float = 3e-6
    rest_output_s: float = 2e-7
    scatter: float = 0.05
    far_off: float = 0.05

    def batch(
        self,
        rng: np.random.Generator,
        tuples: int,
        comparisons: int,
        outputs: int,
        instances: int = 1,
    ) -> BatchSample:
        """One batch; now and then a pause makes one several times as long."""
        instance_s = self.instance_batch_s + self.instance_tuple_s * tuples
        instance_s += (self.alpha * comparisons + self.beta * outputs) / instances
        rest_s = self.rest_batch_s + self.rest_tuple_s * tuples + self.rest_output_s * outputs
        instance_s, rest_s = (
            s
            * np.exp(rng.normal(0, self.scatter))
            * (rng.uniform(2, 20) if rng.random() < self.far_off else 1)
            for s in (instance_s, rest_s)
        )
        return BatchSample(
            seconds=instance_s + rest_s,
            cpu_s=instance_s * instances,
            busiest_s=instance_s,
            tuples=tuples,
            comparisons=comparisons,
            compared=comparisons,
            outputs=outputs,
            instances=instances,
        )

    def truth(self, sigma: float, instances: int = 1) -> dict[str, float]:
        """What a calibration should find."""
        beta = self.beta + instances * self.rest_output_s
        return {
            "alpha": self.alpha,
            "beta": beta,
            "comparison": self.alpha + sigma * beta,
            "tuple_s": self.instance_tuple_s + self.rest_tuple_s,
            "batch_s": self.instance_batch_s + self.rest_batch_s,
        }


MACHINE = Machine()


def run(
    seed: int, batches: int, sigmas: tuple[float, ...], sizes: tuple[int, ...], instances: int = 1
) -> Calibration:
    rng, estimator = np.random.default_rng(seed), Estimator(everywhere=True)
    for _ in range(batches):
        tuples, sigma = int(rng.choice(sizes)), float(rng.choice(sigmas))
        comparisons = tuples * int(rng.choice((5_000, 20_000)))
        outputs = int(rng.binomial(comparisons, sigma))
        estimator = estimator.after(MACHINE.batch(rng, tuples, comparisons, outputs, instances))
    found = estimator.estimate()
    assert found is not None
    return found


SIZES = (500, 2_000, 8_000, 30_000)


@pytest.mark.parametrize(("batches", "instances"), [(12, 1), (30, 2), (100, 1)], ids=str)
def test_intervals_contain_the_truth_as_often_as_they_say(batches: int, instances: int) -> None:
    misses: Counter[str] = Counter()
    for seed in range(RUNS):
        found = run(seed, batches, (0.002, 0.01, 0.05), SIZES, instances)
        for name, truth in MACHINE.truth(found.sigma.value, instances).items():
            estimate: Estimate = getattr(found, name)
            assert 0 <= estimate.low <= estimate.value <= estimate.high
            misses[name] += not estimate.low <= truth <= estimate.high
        assert found.batches == batches
    assert max(misses.values(), default=0) <= MOST_MISSES, misses


def test_more_batches_know_more() -> None:
    few, many = (run(1, n, (0.002, 0.01, 0.05), SIZES) for n in (12, 300))
    truth = MACHINE.truth(many.sigma.value)
    for name in truth:
        width = [e.high - e.low for e in (getattr(few, name), getattr(many, name))]
        assert width[1] < width[0]
    for name in ("alpha", "beta", "comparison"):
        assert getattr(many, name).value == pytest.approx(truth[name], rel=0.03)


def test_outputs_that_are_always_the_same_share_leave_only_the_sum() -> None:
    misses = 0
    for seed in range(RUNS):
        found = run(seed, 30, (0.01,), SIZES)
        truth = MACHINE.truth(0.01)
        assert not found.told_apart
        for name in ("alpha", "beta"):
            estimate: Estimate = getattr(found, name)
            assert estimate.low <= truth[name] <= estimate.high
            assert estimate.high - estimate.low > truth[name]
        parts = found.alpha.value + found.sigma.value * found.beta.value
        assert parts == pytest.approx(found.comparison.value, rel=1e-6)
        assert found.comparison.value == pytest.approx(truth["comparison"], rel=0.1)
        misses += not found.comparison.low <= truth["comparison"] <= found.comparison.high
    assert misses <= MOST_MISSES


def test_outputs_in_different_shares_tell_alpha_from_beta() -> None:
    assert run(1, 30, (0.002, 0.01, 0.05), SIZES).told_apart


def test_batches_that_are_all_alike_give_tame_values() -> None:
    """Nothing can be told apart, but the sum is that of the batches, and intervals say so."""
    rng, estimator = np.random.default_rng(5), Estimator(everywhere=True)
    for _ in range(40):
        estimator = estimator.after(MACHINE.batch(rng, 5_000, 100_000_000, 1_000_000))
    found = estimator.estimate()
    assert found is not None
    truth = MACHINE.truth(0.01)
    for name, value in truth.items():
        assert getattr(found, name).low <= value <= getattr(found, name).high
    batch_s = 3.2 + 0.042
    costs = found.costs()
    predicted = costs.batch_s + costs.tuple_s * 5_000 + costs.comparison_s * 100_000_000
    assert predicted == pytest.approx(batch_s, rel=0.05)
    assert found.comparison.value == pytest.approx(truth["comparison"], rel=0.15)


def test_a_changing_sigma_is_followed() -> None:
    rng, estimator = np.random.default_rng(2), Estimator(everywhere=True)
    for sigma in [0.01] * 100 + [0.1] * 40:
        tuples = int(rng.choice(SIZES))
        outputs = int(rng.binomial(tuples * 5_000, sigma))
        estimator = estimator.after(MACHINE.batch(rng, tuples, tuples * 5_000, outputs))
    found = estimator.estimate()
    assert found is not None
    assert found.sigma.value == pytest.approx(0.1, rel=0.15)
    assert found.alpha.value == pytest.approx(MACHINE.alpha, rel=0.1)


def test_a_slower_machine_is_followed() -> None:
    rng, estimator = np.random.default_rng(2), Estimator(everywhere=True)
    for machine in [MACHINE] * 200 + [replace(MACHINE, alpha=6e-8)] * 100:
        tuples = int(rng.choice(SIZES))
        outputs = int(rng.binomial(tuples * 5_000, 0.01))
        estimator = estimator.after(machine.batch(rng, tuples, tuples * 5_000, outputs))
    found = estimator.estimate()
    assert found is not None
    truth = 6e-8 + 0.01 * (MACHINE.beta + MACHINE.rest_output_s)
    assert found.comparison.value == pytest.approx(truth, rel=0.1)


def test_a_pace_that_varies_from_second_to_second_is_no_change_of_costs() -> None:
    """Batches of a second are slow or fast together. Costs are those of all seconds, not the last.

    If each second in which the machine is a little faster were taken for a new machine, the costs
    would be those of that second.
    """
    errors = []
    for seed in range(12):
        rng, estimator = np.random.default_rng(seed), Estimator(everywhere=True)
        for _ in range(10):  # seconds
            pace = np.exp(rng.normal(0, 0.08))
            for _ in range(30):
                tuples = int(rng.choice(SIZES))
                batch = MACHINE.batch(rng, tuples, tuples * 500, tuples * 5)
                slower = {n: getattr(batch, n) * pace for n in ("seconds", "cpu_s", "busiest_s")}
                estimator = estimator.after(replace(batch, **slower))
        found = estimator.estimate()
        assert found is not None
        errors.append(abs(found.batch_s.value / MACHINE.truth(0.01)["batch_s"] - 1))
    assert float(np.mean(errors)) < 0.035, "that of ten seconds; of a single one it would be 0.064"


def test_first_batches_that_take_long_do_not_count() -> None:
    rng, estimator = np.random.default_rng(3), Estimator(everywhere=True)
    for number in range(20):
        batch = MACHINE.batch(rng, 1_000 * (number % 4 + 1), 0, 0)
        if number < 3:
            batch = replace(batch, seconds=batch.seconds + 2)
        estimator = estimator.after(batch)
    found = estimator.estimate()
    assert found is not None
    assert found.batch_s.value == pytest.approx(0.022, rel=0.2)
    assert (found.alpha.value, found.beta.value, found.sigma.value) == (0, 0, 0)


def test_an_index_that_saves_comparisons_makes_each_cheaper() -> None:
    """Of a hundred pairs of the definition it compares one, so that a pair costs a hundredth."""
    rng, estimator = np.random.default_rng(4), Estimator(everywhere=True)
    for _ in range(40):
        tuples = int(rng.choice(SIZES))
        compared, sigma = tuples * 2_000, float(rng.choice((0.01, 0.1, 0.3)))
        batch = MACHINE.batch(rng, tuples, compared, int(rng.binomial(compared, sigma)))
        estimator = estimator.after(replace(batch, comparisons=100 * compared))
    found = estimator.estimate()
    assert found is not None
    assert found.alpha.value == pytest.approx(MACHINE.alpha / 100, rel=0.1)


def test_tuples_that_are_divided_cost_each_instance_its_share() -> None:
    rng, estimator = np.random.default_rng(4), Estimator(everywhere=False)
    quiet = replace(MACHINE, scatter=0.01, far_off=0.0)
    for _ in range(40):
        tuples = int(rng.choice(SIZES))
        batch = quiet.batch(rng, tuples, 0, 0)
        work_s = 2 * quiet.instance_batch_s + quiet.instance_tuple_s * tuples
        halves = replace(batch, cpu_s=work_s, busiest_s=work_s / 2, instances=2)
        estimator = estimator.after(replace(halves, seconds=batch.overhead_s + work_s / 2))
    found = estimator.estimate()
    assert found is not None
    expected = quiet.instance_tuple_s / 2 + quiet.rest_tuple_s
    assert found.tuple_s.value == pytest.approx(expected, rel=0.05)
    (_, each, *_), (batch, *_) = estimator.work_costs(), estimator.rest_costs()
    assert each.value == pytest.approx(quiet.instance_tuple_s, rel=0.05)
    assert batch.value == pytest.approx(quiet.rest_batch_s, rel=0.05)


def test_what_is_recorded_goes_on_as_it_was() -> None:
    rng, estimator = np.random.default_rng(6), Estimator(everywhere=False)
    for _ in range(2 * KEPT + 5):
        tuples = int(rng.choice(SIZES))
        estimator = estimator.after(MACHINE.batch(rng, tuples, 0, tuples // 10))
    text = json.dumps(estimator.recorded())
    restored = Estimator.restored(json.loads(text))
    assert restored.estimate() == estimator.estimate()
    found = estimator.estimate()
    assert found is not None
    assert Calibration.from_dict(json.loads(json.dumps(found.as_dict()))) == found
    grown = estimator
    for _ in range(500):
        tuples = int(rng.choice(SIZES))
        grown = grown.after(MACHINE.batch(rng, tuples, 0, tuples // 10))
    assert len(grown.samples) < 2 * KEPT, "what is remembered does not grow with batches"


def test_too_few_batches_and_empty_ones_say_nothing() -> None:
    estimator = Estimator(everywhere=True)
    rng = np.random.default_rng(0)
    assert estimator.after(replace(MACHINE.batch(rng, 10, 0, 0), tuples=0)) == estimator
    for _ in range(LEAST_BATCHES - 1):
        estimator = estimator.after(MACHINE.batch(rng, 10, 0, 0))
    assert estimator.estimate() is None
    assert estimator.after(MACHINE.batch(rng, 10, 0, 0)).estimate() is not None


def test_the_time_of_instances_side_by_side_and_in_turn() -> None:
    batch = BatchSample(seconds=1.0, cpu_s=0.6, busiest_s=0.4, tuples=1, instances=2, others_s=0.1)
    assert (batch.working_s, batch.overhead_s) == (0.4, 0.5)
    in_turn = replace(batch, slots=1)
    assert in_turn.working_s == 0.6
    assert in_turn.overhead_s == pytest.approx(0.3)
    assert replace(batch, seconds=0.1).overhead_s == 0


@pytest.mark.parametrize(
    ("freedom", "quantile"), [(4, 2.776), (8, 2.306), (20, 2.086), (1000, 1.962)]
)
def test_students_quantiles(freedom: float, quantile: float) -> None:
    assert student(freedom) == pytest.approx(quantile, rel=0.01)
