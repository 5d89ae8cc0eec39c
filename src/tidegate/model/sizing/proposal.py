"""How many instances a query needs at given rates, by what its model says of each choice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidegate.model.cost.calibration import Estimate
from tidegate.model.sizing.steady import QueryModel, SteadyState


@dataclass(frozen=True)
class InstanceChoice:
    """So many instances of each subquery, what follows from them, and how many times the rates
    they could keep up with."""

    instances: Mapping[str, int]
    steady: SteadyState
    limit: Estimate

    def meets(self, latency_s: float | None) -> bool:
        """Whether it keeps up and has the latency, if it does as is most likely."""
        if self.steady.load.value >= 1:
            return False
        return latency_s is None or self.steady.latency_s.value <= latency_s

    def surely_meets(self, latency_s: float | None) -> bool:
        """The same where costs are as high as they may well be."""
        if not self.steady.keeps_up:
            return False
        return latency_s is None or self.steady.latency_s.high <= latency_s


@dataclass(frozen=True)
class Proposal:
    """The choices that were looked at, each with an instance more, and the one to take.

    `met` says that it has what was asked for, `sure` also where costs are as high as they may well
    be. `within` is how many times the rates the last choice has with the latency, `ever` how many
    times any number of instances could keep up with.
    """

    choices: tuple[InstanceChoice, ...]
    chosen: InstanceChoice
    met: bool
    sure: bool
    within: float
    ever: float


@dataclass(frozen=True)
class InstanceLimit:
    """How many instances there may be: of each subquery, and of all together.

    With `alike` all subqueries have the same number, on the same instances.
    """

    each: int
    total: int
    alike: bool = False

    def more(self, now: Mapping[str, int]) -> list[dict[str, int]]:
        """What can be tried next: one more of a subquery, or of all of them."""
        if self.alike:
            count = next(iter(now.values())) + 1
            return [dict.fromkeys(now, count)] if count <= min(self.each, self.total) else []
        if sum(now.values()) >= self.total:
            return []
        return [{**now, name: count + 1} for name, count in now.items() if count < self.each]


def propose(
    model: QueryModel, rates: Mapping[str, float], latency_s: float | None, most: InstanceLimit
) -> Proposal:
    """The fewest instances that do; where none do, those with the least latency.

    Begins with one of each subquery, and gives the next to where it saves most. Where none do,
    there are no more of a subquery than pay: see `SpeedUp.useful`.
    """

    def choice(instances: Mapping[str, int]) -> InstanceChoice:
        steady = model.steady(rates, instances)
        return InstanceChoice(instances, steady, model.limit(rates, instances))

    choices = [choice({subquery.name: 1 for subquery in model.subqueries})]
    while not choices[-1].surely_meets(latency_s):
        more = most.more(choices[-1].instances)
        if not more:
            break
        choices.append(choice(min(more, key=lambda one: model.steady(rates, one).load.value)))
    sure = [c for c in choices if c.surely_meets(latency_s)]
    likely = [c for c in choices if c.meets(latency_s)]
    useful = model.speed_up(rates).useful
    paying = [c for c in choices if max(c.instances.values()) <= useful]
    best = min(paying, key=lambda c: (c.steady.latency_s.value, c.steady.load.value))
    return Proposal(
        choices=tuple(choices),
        chosen=(sure or likely or [best])[0],
        met=bool(likely),
        sure=bool(sure),
        within=model.within(latency_s, rates, best.instances) if latency_s is not None else 0.0,
        ever=model.most(rates),
    )
