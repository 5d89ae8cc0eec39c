"""The remedies of `auto` one by one: when each is taken, and when it is given back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.elastic.auto.world import World
from tidegate.elastic.auto.case import Case
from tidegate.elastic.auto.evidence import Saved
from tidegate.elastic.auto.goal import LatencyGoal
from tidegate.elastic.auto.remedy import MOST_ROWS, ORDER, proposal_of
from tidegate.model.observation import BatchCadence

GOAL = LatencyGoal(latency_s=2.0)
GIB = 2**30


def kinds(world: World) -> list[str]:
    return [one.kind for _, one in world.changes]


def test_they_stand_in_the_order_of_the_documents() -> None:
    assert [remedy.kind for remedy in ORDER] == [
        "change partitioner",
        "rebalance",
        "shed",
        "add instances",
        "add instances and shed",
        "change batches",
    ]


def test_what_the_driver_and_map_tasks_take_is_nothing_to_shed_or_to_divide() -> None:
    """As in a spike on the engine: instances have a third of the time, what is beside them all."""
    goal = LatencyGoal(latency_s=2.0, error=0.1)
    made = World(goal, 1, most=2, most_share=0.95, beside=0.5, unseen=Saved(0.0, -0.4))
    made.run([0.15], 10.0)
    made.beside = 1.05
    made.run([0.32], 30.0)
    assert not made.changes
    assert "driver and map tasks 105% of the time" in made.memory.stuck
    case = Case(goal, made.seen, (0.32,))
    notes = {r.kind: proposal_of(r, case).missing for r in ORDER}
    for kind in ("shed", "add instances", "add instances and shed"):
        assert notes[kind] == "driver and map tasks alone take 105% of the time"


def test_a_remedy_of_instances_is_one_where_what_is_beside_them_leaves_time() -> None:
    goal = LatencyGoal(latency_s=2.0, error=0.1)
    made = World(goal, 1, most=2, most_share=0.95, beside=0.2, unseen=Saved(0.0, -0.4))
    made.run([0.6], 10.0)
    made.run([0.95], 8.0)
    assert kinds(made) == ["shed"]
    assert made.worst_s <= 2.0


def test_a_key_that_is_too_much_for_one_instance_is_split() -> None:
    made = World(GOAL, 4, splits=False)
    made.run([3.1], 20.0)
    assert not made.changes
    made.hottest = 0.6
    made.run([3.1], 40.0)
    assert kinds(made) == ["change partitioner"]
    assert (made.splits, made.instances) == (True, 4)
    assert made.latency_s <= 2.0
    _, chosen = made.changes[0]
    assert chosen.why.endswith("change partitioner, keys may be split")


def test_instances_come_with_it_where_even_loads_are_too_much() -> None:
    made = World(GOAL, 1, splits=False, hottest=0.7)
    made.run([2.5], 60.0)
    assert kinds(made)[0] == "change partitioner"
    assert made.instances in (3, 4)
    assert made.latency_s <= 2.0


def test_a_key_is_not_split_where_the_partitioner_is_not_on_standby() -> None:
    made = World(GOAL, 4, hottest=0.6)
    made.run([2.0], 40.0)
    assert "change partitioner" not in kinds(made)
    assert "cannot be held" in made.memory.stuck


def test_keys_go_by_hash_again_when_none_was_split_for_a_while() -> None:
    made = World(GOAL, 4, splits=False, hottest=0.6)
    made.run([2.0], 60.0)
    made.hottest = 0.0
    made.run([2.0], 120.0)
    assert kinds(made)[0] == "change partitioner"
    assert kinds(made)[-1] == "hash"
    assert made.splits is False
    assert made.latency_s <= 2.0


def test_a_trigger_that_is_too_long_for_the_target_is_shortened() -> None:
    made = World(GOAL, 2, cadence=BatchCadence(5.0), own_cadence=BatchCadence(5.0))
    made.run([1.0], 120.0)
    assert kinds(made) == ["change batches"]
    assert made.cadence == BatchCadence(1.0)
    assert made.latency_s <= 2.0


def test_batches_that_are_too_small_for_the_rate_are_made_larger_and_small_again() -> None:
    own = BatchCadence(0.0, 2_000)
    made = World(GOAL, 1, cadence=own, own_cadence=own, rate=20_000)
    made.run([0.5], 20.0)
    assert not made.changes
    made.rate = 120_000  # a batch is 17 ms of input, and 20 ms by itself
    made.run([0.5], 20.0)
    assert kinds(made)[0] == "change batches"
    assert made.cadence.rows is not None
    assert 2_000 < made.cadence.rows <= MOST_ROWS
    made.run([0.5], 20.0)
    assert made.latency_s <= 2.0
    made.rate = 20_000
    made.run([0.5], 120.0)
    assert kinds(made)[-1] == "own batches"
    assert made.cadence == own


def test_batches_of_a_run_that_leaves_them_to_nobody_stay() -> None:
    made = World(GOAL, 2, cadence=BatchCadence(5.0))
    made.run([0.9], 60.0)
    assert not made.changes, "more instances would not help"
    assert "cannot be held" in made.memory.stuck


def test_state_that_fills_the_memory_gets_instances_and_keeps_them() -> None:
    made = World(GOAL, 2, memory_bytes=GIB)
    made.run([0.5], 60.0)
    assert made.instances == 1
    made.state_bytes = 3 * GIB
    made.run([0.5], 30.0)
    assert kinds(made)[-1] == "add instances"
    assert made.instances == 6, "three fifths of a process is what state may have"
    assert "state fills 300% of the memory of an instance" in made.changes[-1][1].why
    made.run([0.5], 120.0)
    assert made.instances == 6, "the work alone would need one"
    made.state_bytes = GIB // 2
    made.run([0.5], 120.0)
    assert made.instances == 1


def test_state_that_does_not_fit_anywhere_is_said() -> None:
    made = World(LatencyGoal(2.0, cost=2), 2, memory_bytes=GIB, state_bytes=5 * GIB)
    made.run([0.5], 60.0)
    assert made.memory.stuck == (
        "state fills 250% of the memory of an instance, and there may be no more instances: raise "
        "--memory-limit or COST, or shorten the windows"
    )


@settings(max_examples=15)
@given(
    work=st.floats(0.1, 20.0),
    hottest=st.floats(0.0, 0.9),
    instances=st.integers(1, 12),
    trigger_s=st.floats(0.0, 8.0),
    rows=st.one_of(st.none(), st.integers(1_000, 1_000_000)),
    state=st.floats(0.0, 8.0),
)
def test_a_load_that_stays_settles_whatever_has_to_be_changed(
    work: float, hottest: float, instances: int, trigger_s: float, rows: int | None, state: float
) -> None:
    own = BatchCadence(trigger_s, rows)
    made = World(
        GOAL,
        instances,
        cadence=own,
        own_cadence=own,
        rate=20_000,
        hottest=hottest,
        splits=False,
        state_bytes=round(state * GIB),
        memory_bytes=GIB,
    )
    made.run([work], 150.0)
    settled = len(made.changes)
    assert settled <= 8
    made.run([work], 60.0)
    assert len(made.changes) - settled <= 1, [one.why for _, one in made.changes]
    assert made.latency_s <= 2.0 or made.memory.stuck


@pytest.mark.parametrize("fraction", [0.3, 0.9])
def test_the_memory_of_the_machine_goes_through_a_manifest(fraction: float) -> None:
    """A change of batches that waits for its outcome is restored as it was."""
    made = World(GOAL, 2, cadence=BatchCadence(5.0), own_cadence=BatchCadence(5.0))
    made.run([fraction], 12.0)
    assert kinds(made) == ["change batches"]
    restored = type(made.memory).restored(made.memory.recorded())
    assert restored == made.memory
