"""What can be done about latency: each remedy is a value that proposes a setting.

They stand in the order in which the documents take them: what costs nothing first, then what costs
accuracy for a while, then what costs instances. A new remedy is a class here and a place in
`ORDER`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import Any, ClassVar, Protocol

from tidegate.elastic.auto.evidence import Evidence
from tidegate.elastic.auto.goal import LatencyGoal
from tidegate.elastic.auto.setting import LatencyForecast, Setting, error_at, forecast

UNEVEN = 1.15
"""Balancing is worth it where the busiest instance has so many times the mean."""

FIRST_SHARE = 0.5
"""No more is shed before a window has shown what error that makes."""

SHARES = tuple(step / 20 for step in range(1, 20))
"""What may be shed, in steps of 5 percent."""

HARDLY = 0.1
"""Where instances have less than this part of the load to divide, more of them hardly help."""

DRAIN_TARGETS = 3.0
"""Within so many times the target a remedy has to have brought latency below it."""


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


@dataclass(frozen=True)
class Case:
    """What is to be remedied: the goal, the evidence, and the setting that stands.

    `work` is that of each subquery to be ready for, `caution` how many times as much as that counts
    because an earlier forecast was too good.
    """

    goal: LatencyGoal
    seen: Evidence
    work: tuple[float, ...]
    caution: float = 1.0

    @property
    def standing(self) -> Setting:
        return Setting(self.seen.counts, self.seen.share)

    @property
    def horizon_s(self) -> float:
        return DRAIN_TARGETS * self.goal.latency_s

    def forecast(self, setting: Setting) -> LatencyForecast:
        work = tuple(of * self.caution for of in self.work)
        return forecast(self.seen, setting, self.horizon_s, work=work)

    def holds(self, setting: Setting) -> bool:
        return self.forecast(setting).holds(self.goal.latency_s)

    def most_share(self) -> float:
        """The most that may be shed: by the query, and by the error that it makes."""
        if self.goal.error is None or self.seen.shed is None:
            return 0.0
        most = self.seen.shed.most
        if self.seen.half_error is None:
            return min(most, FIRST_SHARE)
        if self.seen.half_error <= 0:
            return most
        odds = (self.goal.error / self.seen.half_error) ** 2
        return min(most, odds / (1 + odds))

    def fewest(self, share: float = 0.0) -> Setting:
        """The fewest instances that hold the target at a share; the most that help if none do.

        One more goes to the subquery for which it does most. A backlog gets at most as many again
        as the work needs without it.
        """
        lean = self.lean(share)
        return lean if self.holds(lean) else self._fewest(share, self.seen, most=2 * lean.cost)

    def lean(self, share: float = 0.0) -> Setting:
        """The fewest instances that hold the target if there were no backlog."""
        return self._fewest(share, replace(self.seen, backlog_s=0.0))

    def _fewest(self, share: float, seen: Evidence, most: int | None = None) -> Setting:
        case = replace(self, seen=seen)
        limits = [limit for limit in (self.goal.cost, most) if limit is not None]
        limit = min(limits, default=sum(one.most for one in seen.subqueries))
        counts = [1] * len(seen.subqueries)
        if len(counts) == 1:
            least = ceil(self.work[0] * (1 - share)) - 1
            counts = [min(max(least, 1), seen.subqueries[0].most, limit)]
        tried = []
        while not case.holds(found := Setting(tuple(counts), share, evened=True)):
            tried.append(found)
            gains = [
                (work / count - work / (count + 1), -place)
                for place, (work, count) in enumerate(zip(self.work, counts, strict=True))
                if count < seen.subqueries[place].most
            ]
            if not gains or sum(counts) >= limit:
                return next(filter(case.is_undivided, tried), found)
            counts[-max(gains)[1]] += 1
        return found

    def is_undivided(self, setting: Setting) -> bool:
        """Whether the time goes to the driver and map tasks, which instances cannot take over."""
        work = zip(self.work, setting.counts, strict=True)
        divided = sum(of * self.caution / count for of, count in work)
        return divided <= HARDLY * self.forecast(setting).load


class Remedy(Protocol):
    """One kind of remedy; `kind` is what decisions call it."""

    @property
    def kind(self) -> str: ...

    def proposed(self, case: Case) -> RemedyProposal:
        """The setting it leads to: that which holds the target, or as near to it as it comes."""


class EvenLoads:
    """Moves buckets from busy instances to others; nothing is given up for it."""

    kind: ClassVar = "rebalance"

    def proposed(self, case: Case) -> RemedyProposal:
        uneven = [one.skew for one in case.seen.subqueries if not one.even and one.instances > 1]
        if max(uneven, default=1.0) < UNEVEN:
            return RemedyProposal(None, "loads are even")
        stuck = [one.hottest * one.instances for one in case.seen.subqueries if not one.even]
        if max(stuck, default=0.0) * UNEVEN > max(uneven):
            return RemedyProposal(None, "one bucket is the load of an instance")
        return RemedyProposal(replace(case.standing, evened=True))


class ShedShare:
    """Drops a share of the tuples, the smallest that suffices, within the allowance."""

    kind: ClassVar = "shed"

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

    def proposed(self, case: Case) -> RemedyProposal:
        found = case.fewest()
        if found.cost <= case.standing.cost:
            return RemedyProposal(None, _no_more(case, found))
        return RemedyProposal(found)


def _no_more(case: Case, found: Setting) -> str:
    """Why there is no reason to add instances."""
    if case.holds(found):
        return "there are enough"
    if case.is_undivided(case.standing):
        return "driver and map tasks take the time, more instances would hardly help"
    return "there may be no more"


class AddAndShed:
    """The instances that the work needs, and the smallest share with which a backlog goes in time.

    Where there may be too few instances, the share stays beside the most there may be.
    """

    kind: ClassVar = "add instances and shed"

    def proposed(self, case: Case) -> RemedyProposal:
        most = case.most_share()
        shares = [share for share in SHARES if share <= most]
        if not shares:
            return RemedyProposal(None, "nothing may be shed")
        lean = case.lean()
        if lean.cost < case.standing.cost:
            lean = replace(case.standing, share=0.0)
        settings = [replace(lean, share=share) for share in shares]
        found = next(filter(case.holds, settings), settings[-1])
        if (found.counts, found.share) == (case.standing.counts, case.standing.share):
            return RemedyProposal(None, "all of it is done already")
        return RemedyProposal(found)


ORDER: tuple[Remedy, ...] = (EvenLoads(), ShedShare(), AddInstances(), AddAndShed())


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
            "instances": list(self.setting.counts),
            "share": self.setting.share,
            "error": None if self.error is None else round(self.error, 4),
            "holds": self.holds,
            **self.expected.as_dict(),
            **({"note": self.note} if self.note else {}),
        }


def weighed(case: Case, kind: str, proposal: RemedyProposal) -> Alternative:
    """A proposal with what it would lead to."""
    setting = proposal.setting
    if setting is None:
        return Alternative(kind, note=proposal.missing)
    expected = case.forecast(setting)
    holds = expected.holds(case.goal.latency_s)
    return Alternative(kind, setting, expected, error_at(case.seen, setting.share), holds)
