"""How many instances a join needs, from what its rates say: equations 27 to 30 and Algorithm 1.

The simulator and the policy `model` of a running query both decide by it. It sees the work that
arrives (`Demand`), which follows from rates, and nothing that is measured in the join. It is pure:
each `ControllerState` gives the next, interval by interval, and can be kept in a manifest.

    limits = Limits(maximum=8)
    standing = Standing(instances=1)
    for comparisons in arriving:
        standing = standing.after(Demand(comparisons), bounds(costs.comparison_s, limits))

Work is counted in comparisons here, or in whatever else takes a known time each: the tuples of an
aggregate do as well.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import isfinite

import numpy as np

from tidegate.errors import OptionError
from tidegate.model.operation import Floats

UPPER, LOWER = 0.8, 0.7
"""The paper's upper and lower quota (Theta_U and Theta_L)."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Within what the controller decides.

    `upper` and `lower` (Theta_U and Theta_L) are the shares of what instances can do between which
    their work is to be, `minimum` and `maximum` how many there may be. `quota` (Theta) is the part
    of its time that an instance has for the join; the shares are shares of that.
    """

    maximum: int
    minimum: int = 1
    upper: float = UPPER
    lower: float = LOWER
    quota: float = 1.0

    def __post_init__(self) -> None:
        _check(self)


@dataclass(frozen=True, eq=False)
class Bounds:
    """The look-up table: what so many instances can do in a second, and the bounds on it.

    Position n is for n instances, up to the maximum: `capacity` what they do at most, `upper` and
    `lower` the amounts of work at which they are too few (UB_n, equation 29) and below which they
    are too many (LB_n, equation 30, of one instance less, so that it does not oscillate).
    """

    limits: Limits
    capacity: Floats
    upper: Floats
    lower: Floats

    def fewest(self, asked: float) -> int:
        """The fewest instances that have `asked` below their upper bound; else the maximum."""
        limits = self.limits
        found = int(np.searchsorted(self.upper[1:], asked, side="right")) + 1
        return min(max(found, limits.minimum), limits.maximum)

    def most(self, asked: float) -> int:
        """The most instances that have `asked` not below their lower bound."""
        limits = self.limits
        found = int(np.searchsorted(self.lower[1:], asked, side="right"))
        return min(max(found, limits.minimum), limits.maximum)


@lru_cache(maxsize=64)
def bounds(unit_s: float, limits: Limits) -> Bounds:
    """The table for what a unit of work takes: alpha + sigma * beta for a comparison.

    The same arguments give the same table: it is made anew only where the costs have changed.
    """
    counts = np.arange(limits.maximum + 1, dtype=np.float64)
    one = limits.quota / unit_s if unit_s > 0 else np.inf  # Theta / (alpha + sigma beta), 28
    with np.errstate(invalid="ignore"):  # no instance that needs no time does nothing
        capacity = np.nan_to_num(counts * one, nan=0.0, posinf=np.inf)
        fewer = np.nan_to_num(np.maximum(counts - 1, 0) * one, nan=0.0, posinf=np.inf)
    return Bounds(limits, capacity, limits.upper * capacity, limits.lower * fewer)


@dataclass(frozen=True)
class Demand:
    """What arrived in an interval, and what the rates say of the time that follows.

    `work` is the work that arrived (c_i); `seconds` is what instances have for it: the interval,
    less what a driver needs of it. `expected` is the most that is to be expected in a second of the
    time ahead, and `settled` whether it stays at that (`outlook`). Without it there is no look
    ahead, and the paper's algorithm decides as it stands.
    """

    work: float
    seconds: float = 1.0
    expected: float | None = None
    settled: bool = True


@dataclass(frozen=True)
class ControllerState:
    """How many instances there are, and the work that was reported and cannot have been done yet.

    `waiting` is what equation 27 sums up: all that was reported less all that was done. Equation 28
    says what instances can do. What they have done is no more than there was, or idle time would
    count as work in advance, and the sum would fall without end below zero.
    """

    instances: int
    waiting: float = 0.0

    def asked(self, demand: Demand) -> float:
        """The work to do, by the second: a_i of equation 27."""
        return (self.waiting + demand.work) / demand.seconds

    def after(self, demand: Demand, table: Bounds) -> ControllerState:
        """After an interval: what waits at its end, and the instances from the next one on.

        There may be more or fewer instances than the limits allow, if somebody else asked for them;
        the interval is counted with what they can do.
        """
        there = self.waiting + demand.work
        one = float(table.capacity[1])
        done = min(one * self.instances * demand.seconds, there)  # equation 28, at most all
        return replace(self, instances=self._wanted(demand, table), waiting=there - done)

    def _wanted(self, demand: Demand, table: Bounds) -> int:
        limits, now = table.limits, self.instances
        if not limits.minimum <= now <= limits.maximum:
            now = min(max(now, limits.minimum), limits.maximum)
        asked = self.asked(demand)
        if demand.expected is None:
            return _algorithm_1(asked, now, table)
        return _looking_ahead(asked, max(asked, demand.expected), demand.settled, now, table)


def _algorithm_1(asked: float, now: int, table: Bounds) -> int:
    """The main loop of the paper; where the maximum is not enough, the maximum."""
    if asked >= table.upper[now]:
        return table.fewest(asked)
    if asked < table.lower[now]:
        return min(table.most(asked), now)
    return now


def _looking_ahead(asked: float, expected: float, settled: bool, now: int, table: Bounds) -> int:
    """The same bounds, with fewer steps to the same end.

    Too few instances now become as many as will be needed, not one more every second while the
    windows fill. Too many go when that spares half of them, or when the work has settled; then no
    more than one is kept that is not needed, where the lower bound of many instances would let
    several stay.
    """
    if asked >= table.upper[now]:
        return table.fewest(expected)
    needed = table.fewest(expected)
    spare = now - needed
    too_many = expected < table.lower[now] or spare > 1
    worthwhile = settled or 2 * spare >= now
    return needed if spare > 0 and too_many and worthwhile else now


def _check(asked: Limits) -> None:
    where = "policy model"
    if not 0 < asked.lower <= asked.upper <= 1:
        raise OptionError(
            where,
            "lower must not be above upper, both above 0 and at most 1",
            f"lower {asked.lower:g} and upper {asked.upper:g}",
        )
    if not (isfinite(asked.quota) and 0 < asked.quota <= 1):
        raise OptionError(where, "quota must be above 0 and at most 1", f"{asked.quota:g}")
    if asked.minimum < 1:
        raise OptionError(where, "minimum must be at least 1", str(asked.minimum))
    if asked.maximum < asked.minimum:
        raise OptionError(
            where, f"maximum must be at least minimum ({asked.minimum})", str(asked.maximum)
        )
