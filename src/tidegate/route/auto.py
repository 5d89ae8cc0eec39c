"""The partitioner that chooses among others, period by period, from what a source has counted.

When the first tuple of a period comes, a source chooses `hash`, `cam`, `pk` or `shuffle` by its
counts of the period before (`selection`). A period without one before it, as at the start of a
stream, begins with `hash`, and the choice is reconsidered after 1,024 of its tuples, after 4,096,
and so on. Units are counted in the order of their source, so choices do not depend on the cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from tidegate.route.bucket import hash_of
from tidegate.route.hash import BY_HASH
from tidegate.route.key_memory import CAM, EXACT, Words
from tidegate.route.ledger import Chosen, Ledger
from tidegate.route.load_aware import AffinityByTuples, ByKeys, PartialKey, Shuffle, by_period
from tidegate.route.mapping import Mapping
from tidegate.route.partitioner import Int32s, Int64s, Partitioner, Units
from tidegate.route.selection import Measured, PartitionerChoice, selected

Scalar = TypeVar("Scalar", bound=np.generic)

FIRST_LOOK, NEXT_LOOK = 1_024, 4
"""In a period without one before it, the choice is reconsidered after FIRST_LOOK tuples, then each
time that there are NEXT_LOOK times as many."""


@dataclass(frozen=True)
class Auto(ByKeys):
    """`hash`, `cam`, `pk` or `shuffle`, whichever is cheapest for the counts of the period before.

    `d` is for `cam` and `pk`, `keys` for `cam`. Choices are part of the state: see `Ledger.chosen`.
    Total work: a key that is split costs a merge for each part; `selection` weighs that.
    """

    name: ClassVar[str] = "auto"
    remembers: ClassVar[str] = "choices"
    choosing: ClassVar[str] = "each source chooses hash, cam, pk or shuffle for each window"
    settled_because: ClassVar[str] = "auto is hash, for a key is as much work as others"
    number: ClassVar[int] = CAM
    looks_back = True

    def settled(self, even: bool) -> Partitioner:
        return BY_HASH if even else self

    def in_one_place(self) -> Partitioner:
        return BY_HASH

    def buckets(self, units: Units, mapping: Mapping) -> Int32s:
        ledger = units.ledger or Ledger.begun(mapping, self.keys)
        every = UnitsPart.of(units)
        periods = np.zeros(units.rows, np.int64) if units.periods is None else units.periods
        found = np.empty(units.rows, np.int32)
        for low, high in pairwise(_beginnings(periods, ledger)):
            run = slice(low, high)
            self._begin(ledger, int(periods[low]))
            for period, mine in by_period(periods[run]):
                self._begin(ledger, period)  # again, if a later period made the ledger forget it
                self._note_apart(ledger, period)
                found[run][mine] = self._period(ledger, period, every.only(run).only(mine))
        return found

    def _begin(self, ledger: Ledger, period: int) -> None:
        """Choose for a period that has no choice yet."""
        ledger.make_room(period)
        if ledger.tally(period).choice is not None:
            return
        held = ledger.held(period)
        told = self._told(ledger, period)
        choice = PartitionerChoice.HASH if held is None else held
        if told is not None:
            choice = selected(told, ledger.costs, choice)
        ledger.choose(Chosen(period, choice, held, told))

    def _told(self, ledger: Ledger, period: int) -> Measured | None:
        """The counts for a period's choice: of the period before, or its own so far."""
        before, survey = ledger.tallies.get(period - 1), ledger.survey(period)
        if before is not None and before.survey is not None:
            survey = before.survey
        elif survey.tuples < FIRST_LOOK:
            return None
        return ledger.measured(survey, self.d)

    def _note_apart(self, ledger: Ledger, period: int) -> None:
        """Record that a key may be in several places although cAM places all tuples.

        That may be if another task places tuples of the source too, if places are remembered only
        approximately or were forgotten, or if tuples of the next period, which overlapping windows
        share, were placed before these. A merge of parts is then needed.
        """
        late = ledger.overlapping and period + 1 in ledger.tallies
        together = ledger.alone and ledger.whole and self.keys == EXACT and not late
        if together or ledger.tally(period).choice is not PartitionerChoice.CAM:
            return
        if not any(chosen.apart and chosen.period == period for chosen in ledger.chosen):
            ledger.choose(Chosen(period, PartitionerChoice.CAM, PartitionerChoice.CAM, apart=True))

    def _period(self, ledger: Ledger, period: int, part: UnitsPart) -> Int32s:
        """The buckets of units of one period; the choice may change at each look."""
        before = ledger.tallies.get(period - 1)
        if before is not None and before.survey is not None:
            return self._placed(ledger, period, part)
        survey, found, start, rows = ledger.survey(period), [], 0, len(part.weights)
        while start < rows:
            look = _next_look(survey.tuples)
            ahead = np.cumsum(part.weights[start:])
            stop = start + int(np.searchsorted(ahead, look - survey.tuples)) + 1
            found.append(self._placed(ledger, period, part.only(slice(start, stop))))
            start = stop
            if survey.tuples >= look:
                self._look(ledger, period)
        return np.concatenate(found)

    def _look(self, ledger: Ledger, period: int) -> None:
        """Choose again within a period, from its counts so far."""
        held = ledger.tally(period).choice
        assert held is not None
        told = ledger.measured(ledger.survey(period), self.d)
        choice = selected(told, ledger.costs, held)
        if choice is not held:
            ledger.choose(Chosen(period, choice, held, told))

    def _placed(self, ledger: Ledger, period: int, part: UnitsPart) -> Int32s:
        bins, registers = ledger.survey(period).add(*part.counted)
        # The survey counts whatever is chosen: the next choice may be another one.
        ledger.note_survey(period, bins, registers)
        choice = ledger.tally(period).choice
        if choice is PartitionerChoice.CAM:
            by_affinity = AffinityByTuples(self.d, self.keys)
            return by_affinity.placed(ledger, period, part.words, part.weights)
        if choice is PartitionerChoice.PK:
            return PartialKey(self.d).placed(ledger, period, part.words, part.weights)
        if choice is PartitionerChoice.SHUFFLE:
            return Shuffle().placed(ledger, period, part.words, part.weights)
        # As `Hash` does; what instances have is counted for choices that follow.
        buckets = ledger.mapping.buckets
        by_bucket = bins.reshape(-1, buckets).sum(axis=0)
        sent = np.bincount(ledger.owners, by_bucket, ledger.places.count).astype(np.int64)
        ledger.tally(period).loads += sent
        ledger.note_sent(period, sent)
        return part.by_hash(buckets)


