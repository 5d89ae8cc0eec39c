"""Decides what to do about latency, from the evidence of an interval and what it remembers.

Pure: no clock, no Spark. The machine does one thing at a time and waits for what comes of it.

Why it does not oscillate. A setting is sized so that it holds the target also at the upper end of
what the work may be; it is left only when the middle of the forecast misses the target. Between the
two lies a range of loads in which nothing is done. Instances go only if fewer hold the target, with
a margin more, at the most work of the whole time for which they must be kept. So a load that stays
the same asks for one change, and for a second one where the first had a backlog to work off
(tests/elastic/auto/test_machine.py has both as properties).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidegate.elastic.auto.case import Case
from tidegate.elastic.auto.demand import FEWER, PATIENCE_S, RISING, STEP_S, cut_down, with_demand
from tidegate.elastic.auto.evidence import Evidence
from tidegate.elastic.auto.forecast import FULL_MEMORY, Setting, change_text, forecast
from tidegate.elastic.auto.goal import LatencyGoal
from tidegate.elastic.auto.memory import (
    APART_S,
    CALM_S,
    CALMING_S,
    HOLD_S,
    LONG_AGO,
    MOST_CAUTION,
    MOST_HOLD_S,
    MOST_RECORDS,
    MachineMemory,
    PendingOutcome,
)
from tidegate.elastic.auto.outcome import distrust_of, judge, with_outcome
from tidegate.elastic.auto.remedy import (
    ORDER,
    SHARES,
    Alternative,
    RemedyChoice,
    RemedyProposal,
    proposal_of,
    weighed,
)

AHEAD_S = 10.0
"""How far ahead work is foreseen, while windows fill."""

_SETTLED_S = 20.0
"""A share is not lowered for a smaller one before it has stood for so long."""

_SOON_S = 60.0
"""Instances that were missed within so long should not have gone."""

_BETTER = 0.9
"""Where nothing holds the target, only what brings latency or the load down to this part of it is
done."""

_MUCH_BESIDE = 0.2
"""From this part of the time on, what is beside instances is named."""

_UNPAID = {"change batches": "own batches", "change partitioner": "hash"}
"""Remedies that cost no instances, and are kept and given back as those are."""

_MUCH_MORE = 1.5
"""By so much at most is the work taken to be more than was thought, for one such latency."""

_LATE_TARGETS = 4.0
"""Latency that is above the target for so many times the target, though the forecast is below."""


Handled = tuple[MachineMemory, RemedyChoice | None]


@dataclass(frozen=True)
class Machine:
    """The controller of one query; `handle` is called at the end of each clean interval."""

    goal: LatencyGoal

    def handle(self, memory: MachineMemory, seen: Evidence) -> Handled:
        """What to change after an interval, most often nothing, and what to remember."""
        memory = self._noted(memory, seen)
        judged = self._case(memory, seen, tuple(one.highest for one in seen.subqueries))
        memory, undo = judge(memory, judged)
        before = memory.last
        if seen.limit is not None:
            memory = with_demand(self.goal, memory, seen, self._soon(memory, seen, before))
        memory = replace(memory, last=seen.unshed)
        if undo is not None:
            back = weighed(judged, undo.kind, RemedyProposal(undo.setting))
            return self._taken(memory, seen, undo, (*self._alternatives(memory, judged), back))
        if seen.at_s - memory.changed_s < APART_S:
            return memory, None
        allowed = self._case(memory, seen, seen.unshed).most_share()
        if seen.share > allowed:
            return self._within_error(memory, seen, allowed)
        if self._misses(memory, seen, before):
            return self._remedied(memory, seen, before)
        memory = replace(memory, moving=0, stuck="")
        return self._given_back(memory, seen)

    def _noted(self, memory: MachineMemory, seen: Evidence) -> MachineMemory:
        """With the work of the interval; what was learnt from mistakes fades."""
        half = 0.5 ** (max(seen.at_s - memory.faded_s, 0.0) / CALMING_S)
        late = seen.latency_s is not None and seen.latency_s > self.goal.latency_s
        late_s = memory.late_s if memory.late_s != LONG_AGO else seen.at_s
        memory = replace(
            memory,
            works=memory.noted(seen.at_s, seen.unshed),
            hold_s=HOLD_S + (memory.hold_s - HOLD_S) * half,
            caution=1 + (memory.caution - 1) * half,
            faded_s=seen.at_s,
            late_s=late_s if late else LONG_AGO,
            split_s=seen.at_s if _splits_now(seen) else memory.split_s,
            behind=_behind(self.goal, seen) if late else "",
            distrusted={k: of for k, of in memory.distrusted.items() if of.lasts(seen)},
        )
        changed_s = max(memory.late_s, memory.changed_s)
        if memory.stuck or not late or seen.at_s - changed_s < _LATE_TARGETS * self.goal.latency_s:
            return memory
        # It is late for longer than any forecast said: there is more work than was thought.
        times = min(max(self._case(memory, seen, seen.unshed).misjudged, 1.05), _MUCH_MORE)
        return replace(memory, caution=min(memory.caution * times, MOST_CAUTION), late_s=seen.at_s)

    def _misses(self, memory: MachineMemory, seen: Evidence, before: tuple[float, ...]) -> bool:
        """Whether the target is missed soon, or state fills the memory, if all stays as it is."""
        horizon_s, work = 3 * self.goal.latency_s, self._soon(memory, seen, before)
        found = forecast(seen, Setting(seen.counts, seen.share), horizon_s, work=work)
        return found.latency_s > self.goal.latency_s or found.memory > FULL_MEMORY

    def _soon(
        self, memory: MachineMemory, seen: Evidence, before: tuple[float, ...]
    ) -> tuple[float, ...]:
        """The work that is likely within the horizon; a single interval counts half."""
        part = min(3 * self.goal.latency_s / AHEAD_S, 1.0)
        work = []
        for one, last in zip(seen.subqueries, before or seen.unshed, strict=True):
            now = one.work
            work.append(((now + last) / 2 + part * max(one.ahead - now, 0.0)) * memory.caution)
        return tuple(work)

    def _remedied(
        self, memory: MachineMemory, seen: Evidence, before: tuple[float, ...]
    ) -> Handled:
        rising = bool(before) and sum(seen.unshed) > RISING * sum(before)
        if rising and not memory.moving and seen.backlog_s <= self._drained_s / 2:
            return replace(memory, moving=1), None  # how far it rises is seen in the next one
        memory = replace(memory, moving=0)
        case = self._case(memory, seen, tuple(one.highest for one in seen.subqueries))
        every = self._alternatives(memory, case)
        chosen = _cheapest(case, every, lasting=self._lasts(memory, seen))
        if chosen is None or chosen.setting is None:
            return replace(memory, stuck=_stuck(memory, case)), None
        memory = replace(memory, stuck="" if chosen.holds else _stuck(memory, case))
        stands = case.forecast(case.standing)
        late = "never" if stands.latency_s > 1e6 else f"{stands.latency_s:.1f} s"
        why = (
            f"work for {sum(case.work):.2f} instances{_doubt(seen)}{_beside(seen)}, slowest "
            f"tuple in {case.horizon_s:g} s {late}, target {self.goal.latency_s:g} s"
            f"{_full(stands.memory)}: {chosen.kind}, {_change(seen, chosen.setting)}"
            f"{cut_down(memory, seen)}"
        )
        return self._taken(memory, seen, RemedyChoice(chosen.setting, chosen.kind, why), every)

    def _within_error(self, memory: MachineMemory, seen: Evidence, allowed: float) -> Handled:
        """Less is shed where windows have shown a larger error than is allowed."""
        to = Setting(seen.counts, max((share for share in SHARES if share <= allowed), default=0.0))
        case = self._case(memory, seen, seen.unshed)
        why = f"the error allows to shed {allowed:.0%}"
        return self._given(memory, seen, case, to, "shed less", why)

    def _lasts(self, memory: MachineMemory, seen: Evidence) -> bool:
        return seen.share > 0 and seen.at_s - memory.shed_s >= PATIENCE_S

    def _case(self, memory: MachineMemory, seen: Evidence, work: tuple[float, ...]) -> Case:
        return Case(self.goal.within(seen.limit), seen, work, memory.caution)

    def _alternatives(self, memory: MachineMemory, case: Case) -> tuple[Alternative, ...]:
        """Every remedy with what it would lead to, and first of all to leave it as it is."""
        found = [weighed(case, "nothing", RemedyProposal(case.standing))]
        for remedy in ORDER:
            one = weighed(case, remedy.kind, proposal_of(remedy, case))
            distrusted = distrust_of(memory, one, case.standing)
            if distrusted is not None:
                note = f"made it worse {case.seen.at_s - distrusted.at_s:.0f} s ago"
                one = Alternative(remedy.kind, note=note)
            found.append(one)
        return tuple(found)

    def _given_back(self, memory: MachineMemory, seen: Evidence) -> Handled:
        """What is not needed any more: what costs accuracy, then the others, the last one first."""
        if seen.share > 0:
            return self._unshed(memory, seen)
        if seen.own_cadence is not None and seen.cadence != seen.own_cadence:
            memory, chosen = self._own_batches(memory, seen)
            if chosen is not None:
                return memory, chosen
        if memory.surplus:
            if seen.backlog_s >= self._drained_s:
                return memory, None
            memory = replace(memory, surplus=False)
            why = "the backlog is worked off"
            return self._with_fewer(memory, seen, memory.highest(seen.at_s - CALM_S), 1.0, why)
        since_s = seen.at_s - memory.hold_s
        if memory.grown_s > since_s:
            return memory, None
        highest = memory.highest(since_s)
        if sum(highest) > RISING * sum(memory.highest(since_s + STEP_S)):
            return memory, None  # the end of a higher load, which is forgotten in a moment
        why = f"the most work of {memory.hold_s:.0f} s was for {sum(highest):.2f} instances"
        fewer = self._with_fewer(memory, seen, highest, FEWER, why)
        return fewer if fewer[1] is not None else self._by_hash(memory, seen, since_s)

    def _own_batches(self, memory: MachineMemory, seen: Evidence) -> Handled:
        """Batches as the user asked for them, once these hold the target again."""
        since_s = seen.at_s - memory.hold_s
        if memory.grown_s > since_s:
            return memory, None
        case = self._case(memory, seen, tuple(of * FEWER for of in memory.highest(since_s)))
        own = Setting(seen.counts, cadence=seen.own_cadence)
        if not case.holds(own):
            return memory, None
        why = f"the target was held for {memory.hold_s:.0f} s, and is with the batches asked for"
        return self._given(memory, seen, case, own, "own batches", why)

    def _by_hash(self, memory: MachineMemory, seen: Evidence, since_s: float) -> Handled:
        """Keys by hash again, once the partitioner has gone back to that by itself.

        It measures what hash would do, and that is not to be known from instances that share keys.
        """
        if not seen.splits or memory.split_s > since_s:
            return memory, None
        case = self._case(memory, seen, memory.highest(since_s))
        why = f"no key was split for {memory.hold_s:.0f} s"
        return self._given(memory, seen, case, Setting(seen.counts, splits=False), "hash", why)

    def _with_fewer(
        self,
        memory: MachineMemory,
        seen: Evidence,
        work: tuple[float, ...],
        margin: float,
        why: str,
    ) -> Handled:
        """The fewest instances for this work and a margin, where that is fewer than there are."""
        ahead = (one.highest for one in seen.subqueries)
        case = self._case(memory, seen, tuple(max(a * margin, b) for a, b in zip(work, ahead)))
        found = case.fewest()
        if found.cost >= case.standing.cost or not case.holds(found):
            return memory, None
        # While a backlog is worked off, fewer suffice each second: one switch at its end will do.
        if found.cost > case.lean().cost:
            return memory, None
        return self._given(memory, seen, case, found, "remove instances", why)

    @property
    def _drained_s(self) -> float:
        """A backlog of less input than this is that of a query that keeps up."""
        return 0.4 * self.goal.latency_s

    def _unshed(self, memory: MachineMemory, seen: Evidence) -> Handled:
        """All tuples again: when the spike is over, or with more instances when it lasts."""
        calm_s = max(seen.at_s - CALM_S, memory.shed_s)
        recent = tuple(of * FEWER for of in memory.highest(calm_s))
        case = self._case(memory, seen, recent)
        whole = Setting(seen.counts)
        if seen.at_s - memory.shed_s >= CALM_S and case.holds(whole):
            why = f"the instances can do it all again for {CALM_S:g} s"
            return self._given(memory, seen, case, whole, "shed less", why)
        if seen.at_s - memory.changed_s < CALM_S:
            return memory, None
        case = self._case(memory, seen, tuple(one.highest for one in seen.subqueries))
        if not self._lasts(memory, seen) or case.holds(whole):
            return memory, None
        every = self._alternatives(memory, case)
        added = [one for one in every if one.kind in ("add instances", "add instances and shed")]
        for one in added:
            if one.setting is None or not one.holds or one.setting.cost <= case.standing.cost:
                continue
            if one.setting.share < seen.share:
                why = f"the spike has lasted {seen.at_s - memory.shed_s:.0f} s: "
                why += f"{one.kind}, {_change(seen, one.setting)}"
                why += cut_down(memory, seen)
                return self._taken(memory, seen, RemedyChoice(one.setting, one.kind, why), every)
        return self._shed_less(memory, seen)

    def _shed_less(self, memory: MachineMemory, seen: Evidence) -> Handled:
        """The smallest share that suffices, where there may be no more instances.

        Once a backlog is gone: the share does not follow it down.
        """
        settled = seen.at_s - memory.changed_s >= _SETTLED_S
        if not settled or seen.backlog_s >= self._drained_s:
            return memory, None
        recent = memory.highest(seen.at_s - memory.hold_s)
        case = self._case(memory, seen, tuple(of * FEWER for of in recent))
        smaller = (replace(case.standing, share=of) for of in SHARES if of < seen.share)
        found = next(filter(case.holds, smaller), None)
        if found is None:
            return memory, None
        why = f"a smaller share would have sufficed for {memory.hold_s:.0f} s"
        return self._given(memory, seen, case, found, "shed less", why)

    def _given(
        self, memory: MachineMemory, seen: Evidence, case: Case, to: Setting, kind: str, why: str
    ) -> Handled:
        text = f"{why}: {_change(seen, to)}"
        stays = weighed(case, "nothing", RemedyProposal(case.standing))
        every = (stays, weighed(case, kind, RemedyProposal(to)))
        return self._taken(memory, seen, RemedyChoice(to, kind, text), every)

    def _taken(
        self,
        memory: MachineMemory,
        seen: Evidence,
        chosen: RemedyChoice,
        every: tuple[Alternative, ...],
    ) -> Handled:
        """With a change that is asked for: the next one waits for what comes of it."""
        after, at_s = chosen.setting, seen.at_s
        before = after.undone(seen)
        work = tuple(one.highest for one in seen.subqueries)
        case = self._case(memory, seen, work)
        if memory.pending is not None:
            memory = with_outcome(memory, case)
        expected = case.forecast(after)
        more = after.cost > before.cost or chosen.kind in _UNPAID
        fewer = after.cost < before.cost or chosen.kind in _UNPAID.values()
        grown = after.cost > before.cost
        lean = case.lean(splits=after.splits) if grown else after
        record = {
            "batch": seen.batch,
            "at_s": round(at_s, 1),
            "remedy": chosen.kind,
            "why": chosen.why,
            "before": before.as_dict(),
            "after": after.as_dict(),
            "predicted": expected.as_dict(),
            "alternatives": [one.as_dict() for one in every],
            "outcome": None,
            "regret": None,
        }
        missed = more and at_s - memory.shrunk_s < _SOON_S and chosen.kind != "undo"
        return (
            replace(
                memory,
                changed_s=at_s,
                grown_s=at_s if more else memory.grown_s,
                shrunk_s=at_s if fewer else memory.shrunk_s,
                shed_s=at_s if after.share > 0 and before.share == 0 else memory.shed_s,
                surplus=grown and after.share == 0 and lean.cost < after.cost,
                hold_s=min(memory.hold_s * 2, MOST_HOLD_S) if missed else memory.hold_s,
                pending=PendingOutcome(
                    at_s=at_s,
                    kind=chosen.kind,
                    before=before,
                    after=after,
                    high_s=min(expected.high_s, 1e6),
                    latency_s=min(seen.latency_s or 0.0, 1e6),
                    work=sum(seen.unshed),
                    load=case.unshed_load or 0.0,
                ),
                records=(*memory.records, record)[-MOST_RECORDS:],
            ),
            chosen,
        )


def _cheapest(case: Case, every: tuple[Alternative, ...], *, lasting: bool) -> Alternative | None:
    """The first remedy in the documents' order that suffices; else what helps most.

    A spike that lasts is no longer one to shed for.
    """
    stands, *others = every
    usable = [one for one in others if one.setting is not None]
    if lasting and any(one.holds for one in usable if one.kind != "shed"):
        usable = [one for one in usable if one.kind != "shed"]
    for one in usable:
        if one.holds:
            return one
    assert stands.expected is not None
    now = stands.expected
    helpful = [one for one in usable if one.expected and one.expected.helps(now, _BETTER)]
    return min(helpful, key=_latency_s, default=None)


def _latency_s(one: Alternative) -> tuple[float, float, float]:
    assert one.expected is not None
    return one.expected.drain_s, one.expected.latency_s, one.expected.load


def _splits_now(seen: Evidence) -> bool:
    return any(one.split is not None and one.split.splits for one in seen.subqueries)


def _doubt(seen: Evidence) -> str:
    return f" (give or take {seen.doubt:.0%})"


def _change(seen: Evidence, to: Setting) -> str:
    return change_text(to.undone(seen), to)


def _full(memory: float) -> str:
    """How full the memory of an instance is, where that is a reason."""
    return f", state fills {memory:.0%} of the memory of an instance" * (memory > FULL_MEMORY)


def _beside(seen: Evidence) -> str:
    """What instances cannot take over, where that is much."""
    beside = max(one.beside for one in seen.subqueries)
    return "" if beside < _MUCH_BESIDE else f", driver and map tasks {beside:.0%} of the time"


def _behind(goal: LatencyGoal, seen: Evidence) -> str:
    """How late it was; what is said where the target can be held, and is not yet."""
    return (
        f"the slowest tuple took {seen.latency_s:.1f} s, above the target of {goal.latency_s:g} s; "
        f"input of {seen.backlog_s:.1f} s waits"
    )


def _stuck(memory: MachineMemory, case: Case) -> str:
    """Why the target cannot be held, or state does not fit."""
    full = case.forecast(case.standing).memory
    if full > FULL_MEMORY:
        return (
            f"state fills {full:.0%} of the memory of an instance, and there may be no more "
            f"instances{cut_down(memory, case.seen)}: raise --memory-limit or COST, or shorten "
            f"the windows"
        )
    most = case.goal.cost or sum(one.most for one in case.seen.subqueries)
    work = sum(case.work) * case.caution
    shed = case.most_share()
    allowed = f" and {shed:.0%} may be shed" if shed else ", and nothing may be shed"
    waits_s = case.seen.backlog_s
    waits = f"; input of {waits_s:,.0f} s waits" if waits_s > case.horizon_s else ""
    return (
        f"the target of {case.goal.latency_s:g} s cannot be held: there is work for {work:.2f} "
        f"instances{_beside(case.seen)}, there may be {most}{allowed}{waits}"
        f"{_worse(memory, case.seen)}{cut_down(memory, case.seen)}"
    )


def _worse(memory: MachineMemory, seen: Evidence) -> str:
    """Where more instances have not helped, and are not tried again soon."""
    of = memory.distrusted.get("add instances")
    return "" if of is None else f"; more made it worse {seen.at_s - of.at_s:.0f} s ago"
