"""The policy of StreamCloud and STRETCH: instances by utilisation, buckets by imbalance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate.elastic.average import Average, Side, remembered
from tidegate.elastic.policy import Decision, check_numbers
from tidegate.elastic.request import Request, Switch
from tidegate.errors import OptionError, near
from tidegate.model.observation import Observation
from tidegate.route import mapping as route
from tidegate.route.balance import balanced

LOAD_AWARE, INDIVIDUAL = "load-aware", "individual"
PROVISIONING = (LOAD_AWARE, INDIVIDUAL)

_EVEN = 0.25
"""The largest standard deviation of loads, as a part of their mean, that a new mapping leaves."""

_ABOUT = 0.001
"""Averages are remembered in rounded parts: what differs by less is the same."""

_TURN = 0.05
"""By this part the load must be beyond a threshold to turn the last change back."""

_ALL = 0.99
"""Instances that use as much have nothing left."""


@dataclass(frozen=True)
class _Wanted:
    """Another mapping, and why."""

    mapping: route.Mapping
    why: str


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """Keeps the average utilisation between two thresholds, and the instances even.

    The thresholds are parts of what an instance can use of the period of a batch (`average`). When
    the average utilisation is above `upper`, there are to be as many instances as bring it to
    `target`, or one more with individual provisioning; but not where that would lower the load
    above `target` by less than the part `improvement` of a batch. When it is below `lower`, as many
    give their buckets away and go as bring it up to `target`; but not where an instance that stays
    would come above `upper`, and by more than buckets can be evened. When the standard deviation of
    the utilisations is above `imbalance`, buckets are moved, if that lowers it by the part
    `improvement`.

    After a change `cooldown` batches pass before the next, and a decision rests on an average over
    `batches` batches and `seconds` seconds with one mapping, all of them on the same side of a
    threshold. To turn the last change back takes a load a little further beyond it. There are never
    fewer than `minimum` instances, nor more than `maximum`; without one, no more are asked for than
    can run at once.
    """

    upper: float = 0.9
    target: float = 0.7
    lower: float = 0.45
    imbalance: float = 0.1
    improvement: float = 0.1
    cooldown: int = 5
    batches: int = 3
    seconds: float = 2.0
    minimum: int = 1
    maximum: int | None = None
    provisioning: str = LOAD_AWARE

    def __post_init__(self) -> None:
        _check(self)

    @property
    def name(self) -> str:
        return "threshold"

    def decide(self, observed: Sequence[Observation], memory: Mapping[str, Any]) -> Decision:
        requests, after = [], {}
        for seen in observed:
            before = remembered(memory.get(seen.subquery), seen)
            average = before.followed(seen, self.batches, self.seconds, self._side(before))
            wanted = self._wanted(seen, average) if self._may_decide(seen, average) else None
            if wanted is not None:
                change = Switch(wanted.mapping.owners, wanted.mapping.instances)
                requests.append(Request(change, seen.subquery, f"policy {self.name}", wanted.why))
                counts = seen.mapping.instances, wanted.mapping.instances
                average = average.asked(seen.batch, *counts)
            after[seen.subquery] = average.recorded()
        return Decision(requests, after)

    def _side(self, past: Average) -> Side:
        """Where utilisations lie, after what was done last."""
        upper = (
            self.upper if past.way >= 0 else max(min(self.upper * (1 + _TURN), _ALL), self.upper)
        )
        lower = self.lower if past.way <= 0 else self.lower * (1 - _TURN)
        return lambda used: (used > upper + _ABOUT) - (used < lower - _ABOUT)

    def _may_decide(self, seen: Observation, average: Average) -> bool:
        """Whether enough was seen, and the last change is long enough ago."""
        cooling = average.changed is not None and seen.batch - average.changed < self.cooldown
        enough = average.batches >= self.batches and average.seconds >= self.seconds
        return enough and not cooling

    def _wanted(self, seen: Observation, average: Average) -> _Wanted | None:
        now = average.used(seen.mapping.owner_array, seen.mapping.instances)
        instances = len(now)
        if instances < self.minimum or instances > (self.maximum or instances):
            return self._into_range(seen, average)
        if average.side > 0:
            found = self._provisioned(seen, average, now)
        elif average.side < 0:
            found = self._decommissioned(seen, average, now)
        else:
            found = None
        return found or self._evened(seen, average, now)

    def _into_range(self, seen: Observation, average: Average) -> _Wanted | None:
        """What was there before the policy, or a user asked for, within its limits."""
        instances = seen.mapping.instances
        low = instances < self.minimum
        count = self.minimum if low else self.maximum or instances
        count = min(count, seen.mapping.buckets)
        if count == instances:
            return None
        why = f"{'fewer than the minimum' if low else 'more than the maximum'} of {count}: "
        return _Wanted(self._spread(seen, average, count), why + _steps(instances, count))

    def _provisioned(
        self, seen: Observation, average: Average, now: npt.NDArray[np.float64]
    ) -> _Wanted | None:
        """More instances, where there may be, and where they take some of the load."""
        instances, mean = len(now), float(now.mean())
        count = instances + 1
        if self.provisioning == LOAD_AWARE:
            count = max(_needed(float(now.sum()), self.target), count)
        most = self.maximum or seen.slots or seen.mapping.buckets
        count = min(count, most, seen.mapping.buckets)
        if count <= instances:
            return None
        mapping = self._spread(seen, average, count)
        done = max(
            float(now.max()), 1.0
        )  # the rest waits: what is gained is gained of what is done
        then = average.used(mapping.owner_array, count) / done
        gained = 1 - self._above_target(then) / self._above_target(now / done)
        if gained * average.free < self.improvement:
            return None  # as when all of the load is that of one bucket, or most time the driver's
        why = f"{_mean_text(mean, average)} above {self.upper:.2f}: {_steps(instances, count)}"
        return _Wanted(mapping, why)

    def _decommissioned(
        self, seen: Observation, average: Average, now: npt.NDArray[np.float64]
    ) -> _Wanted | None:
        """Fewer instances: the fewest, or one less, of which none is loaded too much."""
        instances, mean = len(now), float(now.mean())
        fewest = max(floor(float(now.sum()) / self.target + _ABOUT), self.minimum)
        if self.provisioning == INDIVIDUAL:
            fewest = max(fewest, instances - 1)
        for count in range(fewest, instances):
            mapping = self._spread(seen, average, count)
            used = average.used(mapping.owner_array, count)
            if used.mean() <= self.upper + _ABOUT and used.max() <= self.upper + self.imbalance / 2:
                why = f"{_mean_text(mean, average)} below {self.lower:.2f}: "
                return _Wanted(mapping, why + _steps(instances, count))
        return None

    def _evened(
        self, seen: Observation, average: Average, now: npt.NDArray[np.float64]
    ) -> _Wanted | None:
        """As many instances, with other buckets."""
        uneven = float(now.std()) * average.free
        if uneven <= self.imbalance:
            return None
        mapping = self._spread(seen, average, len(now))
        then = float(average.used(mapping.owner_array, len(now)).std()) * average.free
        if then > uneven * (1 - self.improvement):
            return None
        moved = int((mapping.owner_array != seen.mapping.owner_array).sum())
        return _Wanted(
            mapping,
            f"imbalance {uneven:.2f} above {self.imbalance:.2f}: "
            f"{moved} bucket{' moves' if moved == 1 else 's move'}, which leaves {then:.2f}",
        )

    def _spread(self, seen: Observation, average: Average, count: int) -> route.Mapping:
        """So many instances, evened to half of what is too uneven: noise does not undo it.

        Where all of them do little nothing is too uneven; a new one is still to take its part.
        """
        mean = float(average.buckets.sum()) / count * average.free
        within = min(self.imbalance / 2 / mean, _EVEN) if mean else 0.0
        return balanced(seen.mapping, average.buckets.tolist(), count, within)

    def _above_target(self, used: npt.NDArray[np.float64]) -> float:
        return float(np.maximum(used - self.target, 0).sum())


def _needed(total: float, target: float) -> int:
    """The fewest instances whose average is not above the target."""
    return max(ceil(total / target - _ABOUT), 1)


def _mean_text(used: float, average: Average) -> str:
    """The average utilisation, and where that is something else, of what instances can use."""
    said = f"average utilisation {used * average.free:.2f}"
    return said if average.free > 0.99 else f"{said}, {used:.2f} of what batches leave,"


def _steps(before: int, after: int) -> str:
    return f"{before} -> {after} instance{'' if after == 1 else 's'}"


def _check(asked: Threshold) -> None:
    where = "policy threshold"
    numbers = ("upper", "target", "lower", "imbalance", "improvement", "seconds")
    counts = ("cooldown", "batches", "minimum", "maximum")
    check_numbers(asked, numbers, counts, optional=("maximum",))
    if not 0 < asked.lower < asked.upper <= 1:
        raise OptionError(
            where,
            "lower must be below upper, both between 0 and 1",
            f"lower {asked.lower:g} and upper {asked.upper:g}",
        )
    if not asked.lower <= asked.target <= asked.upper:
        raise OptionError(
            where,
            f"target must be from lower ({asked.lower:g}) to upper ({asked.upper:g})",
            f"{asked.target:g}",
        )
    if asked.imbalance <= 0:
        raise OptionError(where, "imbalance must be above 0", f"{asked.imbalance:g}")
    if not 0 <= asked.improvement < 1:
        raise OptionError(
            where, "improvement must be from 0 to less than 1", f"{asked.improvement:g}"
        )
    for name, least in (("cooldown", 0), ("seconds", 0), ("batches", 1), ("minimum", 1)):
        if getattr(asked, name) < least:
            said = "must not be negative" if least == 0 else f"must be at least {least}"
            raise OptionError(where, f"{name} {said}", f"{getattr(asked, name):g}")
    if asked.maximum is not None and asked.maximum < asked.minimum:
        raise OptionError(
            where, f"maximum must be at least minimum ({asked.minimum})", str(asked.maximum)
        )
    if asked.provisioning not in PROVISIONING:
        raise OptionError(
            where,
            "provisioning must be a known word",
            str(asked.provisioning),
            near(str(asked.provisioning), PROVISIONING),
        )
