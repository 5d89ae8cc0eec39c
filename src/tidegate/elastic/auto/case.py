"""A case that remedies are proposed for: goal, evidence, and the smallest settings that suffice."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from math import ceil

from tidegate.elastic.auto.evidence import Evidence
from tidegate.elastic.auto.forecast import MOST_MEMORY, LatencyForecast, Setting, forecast
from tidegate.elastic.auto.goal import LatencyGoal

FIRST_SHARE = 0.5
"""No more is shed before a window has shown what error that makes."""

HARDLY = 0.1
"""Where instances have less than this part of the load to divide, more of them hardly help."""

DRAIN_TARGETS = 3.0
"""Within so many times the target a remedy has to have brought latency below it."""


@dataclass(frozen=True)
class Case:
    """What is to be remedied: the goal, the evidence, and the work to be ready for.

    `work` is that of each subquery, `caution` how many times as much as that counts because an
    earlier forecast was too good.
    """

    goal: LatencyGoal
    seen: Evidence
    work: tuple[float, ...]
    caution: float = 1.0

    @property
    def standing(self) -> Setting:
        """What the query is set to now."""
        return Setting(self.seen.counts, self.seen.share)

    @property
    def horizon_s(self) -> float:
        return DRAIN_TARGETS * self.goal.latency_s

    def forecast(self, setting: Setting) -> LatencyForecast:
        work = tuple(of * self.caution for of in self.work)
        return forecast(self.seen, setting, self.horizon_s, work=work)

    def holds(self, setting: Setting) -> bool:
        return self.forecast(setting).holds(self.goal.latency_s)

    @property
    def unshed_load(self) -> float | None:
        """What would be needed of the time if nothing were shed, as far as that was measured."""
        load, whole = self.seen.measured_load, replace(self.standing, share=0.0)
        thought = self.forecast(self.standing).load
        if load is None or thought <= 0:
            return None
        return load * self.forecast(whole).load / thought

    @property
    def misjudged(self) -> float:
        """How many times as much is needed of the time as was thought, at least 1."""
        load, thought = self.seen.measured_load, self.forecast(self.standing).load
        return 1.0 if load is None or thought <= 0 else max(load / thought, 1.0)

    def beside(self, setting: Setting) -> float:
        """The share of the time that is left to need, if instances had nothing to do."""
        nothing = (0.0,) * len(self.work)
        return forecast(self.seen, setting, self.horizon_s, work=nothing).load

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

    def fewest(self, share: float = 0.0, splits: bool | None = None) -> Setting:
        """The fewest instances that hold the target at a share; the most that help if none do.

        One more goes to the subquery for which it does most. A backlog gets at most as many again
        as the work needs without it, and more where it is of several horizons.
        """
        lean = self.lean(share, splits)
        if self.holds(lean):
            return lean
        times = max(2, ceil(self.seen.backlog_s / self.horizon_s))
        return self._fewest(share, splits, self.seen, most=times * lean.cost)

    def lean(self, share: float = 0.0, splits: bool | None = None) -> Setting:
        """The fewest instances that hold the target if there were no backlog."""
        return self._fewest(share, splits, replace(self.seen, backlog_s=0.0))

    def _fewest(
        self, share: float, splits: bool | None, seen: Evidence, most: int | None = None
    ) -> Setting:
        case = replace(self, seen=seen)
        limits = [limit for limit in (self.goal.cost, most) if limit is not None]
        limit = min(limits, default=sum(one.most for one in seen.subqueries))
        counts = self._least(share, limit)
        if len(counts) == 1:
            most = min(limit, seen.subqueries[0].most)
            return case._fewest_of_one(Setting((most,), share, evened=True, splits=splits), counts)
        tried = []
        while not case.holds(found := Setting(tuple(counts), share, evened=True, splits=splits)):
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

    def _fewest_of_one(self, most: Setting, least: list[int]) -> Setting:
        """The same for one subquery, by bisection: what holds with so many holds with more."""
        counts = range(least[0], most.cost + 1)
        settings = [replace(most, counts=(count,)) for count in counts] or [most]
        suffices = self.holds if self.holds(settings[-1]) else self.is_undivided
        place = bisect_left(settings, True, hi=len(settings) - 1, key=suffices)
        return settings[place]

    def _least(self, share: float, limit: int) -> list[int]:
        """Where the search begins: fewer instances have more to do, or to keep, than they can."""
        counts = [self._kept_by(place) for place in range(len(self.work))]
        if len(counts) == 1:
            by_work = ceil(self.work[0] * (1 - share)) - 1
            counts = [min(max(by_work, *counts, 1), self.seen.subqueries[0].most, limit)]
        return counts if sum(counts) <= limit else [1] * len(counts)

    def _kept_by(self, place: int) -> int:
        """The fewest instances whose processes can keep the state of a subquery, spread evenly."""
        one, most_bytes = self.seen.subqueries[place], self.seen.memory_bytes
        if not most_bytes:
            return 1
        return min(max(ceil(one.state_bytes / (MOST_MEMORY * most_bytes)), 1), one.most)

    def is_undivided(self, setting: Setting) -> bool:
        """Whether most time goes to the driver, map tasks or the trigger, not to instances."""
        cadence = setting.cadence or self.seen.cadence
        if cadence.trigger_s >= self.goal.latency_s:
            return True
        work = zip(self.work, setting.counts, strict=True)
        divided = sum(of * self.caution / count for of, count in work)
        return divided <= HARDLY * self.forecast(setting).load
