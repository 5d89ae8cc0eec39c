"""The policy `auto` over simulated queries: what batches show, and what it asks for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tidegate as tg
from tidegate.elastic.auto.costs import UnitCosts
from tidegate.elastic.auto.history import KnownQuery
from tidegate.elastic.auto.policy import ByTarget
from tidegate.elastic.auto.saving import Saving
from tidegate.elastic.request import Rebalance
from tidegate.elastic.simulated_query import (
    SimulatedBatch,
    SimulatedFault,
    SimulatedLoad,
    SimulatedQuery,
    latencies,
)
from tidegate.model.observation import ShedSeen
from tidegate.model.operation import Operation

TARGET_S = 2.0


def load_of(*parts: tuple[float, int], hottest: list[float] | None = None) -> SimulatedLoad:
    """Work for so many instances, for so many seconds each."""
    work = np.concatenate([np.full(seconds, float(of)) for of, seconds in parts])
    return SimulatedLoad(
        tuples=work * 1000,
        work_s=work,
        hottest=None if hottest is None else np.array(hottest),
    )


def whys(batches: list[SimulatedBatch]) -> list[str]:
    return [why for batch in batches for why in batch.why]


def held(batches: list[SimulatedBatch], seconds: int) -> float:
    late = latencies(batches, seconds)
    return float((late[np.isfinite(late)] <= TARGET_S).mean())


def test_a_step_gets_the_instances_it_needs_and_gives_them_back() -> None:
    query = SimulatedQuery(load=load_of((2, 30), (7, 60), (2, 60)))
    batches = query.run(ByTarget(latency="2 seconds"), instances=3)
    assert held(batches, 150) == 1.0
    by_second = {int(batch.start_s): batch.instances for batch in batches}
    assert (by_second[29], by_second[60], by_second[148]) == (3, 8, 3)
    up, down = whys(batches)
    assert "add instances, 3 -> 8 instances" in up
    assert down == "the most work of 24 s was for 2.00 instances: 8 -> 3 instances"


def test_a_short_spike_is_shed_where_an_error_is_allowed() -> None:
    query = SimulatedQuery(load=load_of((2, 30), (4, 6), (2, 40)), most_share=0.95)
    batches = query.run(ByTarget(latency=TARGET_S, error=0.1), instances=3)
    assert held(batches, 76) == 1.0
    assert {batch.instances for batch in batches} == {3}
    assert 0 < max(batch.share for batch in batches) <= 0.5
    assert batches[-1].share == 0.0
    exact = query.run(ByTarget(latency=TARGET_S), instances=3)
    assert max(batch.share for batch in exact) == 0.0
    assert max(batch.instances for batch in exact) > 3


def test_a_spike_that_the_driver_cannot_keep_up_with_is_not_shed_in_vain() -> None:
    """Instances have next to nothing to do, so that it saves nothing to shed."""
    work = load_of((1, 20), (3, 15), (1, 20))
    query = SimulatedQuery(
        load=replace(work, work_s=work.work_s * 0.03), tuple_s=4.2e-4, most_share=0.95, slots=1
    )
    batches = query.run(ByTarget(latency=TARGET_S, error=0.1), instances=1)
    assert max(batch.end_s - batch.after_s for batch in batches) > TARGET_S
    assert not whys(batches)


def test_it_never_decides_from_a_batch_with_a_switch_a_retry_or_a_pause() -> None:
    faults = [SimulatedFault("retry", at, 0.4) for at in range(20, 60, 2)]
    faults += [SimulatedFault("pause", 15.0, 1.0), SimulatedFault("pause", 70.0, 1.0)]
    query = SimulatedQuery(load=load_of((2, 30), (6, 60)), faults=faults)
    batches = query.run(ByTarget(latency=TARGET_S), instances=3)
    decided = [place for place, batch in enumerate(batches) if batch.why]
    assert decided
    for place in decided:
        assert batches[place].observed.disturbed is None
        assert batches[place].instances == batches[place - 1].instances
        beside_s = batches[place].observed.sample().overhead_s
        assert beside_s < 0.5, "no pause"
    assert max(batch.instances for batch in batches) >= 7
    assert ": back," not in " ".join(whys(batches)), "faults are no fault of the instances"


def test_a_pause_alone_changes_nothing() -> None:
    faults = [SimulatedFault("pause", at, 1.2) for at in (20.0, 35.0, 50.0)]
    query = SimulatedQuery(load=load_of((2.5, 70)), faults=faults)
    assert not whys(query.run(ByTarget(latency=TARGET_S), instances=3))


def test_loads_that_are_uneven_are_evened_first() -> None:
    hottest = [0.0] * 30 + [0.06] * 60
    query = SimulatedQuery(load=load_of((7.6, 90), hottest=hottest))
    policy, state, memory = ByTarget(latency=TARGET_S), query.start(9), dict[str, Any]()
    asked = []
    while not state.over:
        state, batch = state.step()
        decision = policy.decide((batch.observed,), memory)
        memory = dict(decision.memory)
        for request in decision.requests:
            asked.append(request.change)
            loads = batch.observed.buckets.tolist()
            state = replace(state, mapping=request.change.after(state.mapping, loads))
    assert asked == [Rebalance()]


def test_a_start_up_is_no_reason_to_act() -> None:
    """Code is loaded and compiled: the first seconds take three times as long."""
    slow = SimulatedFault("slow", 0.0, 2.0, times=3.0)
    query = SimulatedQuery(load=load_of((0.6, 40)), most_share=0.9, faults=[slow])
    policy = ByTarget(latency=TARGET_S, error=0.1)
    assert whys(query.run(policy, instances=1)), "without a word of a start it is too much work"
    begun = replace(query, faults=[slow, SimulatedFault("start", 0.0, 0.2)])
    assert not whys(begun.run(policy, instances=1))


@pytest.mark.parametrize("began_s", [0.0, 20.0])
def test_the_first_windows_that_close_are_a_start_up_too(began_s: float) -> None:
    faults = [
        SimulatedFault("start", 0.0, 0.2),
        SimulatedFault("slow", began_s + 5.0, 3.0, times=3.0),
    ]
    query = SimulatedQuery(load=load_of((0.6, 60)), most_share=0.9, faults=faults)
    policy = ByTarget(latency=TARGET_S, error=0.1)
    decided = dict.fromkeys((False, True), 0)
    for closes in decided:
        state, memory = query.start(1), dict[str, Any]()
        while not state.over:
            state, batch = state.step()
            groups = 100 if closes and batch.start_s >= began_s + 4.9 else 0
            decision = policy.decide((replace(batch.observed, closed=groups),), memory)
            memory = dict(decision.memory)
            decided[closes] += bool(decision.requests) or decision.share is not None
            state = state.after(decision, batch.observed.buckets.tolist())
    assert decided[True] == 0 < decided[False]


def test_a_start_up_that_is_an_overload_is_decided_about() -> None:
    query = SimulatedQuery(load=load_of((2, 60)), faults=[SimulatedFault("start", 0.0, 0.2)])
    batches = query.run(ByTarget(latency=TARGET_S), instances=1)
    assert "add instances" in whys(batches)[0]
    assert held(batches, 60) > 0.5


def test_a_stalled_instance_gets_less_to_do() -> None:
    """Its CPU time is as ever; the clock says that it has become slow, and that this lasts."""
    stalled = SimulatedFault("stalled", 30.0, 60.0, times=2.5, instance=1)
    query = SimulatedQuery(load=load_of((1.1, 120)), faults=[stalled])
    batches = query.run(ByTarget(latency=TARGET_S, cost=2), instances=2)
    assert {batch.instances for batch in batches} == {2}
    (why,) = whys(batches)
    assert why.endswith("rebalance, the same instances with even loads")
    decided = next(batch for batch in batches if batch.why)
    assert 34.0 <= decided.end_s <= 45.0, "a pause would have been over"
    late = latencies(batches, 120)
    assert np.nanmax(late[60:]) <= TARGET_S
    while_slow = next(batch for batch in batches if batch.start_s > 60.0)
    owners = while_slow.observed.mapping.owner_array
    assert (owners == 1).sum() < 0.7 * (owners == 0).sum()


def test_an_instance_that_pauses_is_not_a_slow_one() -> None:
    pauses = [
        SimulatedFault("stalled", at, 1.5, times=3.0, instance=1) for at in (30.0, 45.0, 60.0)
    ]
    query = SimulatedQuery(load=load_of((1.3, 80)), most_share=0.9, faults=pauses)
    policy = ByTarget(latency=TARGET_S, error=0.1, cost=2)
    assert not whys(query.run(policy, instances=2))


def test_a_slow_instance_is_noticed_and_the_target_held_again() -> None:
    slow = SimulatedFault("slow", 30.0, 100.0, times=3.0, instance=1)
    query = SimulatedQuery(load=load_of((5, 130)), faults=[slow])
    batches = query.run(ByTarget(latency=TARGET_S), instances=6)
    late = latencies(batches, 130)
    assert np.nanmax(late[100:128]) <= TARGET_S


def test_what_it_says_of_a_query_for_which_it_can_do_little() -> None:
    query = SimulatedQuery(load=load_of((1, 5)))
    (seen, *_) = [batch.observed for batch in query.run(ByTarget(), instances=1)]
    assert ByTarget().remark([seen]) is None
    said = ByTarget(error=0.1).remark([seen])
    assert said is not None
    assert said.startswith("this query cannot shed, so that no error is used")
    assert ByTarget(error=0.1).remark([replace(seen, shed=ShedSeen(0.0, 0.9))]) is None
    dead = replace(seen, inputs=tuple(replace(one, arrived=None) for one in seen.inputs))
    said = ByTarget().remark([dead])
    assert said is not None
    assert "not all sources of this query are live" in said


@pytest.mark.parametrize("wrong_s", [float("nan"), float("inf"), -1.0])
def test_a_time_that_cannot_be_is_no_evidence(wrong_s: float) -> None:
    """Costs are running sums: one such time would stay in them."""
    query = SimulatedQuery(load=load_of((0.5, 3)))
    seen = query.run(ByTarget(), instances=1)[0].observed
    known = KnownQuery().after([seen])
    wrong = replace(seen, instances=(replace(seen.instances[0], cpu_s=wrong_s),))
    after = known.after([wrong])
    assert not after.clean
    (before,) = known.subqueries.values()
    (found,) = after.subqueries.values()
    assert found.costs == before.costs


def test_seconds_without_tuples_are_not_late() -> None:
    """It was 120 s after 120 s without tuples."""
    tuples = np.full(200, 1_000.0)
    tuples[30:150] = 0
    query = SimulatedQuery(load=SimulatedLoad(tuples=tuples, work_s=tuples * 1e-3))
    late = [batch.observed.latency_s or 0.0 for batch in query.run(ByTarget(), instances=3)]
    assert 0 < max(late) <= 0.5


def test_what_it_tells_is_plain_data() -> None:
    query = SimulatedQuery(load=load_of((2, 20), (9, 40)), slots=4)
    policy, state, memory = ByTarget(cost=4), query.start(3), dict[str, Any]()
    while not state.over:
        state, batch = state.step()
        memory = dict(policy.decide((batch.observed,), memory).memory)
    told = policy.told(memory)
    assert told["goal"] == {"latency_s": 2.0, "error": None, "instances": 4}
    assert told["cannot"].startswith("the target of 2 s cannot be held: ")
    assert told["decisions"][0]["remedy"] == "add instances"
    assert policy.told({})["decisions"] == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"latency": 0}, "policy auto: latency must be above 0; got 0"),
        ({"latency": "never"}, "policy auto, latency: a duration must be a number and a unit"),
        ({"error": 1.0}, "policy auto: error must be between 0 and 1; got 1"),
        ({"cost": 0}, "policy auto: cost must be at least 1 instance; got 0"),
        ({"cost": 1.5}, "policy auto: cost must be a whole number; got 1.5"),
    ],
)
def test_mistakes(given: dict[str, Any], said: str) -> None:
    with pytest.raises(tg.OptionError, match=said):
        tg.policy.auto(**given)


@pytest.mark.parametrize(("by_tuple", "likely"), [(1.0, 0.8), (0.0, 0.0)])
def test_what_shedding_saves_is_what_instances_do_by_tuples(by_tuple: float, likely: float) -> None:
    query = SimulatedQuery(load=load_of((0.5, 3)), most_share=0.9)
    seen = query.run(ByTarget(), instances=1)[0].observed
    seen = replace(seen, operation=Operation("aggregate", by_tuple=by_tuple))
    saving = Saving().after([seen], 0.0, UnitCosts())
    assert saving.instances.likely == likely
    assert saving.beside.likely == 0.0, "map tasks read a tuple before they shed it"


def test_costs_of_a_unit_and_beside_it() -> None:
    costs = UnitCosts()
    for tuples in (100, 400, 200, 800, 300, 500, 250, 600, 350):
        assert not costs.known or costs.batches >= 3
        costs = costs.after(tuples, tuples * 2e-3, tuples, 0.02 + tuples * 1e-5, 0.5)
    costs = UnitCosts.restored(costs.recorded())
    assert costs.known
    assert costs.unit_s == pytest.approx(2e-3)
    assert costs.beside_tuple_s == pytest.approx(1e-5, rel=1e-3)
    assert costs.beside_batch_s == pytest.approx(0.02, rel=1e-3)
    assert costs.doubt == pytest.approx(0.13)


def test_batches_that_differ_are_not_known_from_few() -> None:
    costs = UnitCosts()
    for cpu_s in (0.1, 0.3, 0.05, 0.4):
        costs = costs.after(100, cpu_s, 100, 0.02, 0.5)
    assert not costs.known
    assert costs.doubt > 0.2
