"""What queries under a budget want: they do not answer each other, and say what they lack."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.elastic.auto.world import World
from tidegate.elastic.auto.goal import LatencyGoal
from tidegate.elastic.budget.instance_need import AskedInstances
from tidegate.elastic.budget.ledger import BudgetHolder, BudgetLedger
from tidegate.elastic.policy import Decision
from tidegate.elastic.request import Request, Scale
from tidegate.model.observation import InstanceLoad, Observation
from tidegate.route.mapping import even

GOAL = LatencyGoal(2.0)
works = st.floats(0.3, 9.0)


@dataclass
class Shared:
    """Worlds that share a budget; a second of one, then a second of the next."""

    worlds: list[World]
    ledger: BudgetLedger
    changes: list[int] = field(default_factory=list)

    @staticmethod
    def of(most: int, count: int) -> Shared:
        made = Shared([World(GOAL, 1) for _ in range(count)], BudgetLedger(most), [0] * count)
        for number in range(count):
            made.ledger = made.ledger.joined(number, BudgetHolder(1, 1)).admitted(number, 1, 1)
        return made

    def run(self, works: list[float], seconds: float) -> None:
        self.changes = [0] * len(works)
        for _ in range(int(seconds)):
            for number, (world, work) in enumerate(zip(self.worlds, works, strict=True)):
                before = world.instances
                self.ledger = self.ledger.ended(number)
                world.limit = self.ledger.limit(number)
                world.cycle_s = min(world.cycle_s, 5.0)  # a batch has a limit
                world.run([work], 1.0)
                self.ledger = self.ledger.wanting(number, max(sum(world.memory.wanted), 1))
                self.ledger = self.ledger.begun(number, world.instances)
                world.instances = self.ledger.holders[number].running
                self.changes[number] += world.instances != before
                assert self.ledger.held <= self.ledger.most


@settings(max_examples=4)
@given(st.integers(4, 12), works, works, works)
def test_loads_that_stay_ask_for_nothing_more_and_a_step_changes_the_other_once(
    most: int, first: float, second: float, step: float
) -> None:
    shared = Shared.of(most, 2)
    shared.run([first, second], 40.0)
    shared.run([first, second], 20.0)
    assert shared.changes == [0, 0]
    shared.run([step, second], 40.0)
    assert shared.changes[1] <= 1
    assert shared.changes[0] <= 3
    shared.run([step, second], 20.0)
    assert shared.changes == [0, 0]


def test_what_the_budget_leaves_out_is_said() -> None:
    shared = Shared.of(8, 2)
    shared.run([6.0, 5.0], 60.0)
    assert [world.instances for world in shared.worlds] == [4, 4]
    wanted = [sum(world.memory.wanted) for world in shared.worlds]
    assert wanted == [7, 6]
    for world, count in zip(shared.worlds, wanted, strict=True):
        assert world.memory.stuck.endswith(f"; wanted {count}, the budget leaves 4")
    shared.run([1.0, 5.0], 60.0)
    assert shared.worlds[1].instances >= 6
    assert shared.worlds[1].latency_s <= 2.0
    assert shared.worlds[1].memory.stuck == ""
    (record,) = [one for one in shared.worlds[1].memory.records if "budget" in one["why"]][:1]
    assert record["why"].endswith("the budget leaves 4")


def test_a_spike_that_may_be_shed_is_no_reason_to_take_from_others() -> None:
    goal = LatencyGoal(2.0, error=0.1)
    world = World(goal, 4, most_share=0.9, limit=4)
    world.run([3.0], 30.0)
    world.run([5.0], 6.0)
    assert (sum(world.memory.wanted), world.share > 0) == (4, True)
    world.run([5.0], 20.0)
    assert sum(world.memory.wanted) == 6
    assert world.latency_s <= 2.0, "it sheds for what the budget does not leave"


def seen(instances: int, period_s: float = 1.0) -> tuple[Observation, ...]:
    loads = (InstanceLoad(0.1, 5),) * instances
    return (Observation("a", 0, 0.5, period_s, even(8, instances), loads, np.ones(8)),)


def test_what_a_policy_asked_for_counts_until_it_has_not_asked_for_a_while() -> None:
    asks, silent = Decision([Request(Scale(6), "a")]), Decision()
    asked = AskedInstances().after(seen(4), asks)
    assert asked.instances == 6
    for _ in range(29):
        asked = asked.after(seen(4), silent)
    assert asked.instances == 6
    assert asked.after(seen(4), asks) == AskedInstances(6)
    assert asked.after(seen(4), silent).instances == 4
    few = AskedInstances(6)
    for _ in range(9):
        few = few.after(seen(4, 100.0), silent)
    assert few.instances == 6, "ten batches, however long"
    assert AskedInstances(6).after(seen(6), silent).instances == 6
    assert AskedInstances(6).after(seen(4), replace(silent, wanted=2)).instances == 2
