"""What can be done about latency: each remedy is a value that proposes a setting.

They stand in the order in which the documents take them: what costs nothing first, then what costs
accuracy for a while, then what costs instances. A new remedy is a class here and a place in
`ORDER`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from itertools import product
from typing import Any, ClassVar, Protocol

from tidegate.elastic.auto.case import Case
from tidegate.elastic.auto.forecast import (
    FULL_MEMORY,
    MOST_LOAD,
    LatencyForecast,
    Setting,
    error_at,
)
from tidegate.model.observation import BatchCadence

UNEVEN = 1.15
"""Evening loads is worth it where the busiest instance has so many times the mean."""

SHARES = tuple(step / 20 for step in range(1, 20))
"""What may be shed, in steps of 5 percent."""

MOST_ROWS = 4_000_000
"""No batch is made larger than this: its rows have to fit into memory."""

_OFTEN = (0.5, 0.25, 0.0)
"""Triggers that are tried, in targets: a tuple waits for one, and then for its batch."""

_LARGER = (2, 4, 8)
"""Limits that are tried: so many times the rows that a batch may have now."""


@dataclass(frozen=True)
class RemedyProposal:
    """A setting that a remedy leads to, or why there is none."""

    setting: Setting | None
    missing: str = ""


@dataclass(frozen=True)
class RemedyChoice:
    """A change of the setting, what kind of remedy it is, and why."""

    setting: Setting
    kind: str
    why: str


class CostPart(Enum):
    """A part of what a query costs, which a remedy may act on."""

    INSTANCES = "instances"
    BESIDE = "driver and map tasks"


_OF_INSTANCES = frozenset({CostPart.INSTANCES})


class Remedy(Protocol):
    """One kind of remedy; `kind` is what decisions call it, `acts_on` the costs that it lowers."""

    @property
    def kind(self) -> str: ...

    @property
    def acts_on(self) -> frozenset[CostPart]: ...

    def proposed(self, case: Case) -> RemedyProposal:
        """The setting it leads to: that which holds the target, or as near to it as it comes."""


class ChangePartitioner:
    """Lets a partitioner on standby split the keys that are too much for one instance.

    Only then: parts of a key have to be merged, and to move buckets costs nothing. Instances are
    added with it where the keys, once they are split, are too much for those there are.
    """

    kind: ClassVar = "change partitioner"
    acts_on: ClassVar = _OF_INSTANCES

    def proposed(self, case: Case) -> RemedyProposal:
        if case.seen.splits is None:
            return RemedyProposal(None, "no partitioner of this query is on standby")
        if case.seen.splits:
            return RemedyProposal(None, "keys are split already, where that is cheaper")
        one = max(
            (one for one in case.seen.subqueries if one.split is not None),
            key=lambda one: one.hottest,
        )
        limit = max(one.instances, case.fewest().cost)
        if one.hottest * limit <= UNEVEN:
            return RemedyProposal(None, "no key is too much for one instance")
        split = replace(case.standing, splits=True)
        return RemedyProposal(
            split if one.instances > 1 and case.holds(split) else case.fewest(splits=True)
        )


class EvenLoads:
    """Moves buckets from busy or slow instances to others; nothing is given up for it."""

    kind: ClassVar = "rebalance"
    acts_on: ClassVar = _OF_INSTANCES

    def proposed(self, case: Case) -> RemedyProposal:
        some = [one for one in case.seen.subqueries if not one.even and one.instances > 1]
        uneven = [one.skew * one.capacity(one.instances) / one.instances for one in some]
        if max(uneven, default=1.0) < UNEVEN:
            return RemedyProposal(None, "loads are even")
        stuck = [one.hottest * one.instances for one in case.seen.subqueries if not one.even]
        if max(stuck, default=0.0) * UNEVEN > max(uneven):
            return RemedyProposal(None, "one bucket is the load of an instance")
        return RemedyProposal(replace(case.standing, evened=True))


class ShedShare:
    """Drops a share of the tuples, the smallest that suffices, within the allowance.

    Map tasks read and group a tuple before they drop it.
    """

    kind: ClassVar = "shed"
    acts_on: ClassVar = _OF_INSTANCES

    def proposed(self, case: Case) -> RemedyProposal:
        most, now = case.most_share(), case.seen.share
        if case.goal.error is None:
            return RemedyProposal(None, "no error is allowed")
        if case.seen.shed is None:
            return RemedyProposal(None, "this query cannot shed")
        shares = [share for share in SHARES if now < share <= most]
        if not shares:
            return RemedyProposal(None, "the allowance is used up")
        settings = [replace(case.standing, share=share) for share in shares]
        return RemedyProposal(next(filter(case.holds, settings), settings[-1]))


class AddInstances:
    """As many instances as hold the target, with even loads; nothing is shed any more then."""

    kind: ClassVar = "add instances"
    acts_on: ClassVar = _OF_INSTANCES

    def proposed(self, case: Case) -> RemedyProposal:
        found = case.fewest()
        if found.cost <= case.standing.cost:
            return RemedyProposal(None, _no_more(case, found))
        return RemedyProposal(found)


def _no_more(case: Case, found: Setting) -> str:
    """Why there is no reason to add instances."""
    if case.holds(found):
        return "there are enough"
    if case.seen.cadence.trigger_s >= case.goal.latency_s:
        return "the trigger alone is longer than the target"
    if case.is_undivided(case.standing):
        return "driver and map tasks take the time, more instances would hardly help"
    return "there may be no more"


class AddAndShed:
    """The instances that the work needs, and the smallest share with which a backlog goes in time.

    Where there may be too few instances, the share stays beside the most there may be.
    """

    kind: ClassVar = "add instances and shed"
    acts_on: ClassVar = _OF_INSTANCES

    def proposed(self, case: Case) -> RemedyProposal:
        most, now = case.most_share(), case.seen.share
        if most < SHARES[0]:
            return RemedyProposal(None, "nothing may be shed")
        lean = case.lean()
        if lean.cost < case.standing.cost:
            lean = replace(case.standing, share=0.0)
        # Without more instances a smaller share is no remedy: it would undo the last one.
        least = 0.0 if lean.cost > case.standing.cost else now
        settings = [replace(lean, share=share) for share in SHARES if least <= share <= most]
        found = next(filter(case.holds, settings), settings[-1] if settings else case.standing)
        if (found.counts, found.share) == (case.standing.counts, case.standing.share):
            return RemedyProposal(None, "all of it is done already")
        return RemedyProposal(found)


class ChangeBatches:
    """Starts batches more often where tuples wait for the trigger, or lets them be larger.

    Larger ones help where the fixed cost of many small ones takes the time.
    """

    kind: ClassVar = "change batches"
    acts_on: ClassVar = frozenset({CostPart.BESIDE})

    def proposed(self, case: Case) -> RemedyProposal:
        if case.seen.own_cadence is None:
            return RemedyProposal(None, "batches of this run cannot be changed")
        settings = [replace(case.standing, cadence=cadence) for cadence in _cadences(case)]
        if not settings:
            return RemedyProposal(None, "batches start at once, and are as large as they should be")
        best = min(settings, key=lambda of: _keeps_up(case.forecast(of)))
        return RemedyProposal(next(filter(case.holds, settings), best))


def _keeps_up(expected: LatencyForecast) -> tuple[float, float, float]:
    """Where no setting holds: first that it keeps up at all, then how late it is."""
    return max(expected.load, MOST_LOAD), expected.latency_s, expected.load


def _cadences(case: Case) -> Iterator[BatchCadence]:
    """Other cadences, those that are nearest to the one there is first."""
    now, target_s = case.seen.cadence, case.goal.latency_s
    triggers = [now.trigger_s, *(t * target_s for t in _OFTEN if t * target_s < now.trigger_s)]
    limits: list[int | None] = [now.rows]
    if now.rows is not None:
        larger = [times * now.rows for times in _LARGER]
        limits += [rows for rows in larger if rows <= MOST_ROWS]
    for rows, trigger_s in product(limits, triggers):
        if (trigger_s, rows) != (now.trigger_s, now.rows):
            yield BatchCadence(trigger_s, rows)


ORDER: tuple[Remedy, ...] = (
    ChangePartitioner(),
    EvenLoads(),
    ShedShare(),
    AddInstances(),
    AddAndShed(),
    ChangeBatches(),
)


@dataclass(frozen=True)
class Alternative:
    """A remedy as it was weighed: what it would lead to, or why it was none."""

    kind: str
    setting: Setting | None = None
    expected: LatencyForecast | None = None
    error: float | None = None
    holds: bool = False
    note: str = ""

    def as_dict(self) -> dict[str, Any]:
        if self.setting is None or self.expected is None:
            return {"remedy": self.kind, "note": self.note}
        return {
            "remedy": self.kind,
            **self.setting.as_dict(),
            "error": None if self.error is None else round(self.error, 4),
            "holds": self.holds,
            **self.expected.as_dict(),
            **({"note": self.note} if self.note else {}),
        }


def proposal_of(remedy: Remedy, case: Case) -> RemedyProposal:
    """What a remedy proposes; nothing where a cost that it does not lower takes all the time."""
    found = remedy.proposed(case)
    if found.setting is None or CostPart.BESIDE in remedy.acts_on:
        return found
    beside = case.beside(found.setting)
    if beside <= MOST_LOAD or case.forecast(case.standing).memory > FULL_MEMORY:
        return found
    return RemedyProposal(None, f"{CostPart.BESIDE.value} alone take {beside:.0%} of the time")


def weighed(case: Case, kind: str, proposal: RemedyProposal) -> Alternative:
    """A proposal with what it would lead to."""
    setting = proposal.setting
    if setting is None:
        return Alternative(kind, note=proposal.missing)
    expected = case.forecast(setting)
    holds = expected.holds(case.goal.latency_s)
    return Alternative(kind, setting, expected, error_at(case.seen, setting.share), holds)
