"""Thresholds over loads that were made up: how many instances, which buckets, and how often."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.elastic.fixed import Fixed
from tidegate.elastic.request import Switch
from tidegate.elastic.threshold import Threshold
from tidegate.errors import OptionError
from tidegate.route.mapping import Mapping, even
from tidegate.testing import DrivenBatch, drive, switches

BUCKETS = 64
Loads = list[npt.NDArray[np.float64]]


def even_load(total: float, batches: int, buckets: int = BUCKETS) -> Loads:
    """CPU seconds of each second, the same for every bucket."""
    return [np.full(buckets, total / buckets)] * batches


def ramp(most: float, batches: int) -> Loads:
    """From little to `most` instances' worth and back."""
    up = np.linspace(0.3, most, batches)
    return [np.full(256, total / 256) for total in (*up, *up[::-1])]


def reasons(driven: list[DrivenBatch]) -> list[str]:
    return [request.why for one in driven for request in one.requests]


def off_target(driven: list[DrivenBatch], target: float) -> float:
    """How far the utilisation is from the target, on average, where it is not all one instance."""
    return float(np.mean([abs(one.utilisation - target) for one in driven if one.instances > 1]))


@pytest.mark.parametrize(
    ("before", "more", "fewer"),
    [(5, 9, 2), (9, 16, 3), (18, 31, 7), (30, 52, 12), (40, 69, 17)],
    ids=str,
)
@pytest.mark.parametrize("buckets", [1_000, 512])
def test_a_new_load_is_answered_in_one_step(
    before: int, more: int, fewer: int, buckets: int
) -> None:
    """STRETCH's table 2: from 70 percent of what they can to 120, and to 30, and no further."""
    calm = even_load(0.7 * before, 10, buckets)
    for share, after in ((1.2, more), (0.3, fewer)):
        load = [*calm, *even_load(share * before, 30, buckets)]
        driven = drive(Threshold(), load, instances=before)
        assert [one.instances for one in driven[:13]] == [before] * 13
        assert {one.instances for one in driven[13:]} == {after}


def test_a_change_is_not_turned_back_by_the_load_that_called_for_it() -> None:
    """Nine at 30 percent become three at 90, and stay three where it is a few percent more."""
    rises = [*even_load(2.7, 10), *even_load(2.7 * 1.04, 10), *even_load(2.7 * 1.06, 10)]
    driven = drive(Threshold(), rises, instances=9)
    assert [driven[i].instances for i in (0, 9, 19, 29)] == [9, 3, 3, 5]


def test_the_reason_has_the_figures() -> None:
    driven = drive(Threshold(), even_load(1.94, 20), instances=2)
    first, *_ = reasons(driven)
    assert first == "average utilisation 0.97 above 0.90: 2 -> 3 instances"
    (request, *_) = [r for one in driven for r in one.requests]
    assert (request.by, request.subquery) == ("policy threshold", "aggregate")
    driven = drive(Threshold(), even_load(0.8, 20), instances=4)
    assert reasons(driven) == ["average utilisation 0.20 below 0.45: 4 -> 1 instance"]


def test_a_ramp_takes_fewer_switches_and_stays_nearer_the_target() -> None:
    load = ramp(14.0, 400)
    one_step = drive(Threshold(maximum=20), load)
    single = drive(Threshold(maximum=20, provisioning="individual"), load)
    for driven in (one_step, single):
        most = max(one.instances for one in driven)
        assert most >= 16
        assert driven[-1].instances == 1
        assert max(one.waiting_s for one in driven) < 0.5, "nothing waits for long"
    assert 0 < switches(one_step) <= switches(single) * 0.6
    assert off_target(one_step, 0.7) < off_target(single, 0.7)


def test_a_sudden_load_is_met_in_few_steps() -> None:
    """An instance cannot be busier than all the time, so a step is at most 1 / target."""
    load = [*even_load(0.5, 10), *even_load(9.0, 80)]
    one_step = drive(Threshold(maximum=32, cooldown=3), load)
    single = drive(Threshold(maximum=32, cooldown=3, provisioning="individual"), load)
    reached = [next(i for i, o in enumerate(d) if o.instances >= 10) for d in (one_step, single)]
    assert reached[0] < reached[1] * 0.7


