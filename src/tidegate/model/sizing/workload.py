"""How much each kind of operator has to do at given rates of its inputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tidegate.model.cost.sample import WorkCounts
from tidegate.model.operation import Lookback


class OperatorWorkload(Protocol):
    """What follows from the rates of an operator's inputs, when they have lasted for a while."""

    def counts(self, rates: Sequence[float]) -> WorkCounts:
        """What there is to do at these rates, one for each input, in tuples a second."""


@dataclass(frozen=True)
class JoinWorkload:
    """A join: every tuple meets the window of the other side, equation 4.

    `windows` are those of the left and the right side, `sides` says which of them each input feeds,
    and `passed` the share of the tuples of a side that its filters let through. Of the pairs of
    the definition the method compares `compared`, all of them for a scan, and puts out `sigma`.
    """

    windows: tuple[Lookback, ...]
    sides: tuple[int, ...]
    passed: tuple[float, float]
    compared: float
    sigma: float

    def counts(self, rates: Sequence[float]) -> WorkCounts:
        arriving = [0.0, 0.0]
        for side, rate in zip(self.sides, rates, strict=True):
            arriving[side] += rate * self.passed[side]
        held = [w.full(rate) for w, rate in zip(self.windows, arriving, strict=True)]
        pairs = arriving[0] * held[1] + arriving[1] * held[0]
        return WorkCounts(sum(rates), pairs * self.compared, pairs * self.sigma)


@dataclass(frozen=True)
class GroupWorkload:
    """An aggregate over windows of time: each one that ends puts out the groups that it has.

    Of `keys` groups, a window of N tuples has `keys * (1 - exp(-N / keys))` where all are as
    likely: every tuple its own while there are few tuples, and all groups where there are many.
    """

    range_s: float
    slide_s: float
    keys: float

    def counts(self, rates: Sequence[float]) -> WorkCounts:
        tuples = sum(rates)
        groups = groups_of(tuples * self.range_s, self.keys)
        return WorkCounts(tuples, outputs=groups / self.slide_s)


@dataclass(frozen=True)
class TupleWorkload:
    """Operators that put out so many rows for each tuple: filters, windows of tuples, processes."""

    outputs: float

    def counts(self, rates: Sequence[float]) -> WorkCounts:
        tuples = sum(rates)
        return WorkCounts(tuples, outputs=tuples * self.outputs)


def groups_of(tuples: float, keys: float) -> float:
    """How many groups so many tuples have, of so many keys that are all as likely."""
    if math.isinf(keys):
        return tuples
    return keys * -math.expm1(-tuples / keys) if keys > 0 else 0.0


def keys_of(tuples: float, groups: float) -> float:
    """Of how many keys so many tuples have so many groups; infinite where each is its own."""
    if groups <= 0:
        return 0.0
    low, high = groups, 1e3 * max(tuples, groups)
    if groups_of(tuples, high) <= groups:
        return math.inf
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if groups_of(tuples, middle) > groups else (middle, high)
    return low
