"""Why `auto` does not oscillate, decision by decision: docs/auto.md states what is checked here.

A load that stays has one change after the first at most, because a change leads to a setting that
the machine would leave as it is. So that is what is checked of each change, under loads that go up
and down as they like, and not only how many there are under one that stays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.elastic.auto.world import INTERVAL_S, World
from tidegate.elastic.auto.case import Case
from tidegate.elastic.auto.evidence import Evidence
from tidegate.elastic.auto.forecast import Setting, forecast
from tidegate.elastic.auto.goal import LatencyGoal
from tidegate.elastic.auto.machine import Machine
from tidegate.elastic.auto.memory import APART_S, CALMING_S, HOLD_S, OTHER_WORK, MachineMemory
from tidegate.elastic.auto.remedy import RemedyChoice

EXACT, ALLOWED = LatencyGoal(2.0), LatencyGoal(2.0, error=0.1)
LEFT_S = 90.0
"""For so long a setting is left alone with the evidence that it was chosen for."""

GIVES_BACK = ("remove instances", "shed less")
HOLD_OF_SHARE_S = 4.0
NOTED_S = 2 * INTERVAL_S
"""The work of a batch is noted at the end of its interval."""


def overhead(instances: int) -> float:
    """Each instance makes all of them a tenth slower than one."""
    return 1 + 0.1 * (instances - 1)


def negative(instances: int) -> float:
    """More than two do less than two, and all of them the same."""
    return 1.0 if instances <= 2 else 1.5 * instances / 2


@dataclass(frozen=True)
class Change:
    """A change of the machine: what it saw and remembered, and what the work had been."""

    seen: Evidence
    chosen: RemedyChoice
    after: MachineMemory
    works: tuple[tuple[float, float], ...]

    @property
    def before(self) -> Setting:
        return Setting(self.seen.counts, self.seen.share)

    @property
    def added(self) -> int:
        return self.chosen.setting.cost - self.before.cost


class Watched(World):
    """A world that keeps what each change was decided from."""

    def run_levels(self, levels: list[float], seconds: float) -> list[Change]:
        found: list[Change] = []
        works: list[tuple[float, float]] = []
        for level in levels:
            until_s = self.at_s + seconds
            while self.at_s < until_s:
                count = len(self.changes)
                self.run([level], INTERVAL_S / 5)
                works.append((self.at_s, level))
                if len(self.changes) > count:
                    chosen = self.changes[-1][1]
                    found.append(Change(self.seen, chosen, self.memory, tuple(works)))
        return found


def with_setting(seen: Evidence, to: Setting, at_s: float) -> Evidence:
    """The same evidence after some time, with another setting, and late as was forecast for it."""
    subqueries = tuple(
        replace(one, instances=count) for one, count in zip(seen.subqueries, to.counts, strict=True)
    )
    shed = None if seen.shed is None else replace(seen.shed, share=to.share)
    later = replace(seen, at_s=at_s, subqueries=subqueries, shed=shed)
    backlog_s = min(seen.backlog_s, settled_s(later, to))
    later = replace(later, backlog_s=backlog_s)
    return replace(later, latency_s=forecast(later, to, 6.0).latency_s)


def settled_s(seen: Evidence, to: Setting) -> float:
    """The input that waits in a query that keeps up: what came in a batch."""
    of = forecast(replace(seen, backlog_s=0.0), to, 60.0)
    return of.latency_s - max(one.fixed_s for one in seen.subqueries)


def left_alone(goal: LatencyGoal, change: Change) -> list[RemedyChoice]:
    """What the machine does about the setting that it has just chosen, if nothing else happens."""
    memory, to, at_s = change.after, change.chosen.setting, change.seen.at_s
    found = []
    while at_s < change.seen.at_s + LEFT_S:
        at_s += INTERVAL_S
        memory, chosen = Machine(goal).handle(memory, with_setting(change.seen, to, at_s))
        if chosen is not None:
            found.append(chosen)
            to = chosen.setting
    return found


def holds(goal: LatencyGoal, change: Change) -> bool:
    """Whether the setting was chosen to hold the target, and not only to come nearer to it."""
    return change.after.stuck == "" and change.chosen.kind != "undo"


levels = st.lists(st.floats(0.1, 20.0), min_size=1, max_size=4)
allowances = st.sampled_from([(EXACT, None), (ALLOWED, 0.9)])


@settings(max_examples=25)
@given(levels, st.integers(1, 24), allowances)
def test_a_setting_that_was_chosen_is_left_alone(
    works: list[float], instances: int, allowance: tuple[LatencyGoal, float | None]
) -> None:
    """But that which is for a while: a share, and instances for a backlog. These go once."""
    goal, most = allowance
    made = Watched(goal, instances, most_share=most)
    for change in made.run_levels(works, 40.0):
        if not holds(goal, change):
            continue
        again = left_alone(goal, change)
        if not change.chosen.setting.share and not change.after.surplus:
            assert not again, (change.chosen, again)
        assert len(again) <= 1, (change.chosen, again)


@settings(max_examples=15)
@given(levels, st.integers(1, 24), allowances)
def test_what_is_given_back_was_needed_by_no_load_of_the_time_it_was_kept_for(
    works: list[float], instances: int, allowance: tuple[LatencyGoal, float | None]
) -> None:
    goal, most = allowance
    made = Watched(goal, instances, most_share=most)
    for change in made.run_levels(works, 40.0):
        if change.chosen.kind not in GIVES_BACK:
            continue
        kept_s = HOLD_S if change.added and not surplus(change) else HOLD_OF_SHARE_S
        since_s = change.seen.at_s - kept_s + NOTED_S
        highest = max(work for at_s, work in change.works if at_s > since_s)
        calm = replace(change.seen, backlog_s=0.0)
        assert Case(goal, calm, (highest,)).holds(change.chosen.setting)


def surplus(change: Change) -> bool:
    """Whether what goes had come for a backlog alone."""
    return change.chosen.why.startswith("the backlog is worked off")


SLOWDOWNS: list[Callable[[int], float]] = [lambda instances: 1.0, overhead, negative]


@settings(max_examples=10)
@given(st.lists(st.floats(0.1, 8.0), min_size=1, max_size=4), st.integers(1, 6), allowances)
@pytest.mark.parametrize("slowdown", SLOWDOWNS, ids=["scales", "overhead", "negative"])
def test_how_often_it_may_turn_back_holds_for_any_query(
    slowdown: Callable[[int], float],
    works: list[float],
    instances: int,
    allowance: tuple[LatencyGoal, float | None],
) -> None:
    """Instances go only 24 s after they came, those for a backlog once, and what was undone stays.

    Also where they do not scale, so that forecasts are wrong: this bounds what the machine does
    while it finds that out.
    """
    goal, most = allowance
    made = Watched(goal, instances, most=12, most_share=most, slowdown=slowdown)
    grown_s, owed, changed_s, undone = -HOLD_S, False, -APART_S, dict[str, tuple[float, float]]()
    for change in made.run_levels(works, 60.0):
        at_s, kind, work = change.seen.at_s, change.chosen.kind, change.seen.unshed[0]
        assert at_s - changed_s >= APART_S
        changed_s = at_s
        if kind == "undo":
            undone["add instances" if change.added < 0 else "shed"] = at_s, work
            continue
        if change.added > 0:
            since_s, with_work = undone.get("add instances", (-CALMING_S, work))
            other = abs(work - with_work) > OTHER_WORK * with_work
            assert other or at_s - since_s >= CALMING_S
            grown_s, owed = at_s, True
        if change.added < 0 and surplus(change):
            assert owed, "no more than was added for a backlog, and once"
            owed = False
        elif change.added < 0:
            assert at_s - grown_s >= HOLD_S
