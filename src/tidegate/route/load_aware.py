"""The partitioners that use earlier choices: chapter 3 of the dissertation, one class each.

Each unit goes to one of `d` candidates, instances that the hash of its key names, or to the least
loaded of all. The choice depends on the tuples and keys that they got from the same source in the
same period; the loops are in `choice_loop`. Total work: a key in several places costs a merge for
each part beyond the first.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tidegate.errors import OptionError
from tidegate.route.bucket import hash_of
from tidegate.route.key_memory import AM, CAM, CM, EXACT, KINDS, LM, LoopRule, Words
from tidegate.route.ledger import Ledger
from tidegate.route.mapping import Mapping
from tidegate.route.partitioner import Int32s, Int64s, Partitioner, Units


class LoadAware(Partitioner):
    """A partitioner with a ledger; derive a frozen dataclass whose fields are the parameters."""

    splits_keys: ClassVar[bool] = True
    remembers: ClassVar[str] = "ledger"
    keys: str | None = None
    looks_back: bool = False

    @property
    def key_memory(self) -> str | None:
        return self.keys

    @abstractmethod
    def rule(self, instances: int) -> LoopRule:
        """The arguments of the loop, among so many instances."""

    def buckets(self, units: Units, mapping: Mapping) -> Int32s:
        """Units are placed period by period, in their order within each."""
        ledger = units.ledger or Ledger.begun(mapping, self.keys)
        words = _words(units)
        weights = np.ones(units.rows, np.int64) if units.weights is None else units.weights
        periods = np.zeros(units.rows, np.int64) if units.periods is None else units.periods
        found = np.empty(units.rows, np.int32)
        for period, mine in by_period(periods):
            ledger.make_room(period)
            found[mine] = self.placed(ledger, period, words[mine], weights[mine])
        return found

    def placed(self, ledger: Ledger, period: int, words: Words, weights: Int64s) -> Int32s:
        """The buckets of units of one period, in their order."""
        tally, rule = ledger.tally(period), self.rule(ledger.places.count)
        before = tally.loads.copy()
        if self.keys is None or tally.keys is None:
            from tidegate.route.choice_loop import by_load

            chosen = by_load()(words, weights, rule.d, tally.loads)
            added = np.zeros(len(words), np.bool_)
        else:
            looks_back = self.looks_back and ledger.overlapping
            earlier = ledger.tallies.get(period - 1) if looks_back else None
            keys = None if earlier is None else earlier.keys
            chosen, added = tally.keys.place(words, weights, rule, tally.loads, keys)
        bucket = ledger.places.bucket(words, chosen)
        # What a replay of a later batch needs to choose the same: new keys, and the loads.
        ledger.note_keys(period, words[added], bucket[added])
        ledger.note_sent(period, tally.loads - before)
        return bucket


@dataclass(frozen=True)
class Shuffle(LoadAware):
    """To the instance with the fewest tuples (SH): in turn, where units are tuples."""

    name: ClassVar[str] = "shuffle"

    def rule(self, instances: int) -> LoopRule:
        return LoopRule(0, instances)


@dataclass(frozen=True)
class PartialKey(LoadAware):
    """To the candidate with the fewest tuples (PK)."""

    name: ClassVar[str] = "pk"
    d: int = 2

    def __post_init__(self) -> None:
        _check_choices(self.d)

    def rule(self, instances: int) -> LoopRule:
        return LoopRule(0, min(self.d, instances))


@dataclass(frozen=True)
class ByKeys(LoadAware):
    """A partitioner that remembers keys, by the rule `number`."""

    d: int = 2
    keys: str = EXACT
    number: ClassVar[int]

    def __post_init__(self) -> None:
        _check_choices(self.d)
        if self.keys not in KINDS:
            raise OptionError("keys", f"must be {' or '.join(KINDS)}", self.keys)

    def rule(self, instances: int) -> LoopRule:
        return LoopRule(self.number, min(self.d, instances))


@dataclass(frozen=True)
class FewestKeys(ByKeys):
    """To the candidate with the fewest keys (CM)."""

    name: ClassVar[str] = "cm"
    number: ClassVar[int] = CM


@dataclass(frozen=True)
class AffinityByKeys(ByKeys):
    """To the candidate that has had the key, else to the one with the fewest keys (AM)."""

    name: ClassVar[str] = "am"
    number: ClassVar[int] = AM
    looks_back = True


@dataclass(frozen=True)
class AffinityByTuples(ByKeys):
    """To the candidate that has had the key, else to the one with the fewest tuples (cAM)."""

    name: ClassVar[str] = "cam"
    number: ClassVar[int] = CAM
    looks_back = True


@dataclass(frozen=True)
class Hybrid(ByKeys):
    """To the candidate with the least of p times its tuples and 1 - p times its keys (LM)."""

    name: ClassVar[str] = "lm"
    number: ClassVar[int] = LM
    p: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.p <= 1:
            raise OptionError(
                "p",
                "must be from 0 (only keys) to 1 (only tuples)",
                f"{self.p:g}",
                "Write for example lm?p=0.5.",
            )

    def rule(self, instances: int) -> LoopRule:
        return LoopRule(self.number, min(self.d, instances), self.p)

    @property
    def tuple_share(self) -> float:
        return self.p


def _check_choices(d: int) -> None:
    if d < 1:
        raise OptionError("d", "must be at least 1 candidate for a key", str(d), "2 is usual.")


def _words(units: Units) -> Words:
    if not units.keys:
        return np.zeros(units.rows, np.uint64)
    words = hash_of(units.keys)
    return words if units.codes is None else words[units.codes]


def by_period(periods: Int64s) -> list[tuple[int, Int64s | slice]]:
    """The units of each period as places or a slice, the earliest period first."""
    if not len(periods):
        return []
    if periods[0] == periods[-1] and bool((periods == periods[0]).all()):
        return [(int(periods[0]), slice(None))]
    order = np.argsort(periods, kind="stable")
    numbers, first = np.unique(periods[order], return_index=True)
    parts = np.split(order, first[1:])
    return list(zip(numbers.tolist(), parts, strict=True))