@dataclass(frozen=True)
class UnitsPart:
    """Some units: hashes of keys (`heads`), the key of each unit, and the tuples of each unit.

    Without `codes`, unit i has key i.
    """

    heads: Words
    codes: Int64s | None
    weights: Int64s

    @staticmethod
    def of(units: Units) -> UnitsPart:
        keys = units.rows if units.codes is None else 1
        heads = hash_of(units.keys) if units.keys else np.zeros(keys, np.uint64)
        weights = np.ones(units.rows, np.int64) if units.weights is None else units.weights
        return UnitsPart(heads, units.codes, weights)

    def only(self, rows: slice | Int64s) -> UnitsPart:
        if self.codes is None:
            return UnitsPart(self.heads[rows], None, self.weights[rows])
        return UnitsPart(self.heads, self.codes[rows], self.weights[rows])

    @property
    def words(self) -> Words:
        return self.spread(self.heads)

    @property
    def counted(self) -> tuple[Words, Int64s]:
        """The keys that occur, and the tuples of each."""
        if self.codes is None:
            return self.heads, self.weights
        tuples = np.bincount(self.codes, self.weights, len(self.heads)).astype(np.int64)
        there = np.flatnonzero(tuples)
        return self.heads[there], tuples[there]

    def by_hash(self, buckets: int) -> Int32s:
        """The bucket of each unit by its key alone, as `Hash` gives it."""
        return self.spread((self.heads % np.uint64(buckets)).astype(np.int32))

    def spread(self, by_key: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """An entry per unit from an entry per key."""
        return by_key if self.codes is None else by_key[self.codes]


def _beginnings(periods: Int64s, ledger: Ledger) -> Iterator[int]:
    """Where to cut units so that only the first unit of each stretch may be new in its period.

    The last item is the number of units. A choice for a period is made at its first unit, from all
    units before it: so these must be counted first.
    """
    if not len(periods):
        return
    steps = np.diff(periods)
    if (steps >= 0).all():
        first = np.concatenate([[0], np.flatnonzero(steps) + 1])
        numbers = periods[first]
    else:
        numbers, first = np.unique(periods, return_index=True)
    held = (ledger.tallies.get(period) for period in numbers.tolist())
    is_new = np.array([tally is None or tally.choice is None for tally in held])
    yield from sorted({0, *first[is_new].tolist()})
    yield len(periods)


def _next_look(tuples: int) -> int:
    """The first number of tuples above this one at which the choice is reconsidered."""
    look = FIRST_LOOK
    while look <= tuples:
        look *= NEXT_LOOK
    return look