def drifting(batches: int, total: float = 4.0, hot: float = 0.6) -> Loads:
    """A bump of load that wanders over the buckets."""
    buckets = np.arange(BUCKETS)
    found = []
    for batch in range(batches):
        centre = (batch // 40 * 13) % BUCKETS
        away = np.minimum((buckets - centre) % BUCKETS, (centre - buckets) % BUCKETS)
        bump = np.exp(-0.5 * (away / 5.0) ** 2)
        found.append(total * (hot * bump / bump.sum() + (1 - hot) / BUCKETS))
    return found


def test_a_drift_is_balanced() -> None:
    policy = Threshold(maximum=8, minimum=8, imbalance=0.1)
    stretch = Mapping(even(BUCKETS, 8).epoch, 8, tuple(b // 8 for b in range(BUCKETS)))
    driven = drive(policy, drifting(400), mapping=stretch)
    left = drive(Threshold(maximum=8, minimum=8, imbalance=10.0), drifting(400), mapping=stretch)
    assert switches(left) == 0
    late = [one.imbalance for i, one in enumerate(driven) if i % 40 >= 12]
    assert np.quantile(late, 0.95) < 0.1
    assert np.mean(late) < np.mean([one.imbalance for one in left]) / 4
    assert 0 < switches(driven) <= 30
    assert all(reason.startswith("imbalance 0.") for reason in reasons(driven))
    moved = [reason.split(": ")[1].split()[0] for reason in reasons(driven)]
    assert max(map(int, moved)) <= BUCKETS / 2, "a few buckets move, not all"


@given(
    total=st.floats(0.1, 12.0),
    start=st.integers(1, 16),
    skew=st.floats(0.0, 1.0),
    seed=st.integers(0, 2**32 - 1),
    provisioning=st.sampled_from(["load-aware", "individual"]),
)
@settings(max_examples=15, deadline=None)
def test_a_constant_load_with_noise_makes_nothing_swing(
    total: float, start: int, skew: float, seed: int, provisioning: str
) -> None:
    """A tenth of noise in every bucket: instances come or go, and never turn back.

    But after too few of them, there are more until what waits is done, and then some go again. A
    load that lies at a threshold may cross it late, and once.
    """
    generator = np.random.default_rng(seed)
    shares = (1 - skew) / BUCKETS + skew * generator.dirichlet(np.ones(BUCKETS))
    load = [total * shares * generator.uniform(0.9, 1.1, BUCKETS) for _ in range(200)]
    driven = drive(Threshold(maximum=16, provisioning=provisioning), load, instances=start)
    counts = [one.instances for one in driven]
    up = [after > before for before, after in itertools.pairwise(counts) if after != before]
    turns = sum(one != other for one, other in itertools.pairwise(up))
    late = [place for place, one in enumerate(driven) if one.waiting_s > 0.5]
    assert turns <= (1 if late else 0)
    assert len(up) <= 15 + turns * 15
    settled = max(120, late[-1] + 30 if late else 0)  # one at a time, what waits is done late
    assert switches(driven[settled:]) <= 3


@given(
    owners=st.lists(st.integers(0, 4), min_size=5, max_size=40),
    data=st.data(),
)
def test_no_switch_makes_the_predicted_imbalance_worse(owners: list[int], data: Any) -> None:
    mapping = Mapping(even(5, 5).epoch, 5, tuple(owners))
    size = len(owners)
    load = np.array(data.draw(st.lists(st.floats(0, 0.5), min_size=size, max_size=size)))
    policy = Threshold(batches=1, seconds=0.0, minimum=5, maximum=5, imbalance=0.05)
    (driven,) = drive(policy, [load], mapping=mapping)
    for request in driven.requests:
        after = request.change.after(mapping, [])
        assert after.instances == 5
        done = driven.observed.buckets
        then = np.bincount(after.owner_array, weights=done, minlength=5)
        assert then.std() <= driven.imbalance * 0.9 + 1e-5
        assert then.max() <= driven.observed.utilisation.max() + 1e-5


def test_several_subqueries_short_of_capacity_are_provisioned_at_once() -> None:
    """Each by its own load in one decision, while another gives instances back."""
    policy, names = Threshold(), ("map", "join", "join2", "aggregate")
    shares, counts = (1.2, 0.97, 0.6, 0.2), (5, 9, 4, 6)
    courses = [
        drive(Fixed(), even_load(share * count, 3), instances=count, slots=14)
        for share, count in zip(shares, counts, strict=True)
    ]
    memory: dict[str, Any] = {}
    for batch in range(3):
        seen = [
            replace(course[batch].observed, subquery=name)
            for name, course in zip(names, courses, strict=True)
        ]
        decision = policy.decide(seen, memory)
        memory = json.loads(json.dumps(decision.memory))
        assert bool(decision.requests) == (batch == 2)
    asked = {
        r.subquery: r.change.instances for r in decision.requests if isinstance(r.change, Switch)
    }
    assert asked == {"map": 9, "join": 13, "aggregate": 2}
    assert [r.by for r in decision.requests] == ["policy threshold"] * 3


def test_low_thresholds_give_new_instances_their_part() -> None:
    """Utilisations of a few percent differ by less than `imbalance`, also from that of nobody."""
    policy = Threshold(upper=0.05, target=0.03, lower=0.01, improvement=0.01)
    last = drive(policy, even_load(0.055, 20))[-1]
    assert last.instances == 2
    assert last.observed.utilisation == pytest.approx([0.0275, 0.0275], rel=0.25)


def test_changes_are_a_cooldown_apart() -> None:
    for cooldown in (0, 5, 12):
        driven = drive(Threshold(maximum=20, cooldown=cooldown), ramp(14.0, 200))
        at = [i for i, one in enumerate(driven) if one.requests]
        assert len(at) > 4
        # A request is taken by the next batch, and the new mapping is seen for three.
        assert min(b - a for a, b in itertools.pairwise(at)) >= max(cooldown + 1, 4)


def test_a_decision_rests_on_some_seconds() -> None:
    hasty = drive(Threshold(seconds=0.0), even_load(0.019, 20), instances=2, period_s=0.01)
    calm = drive(Threshold(seconds=0.5), even_load(0.019, 20), instances=2, period_s=0.01)
    assert switches(hasty) == 1
    assert switches(calm) == 0


def test_one_spike_changes_nothing() -> None:
    load = even_load(1.3, 40)
    load[20] = load[20] * 1.5
    assert switches(drive(Threshold(), load, instances=2)) == 0


def test_a_switch_of_somebody_else_starts_anew() -> None:
    """What was seen of another mapping does not count, nor does the batch of the switch."""
    policy = Threshold(batches=3)
    before = drive(policy, even_load(1.94, 3), instances=2, slots=2)
    memory = {}
    for one in before:
        memory = policy.decide((one.observed,), memory).memory
    assert memory["aggregate"]["batches"] == 3
    other = Mapping(even(BUCKETS, 3).epoch + 1, 3, even(BUCKETS, 3).owners)  # type: ignore[arg-type]
    seen = drive(policy, even_load(0.6, 1), mapping=other)[0].observed
    after = policy.decide((replace(seen, batch=3),), memory).memory
    assert (after["aggregate"]["batches"], after["aggregate"]["changed"]) == (0, 3)


def test_limits() -> None:
    heavy, light = even_load(9.0, 60), even_load(0.1, 60)
    assert drive(Threshold(maximum=3), heavy)[-1].instances == 3
    assert drive(Threshold(), heavy, slots=2)[-1].instances == 2
    assert drive(Threshold(maximum=4), heavy, slots=2)[-1].instances == 4
    assert drive(Threshold(minimum=3), light, instances=6)[-1].instances == 3
    above = drive(Threshold(maximum=3), light, instances=6)
    assert reasons(above)[0] == "more than the maximum of 3: 6 -> 3 instances"
    below = drive(Threshold(minimum=2), light)
    assert reasons(below) == ["fewer than the minimum of 2: 1 -> 2 instances"]
    few = drive(Threshold(maximum=40), even_load(30.0, 60, buckets=6))
    assert few[-1].instances == 6, "there are no more buckets"


def back_to_back(total: float, instances: int, slots: int) -> list[str]:
    """Batches of a second with no time between them, of which instances use a part."""
    (seen,) = [o.observed for o in drive(Threshold(), even_load(total, 1), instances=instances)]
    memory: Any = {}
    policy, asked = Threshold(), []
    for batch in range(6):
        one = replace(seen, seconds=1.0, batch=batch, slots=slots)
        decision = policy.decide((one,), memory)
        memory, asked = decision.memory, [*asked, *(r.why for r in decision.requests)]
    return asked


def test_a_query_without_time_to_spare_gives_nothing_back() -> None:
    assert back_to_back(0.8, instances=4, slots=4) == []


def test_a_query_that_is_late_gets_more_though_batches_are_not_all_cpu() -> None:
    said = ["average utilisation 0.50, 1.00 of what batches leave, above 0.90: 1 -> 2 instances"]
    assert back_to_back(0.5, instances=1, slots=2) == said
    assert back_to_back(0.05, instances=1, slots=2) == [], "that would save next to nothing"


def test_a_hot_bucket_gets_no_more_instances() -> None:
    """More instances would stand beside it with nothing to do."""
    load = np.full(BUCKETS, 1e-4)
    load[7] = 0.95
    assert switches(drive(Threshold(maximum=8), [load] * 30)) == 0


def test_no_instance_that_stays_is_overloaded() -> None:
    """Two heavy buckets and many light ones: the average alone would allow one instance."""
    load = np.full(BUCKETS, 0.001)
    load[0] = load[1] = 0.6
    driven = drive(Threshold(), [load] * 30, instances=4)
    assert driven[-1].instances == 2
    assert driven[-1].observed.utilisation.max() <= 0.9


def test_the_same_trace_gives_the_same_decisions() -> None:
    one, other = (drive(Threshold(maximum=9), ramp(7.0, 60)) for _ in range(2))
    assert [d.requests for d in one] == [d.requests for d in other]
    assert switches(one) > 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"upper": 0.4}, "lower must be below upper, both between 0 and 1; got lower 0.45 and"),
        ({"upper": 1.5}, "lower must be below upper, both between 0 and 1; got lower 0.45 and"),
        ({"target": 0.95}, r"target must be from lower \(0.45\) to upper \(0.9\); got 0.95"),
        ({"target": 0.1}, r"target must be from lower \(0.45\) to upper \(0.9\); got 0.1"),
        ({"cooldown": -1}, "cooldown must not be negative; got -1"),
        ({"cooldown": 1.5}, "cooldown must be a whole number; got 1.5"),
        ({"seconds": -1}, "seconds must not be negative; got -1"),
        ({"batches": 0}, "batches must be at least 1; got 0"),
        ({"minimum": 0}, "minimum must be at least 1; got 0"),
        ({"minimum": 4, "maximum": 2}, r"maximum must be at least minimum \(4\); got 2"),
        ({"imbalance": 0}, "imbalance must be above 0; got 0"),
        ({"improvement": 1.0}, "improvement must be from 0 to less than 1; got 1"),
        ({"upper": "high"}, "upper must be a number; got 'high'"),
        ({"target": float("nan")}, "target must be a number; got nan"),
        ({"provisioning": "indivdual"}, "got indivdual. Did you mean individual?"),
    ],
    ids=str,
)
def test_mistakes(given: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionError, match=f"^policy threshold: .*{said}"):
        Threshold(**given)
