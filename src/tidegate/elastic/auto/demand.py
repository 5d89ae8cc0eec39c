"""What a query under a budget would have without it: its demand, which the budget is divided by.

A demand is a setting that does not stand. It is left and lowered as one that stands is: raised when
the middle of the forecast misses the target, then to what holds it at the upper end, and lowered
when fewer would have done all work of the time for which instances are kept. It depends on the work
alone, not on what the budget leaves or what waits because that is too little, so that the demands
of two queries do not answer each other. A spike that may be shed is not one to ask others for.
"""

from __future__ import annotations

from dataclasses import replace

from tidegate.elastic.auto.case import Case
from tidegate.elastic.auto.evidence import Evidence
from tidegate.elastic.auto.forecast import Setting
from tidegate.elastic.auto.goal import LatencyGoal
from tidegate.elastic.auto.memory import LONG_AGO, MachineMemory
from tidegate.elastic.budget.ledger import cut_text

PATIENCE_S = 20.0
"""A spike is short for so long: then instances take the place of shedding."""

RISING = 1.15
"""Work that is so many times that of the interval before is still on its way up."""

FEWER = 1.03
"""Fewer instances must hold the target with so many times the work."""

STEP_S = 4.0
"""A load that was higher only so long ago, of the time that counts, is not one to size by."""


def with_demand(
    goal: LatencyGoal, memory: MachineMemory, seen: Evidence, soon: tuple[float, ...]
) -> MachineMemory:
    """After an interval of a query that has a budget; `soon` is the work that is likely."""
    if len(memory.wanted) != len(seen.counts):
        return replace(memory, wanted=seen.counts, raised_s=seen.at_s, lacking_s=LONG_AGO)
    if "add instances" in memory.distrusted:
        return replace(memory, wanted=seen.counts)  # more of them have made it worse
    calm = replace(seen, backlog_s=0.0)
    stands = Setting(memory.wanted, evened=True)
    likely = Case(goal, calm, soon)  # with the caution in it
    if likely.forecast(stands).latency_s > goal.latency_s:
        return _raised(goal, memory, calm)
    return _lowered(goal, replace(memory, lacking_s=LONG_AGO), calm)


def cut_down(memory: MachineMemory, seen: Evidence) -> str:
    """What to add to a reason where the budget leaves fewer instances than are wanted."""
    wanted = sum(memory.wanted)
    if seen.limit is None or wanted <= seen.limit:
        return ""
    return f"; {cut_text(wanted, seen.limit)}"


def _raised(goal: LatencyGoal, memory: MachineMemory, seen: Evidence) -> MachineMemory:
    work = tuple(one.highest for one in seen.subqueries)
    case = Case(goal, seen, work, memory.caution)
    since_s = seen.at_s if memory.lacking_s == LONG_AGO else memory.lacking_s
    memory = replace(memory, lacking_s=since_s)
    if case.most_share() > 0 and seen.at_s - since_s < PATIENCE_S:
        return memory
    found = case.lean()
    if found.cost <= sum(memory.wanted):
        return memory
    return replace(memory, wanted=found.counts, raised_s=seen.at_s)


def _lowered(goal: LatencyGoal, memory: MachineMemory, seen: Evidence) -> MachineMemory:
    since_s = seen.at_s - memory.hold_s
    highest = memory.highest(since_s)
    ends = sum(highest) > RISING * sum(memory.highest(since_s + STEP_S))
    if memory.raised_s > since_s or ends:
        return memory
    ahead = (one.highest for one in seen.subqueries)
    work = tuple(max(of * FEWER, now) for of, now in zip(highest, ahead, strict=True))
    case = Case(goal, seen, work, memory.caution)
    found = case.lean()
    if found.cost >= sum(memory.wanted) or not case.holds(found):
        return memory
    return replace(memory, wanted=found.counts)
