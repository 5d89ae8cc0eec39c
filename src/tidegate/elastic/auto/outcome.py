"""Judges what came of a change: its outcome, its regret, and whether it is to be undone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tidegate.elastic.auto.case import Case
from tidegate.elastic.auto.evidence import Evidence
from tidegate.elastic.auto.forecast import Setting, change_text
from tidegate.elastic.auto.memory import (
    APART_S,
    MOST_CAUTION,
    Distrust,
    MachineMemory,
    PendingOutcome,
)
from tidegate.elastic.auto.remedy import Alternative, RemedyChoice

_LEAST_JUDGED_S = 5.0
"""A change is judged no earlier, and no earlier than after three targets."""

_WORSE = 1.25
"""An outcome so many times the upper end of the forecast was a mistake."""

_IN_VAIN = 1.02
"""What brings the load down by less has not helped."""

_WORTH = 0.1
"""Shedding a tuple must save at least this part of what the tuple costs."""

_JUDGED = ("change partitioner", "rebalance", "change batches")
"""Remedies that may make it worse, as may all that add instances; whether to shed is in vain shows
before that."""

Judged = tuple[MachineMemory, RemedyChoice | None]


def judge(memory: MachineMemory, case: Case) -> Judged:
    """What came of the last change, once it has had its time; back where it was a mistake."""
    if case.seen.at_s - memory.changed_s >= APART_S and _is_shed_in_vain(case):
        return _shed_no_more(memory, case)
    pending, seen, target_s = memory.pending, case.seen, case.goal.latency_s
    if pending is None:
        return memory, None
    after_s = seen.at_s - pending.at_s
    if not pending.after.stands(seen):
        if after_s < 2 * target_s:
            return memory, None  # it has not been taken yet
        return replace(memory, pending=None), None  # somebody else has changed it
    if seen.latency_s is None:
        return memory, None
    # A batch must have begun after the change, or it tells of what was before; and where it does
    # not show the load, what it answers must have come after it too.
    since_s = seen.latency_s if seen.measured_load is None else seen.backlog_s
    if after_s < max(3 * target_s, _LEAST_JUDGED_S, since_s):
        return memory, None
    memory = with_outcome(memory, case)
    if not _was_missed(pending, case):
        return memory, None
    if not _was_mistake(pending, case):
        return _more_cautious(memory, case), None
    why = (
        f"{pending.kind} was expected to give {pending.high_s:.1f} s at most and gave "
        f"{seen.latency_s:.1f} s: back, {change_text(pending.after, pending.before)}"
    )
    kind = "add instances" if pending.after.cost > pending.before.cost else pending.kind
    return _distrusting(memory, seen, kind), RemedyChoice(pending.before, "undo", why)


def with_outcome(memory: MachineMemory, case: Case) -> MachineMemory:
    """The newest record with its outcome: as it is judged, or before the next change hides it."""
    pending, seen = memory.pending, case.seen
    if pending is None or seen.latency_s is None:
        return replace(memory, pending=None)
    needed, late_s = case.fewest(), max(seen.latency_s - case.goal.latency_s, 0.0)
    outcome: Mapping[str, Any] = {
        "after_s": round(seen.at_s - pending.at_s, 1),
        "latency_s": round(seen.latency_s, 4),
        "held": late_s == 0.0,
        "instances_needed": list(needed.counts),
    }
    regret = {
        "instances": max(pending.after.cost - needed.cost, 0),
        "latency_s": round(late_s, 4),
    }
    *older, newest = memory.records
    told = {**newest, "outcome": outcome, "regret": regret}
    return replace(memory, pending=None, records=(*older, told))


def _was_missed(pending: PendingOutcome, case: Case) -> bool:
    """Whether it is much later than was forecast, and the load is no more than it was."""
    seen = case.seen
    assert seen.latency_s is not None
    return (
        pending.kind != "undo"
        and seen.latency_s > case.goal.latency_s
        and seen.latency_s > _WORSE * pending.high_s
        and sum(seen.unshed) <= 1.1 * pending.work
    )


def _was_mistake(pending: PendingOutcome, case: Case) -> bool:
    """Whether a remedy has made it worse, and not the load or something else.

    What the setting before it would need of the time now, and what it was seen to need, must be
    less than what is needed; all of it as if nothing were shed. More instances that do next to
    nothing are one too.
    """
    seen, load = case.seen, case.unshed_load
    assert seen.latency_s is not None
    adds = pending.after.cost > pending.before.cost
    if load is None or not (adds or pending.kind in _JUDGED):
        return False
    before = max(case.forecast(replace(pending.before, share=0.0)).load, pending.load)
    rose = seen.latency_s > 1.1 * pending.latency_s
    return rose and before < load * (_IN_VAIN if adds else 1.0)


def _more_cautious(memory: MachineMemory, case: Case) -> MachineMemory:
    """Where it has helped, but less than was thought: there is so many times as much to do."""
    return replace(memory, caution=min(memory.caution * case.misjudged, MOST_CAUTION))


def _is_shed_in_vain(case: Case) -> bool:
    """Whether batches have shown that to shed saves next to nothing, or costs more.

    So it is where the driver and map tasks are what takes the time: they read a tuple first.
    """
    seen = case.seen
    if seen.share <= 0 or not seen.saving_known:
        return False
    whole = case.forecast(replace(case.standing, share=0.0)).load
    return whole - case.forecast(case.standing).load < _WORTH * seen.share * whole


def _shed_no_more(memory: MachineMemory, case: Case) -> Judged:
    seen = case.seen
    memory = _distrusting(with_outcome(memory, case), seen, "shed")
    to = Setting(seen.counts)
    why = f"to shed does not make batches shorter: back, {change_text(case.standing, to)}"
    return memory, RemedyChoice(to, "undo", why)


def _distrusting(memory: MachineMemory, seen: Evidence, kind: str) -> MachineMemory:
    of = Distrust(seen.at_s, sum(seen.unshed))
    return replace(memory, distrusted={**memory.distrusted, kind: of})


def distrust_of(memory: MachineMemory, one: Alternative, stands: Setting) -> Distrust | None:
    """Why a remedy is not to be used: of its own kind, or of what it does among other things."""
    kinds = [one.kind]
    if one.setting is not None and one.kind == "add instances and shed":
        kinds = ["add instances"] * (one.setting.cost > stands.cost)
        kinds += ["shed"] * (one.setting.share > stands.share)
    return next((of for kind in kinds if (of := memory.distrusted.get(kind)) is not None), None)
