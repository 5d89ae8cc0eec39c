"""Chooses the tuples that an equality join keeps where it sheds by concept, before it matches them.

In each pane of time, the **first** few tuples of each key and side are kept, and of the others
those with a priority below a rate (`approx.priority`). So the probability with which a tuple is
kept is known before its priority is drawn, and priorities are independent. A pair that is found
then stands for 1 / (left probability * right probability) pairs, and sums over pairs are estimated
without bias. A **rule** says for which keys the first tuples are certain, and scales the rate for
the others. Both follow from the earlier tuples in the total order, never from priorities.

There are two steps. A map task keeps the first tuples of its split, which are at least as many as
the first of all, drops the others and counts them. The instance that owns a key finds the first of
all among what arrives, and remembers the counts (`key_count`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.approx.array import Ints
from tidegate.approx.priority import priorities
from tidegate.approx.rate import WHOLE
from tidegate.batch import SEQ, SRC, TS, ints
from tidegate.calendar.duration import duration_text
from tidegate.operate.join.chain.chain import BUCKET
from tidegate.operate.join.key_count import (
    NO_KEY,
    Codes,
    KeyCounts,
    Known,
    Mask,
    SideKeys,
    numbered,
    ranks,
)
from tidegate.operate.join.predicate.bound import codes_of
from tidegate.operate.join.spec import PairInterval
from tidegate.operate.join.tuple_order import places, total_order
from tidegate.operate.operator import InstanceWork
from tidegate.state.segment.segment import Segment

COUNTED = "counted"
"""The column that counts the tuples of a key and pane, sent or not: the first of each split has the
number, the others have 0."""

ALMOST = float(np.nextafter(1.0, 0.0))
"""A probability that computes like 1 and can be told from it."""

Floats = npt.NDArray[np.float64]


class KeyRule(Protocol):
    """Says which keys of a side are worth more than others; decided from counts alone."""

    @property
    def slack(self) -> int:
        """The largest value of `scale`: map tasks keep this many times the rate."""

    @property
    def text(self) -> str:
        """The keys whose first tuples are certain, in words."""

    def certain(self, known: Known) -> Mask:
        """Whether each tuple is kept for certain if it is among the first of its key."""

    def scale(self, known: Known) -> Floats:
        """The factor on the rate for each tuple that is not certain."""


@dataclass(frozen=True)
class EveryKey:
    """Treats all keys alike, for errors that must be kept for new keys too."""

    slack = 1
    text = "each key"

    def certain(self, known: Known) -> Mask:
        return np.ones(len(known.rank), np.bool_)

    def scale(self, known: Known) -> Floats:
        return np.ones(len(known.rank))


@dataclass(frozen=True)
class KeysWithPartners:
    """Prefers keys that the other side has, and keeps as many of their tuples on both sides.

    The first tuples of a key that the other side has are certain. So are those of a new key: a
    partner may be on the way. A key that was there before, while the other side had nothing of it,
    is shed as far as possible.

    Take a key with n tuples here and m there, kept with probabilities p and q. The count of its
    pairs then has a relative variance of about 1 / pn + 1 / qm. For a given number of kept tuples
    that is least if both sides keep as many. Hence p is the rate times (n + m) / 2n, at most times
    the slack; half the rate for keys that the other side does not have, and the rate for keys that
    neither has.
    """

    slack = 2
    text = "each key that is new or that the other side has"

    def certain(self, known: Known) -> Mask:
        return np.asarray(known.met | (known.own == 0))

    def scale(self, known: Known) -> Floats:
        both = known.own + known.other
        most = np.where(both > 0, float(self.slack), 1.0)
        share = np.divide(both, 2 * known.own, out=most, where=known.own > 0)
        return np.asarray(np.minimum(share, self.slack))


@dataclass(frozen=True)
class ConceptSieve:
    """Keeps the first `fewest` tuples of each key, side and pane, and a share `rate` of the others.

    The `rule` says for which keys, and scales the rate. `reach` has by side for how many panes its
    keys are remembered. `seeds` has a seed for each side, because both may be of one stream. `kept`
    names the columns with the probability by which a tuple was kept, `signs` the columns of random
    bits beside them and their seeds, where the answer needs those. With signs, certain tuples from
    the second half of the first ones on are `ALMOST` certain: such a key may have shed others.
    """

    equalities: tuple[PairInterval, ...]
    seeds: tuple[int, int]
    kept: tuple[str, str]
    rate: float
    fewest: int
    pane_us: int
    reach: tuple[int, int]
    rule: KeyRule
    signs: tuple[tuple[str, int], tuple[str, int]] | None = None

    @property
    def text(self) -> str:
        """What is shed, in words."""
        share = f"{(1 - self.rate) * 100:.10g} percent"
        first = f"the first {self.fewest} of {self.rule.text} in {duration_text(self.pane_us)}"
        return f"{share} of the tuples of both sides, keeping {first}, before they are matched"

    def of_split(self, side: int, tuples: pa.Table) -> pa.Table:
        """The tuples of a split that may be kept, in their order, with COUNTED.

        Costs one sort by key and time. Every split sends the first tuples of its keys, so a key
        that is in all splits of a batch is sent by all.
        """
        place = total_order(tuples)
        codes = self.codes(side, tuples)[place]
        groups, _ = numbered(codes, self.panes(tuples)[place])
        rank, real = ranks(groups), codes != NO_KEY
        kept, counted = np.empty(len(place), np.bool_), np.empty(len(place), np.int64)
        kept[place] = (rank < self.fewest) & real
        counted[place] = np.where((rank == 0) & real, np.bincount(groups)[groups], 0)
        # The slack is the largest scale of any key: what this drops, no rule would keep.
        kept |= self.below(side, tuples, np.array([self.rate * self.rule.slack]))
        tuples = tuples.append_column(COUNTED, pa.array(counted))
        return tuples if kept.all() else tuples.filter(pa.array(kept))

    def below(self, side: int, tuples: pa.Table, rates: Floats) -> Mask:
        """Which tuples have a priority below these rates; all of them at rate 1."""
        words = priorities(self.seeds[side], ints(tuples, SRC), ints(tuples, SEQ))
        limits = (np.minimum(rates, ALMOST) * WHOLE).astype(np.uint64)
        return np.asarray((words < limits) | (rates >= 1))

    def codes(self, side: int, tuples: pa.Table) -> Codes:
        """The codes of keys; `NO_KEY` for keys with a NULL, which equal nothing."""
        return np.nan_to_num(codes_of(self.equalities, side, tuples), nan=NO_KEY)

    def panes(self, tuples: pa.Table) -> Ints:
        """The pane of each tuple."""
        return ints(tuples, TS) // self.pane_us


class KeptTuples:
    """Chooses the tuples of both sides that one instance keeps, in one batch."""

    def __init__(self, sieve: ConceptSieve, work: InstanceWork) -> None:
        self._sieve = sieve
        self._counts = KeyCounts(work, sieve.pane_us, sieve.reach, sieve.fewest)
        self.shed = 0

    def sieved(
        self, tables: Sequence[pa.Table], orders: Sequence[list[Ints]]
    ) -> tuple[list[pa.Table], list[list[Ints]]]:
        """The tuples that are kept, by side, and their columns of the total order.

        `tables` are in the total order; they have COUNTED where a map task has sent something. The
        result has the probability of each tuple in its place.
        """
        sieve = self._sieve
        places_of = places(orders[0], orders[1])
        came = [COUNTED in table.column_names for table in tables]
        sides = [
            SideKeys(
                table.column(BUCKET).to_numpy(),
                sieve.codes(side, table),
                sieve.panes(table),
                places_of[side],
                ints(table, COUNTED) if arrived else np.empty(0, np.int64),
            )
            for side, (table, arrived) in enumerate(zip(tables, came, strict=True))
        ]
        found = list(tables)
        kept_orders = list(orders)
        for side, known in enumerate(self._counts.take(sides)):
            if came[side]:
                found[side], kept = self._kept(side, tables[side], sides[side].codes, known)
                kept_orders[side] = [column[kept] for column in orders[side]]
        return found, kept_orders

    def written(self) -> tuple[Segment, ...]:
        """What the next batch has to know, as a segment; it is also left in memory."""
        return self._counts.written()

    def _kept(
        self, side: int, tuples: pa.Table, codes: Codes, known: Known
    ) -> tuple[pa.Table, Mask]:
        """The tuples of a side that are kept, and which of them that are."""
        sieve, real = self._sieve, codes != NO_KEY
        first = (known.rank < sieve.fewest) & sieve.rule.certain(known) & real
        scale = np.where(real, sieve.rule.scale(known), 1.0)
        probability = np.where(first, 1.0, np.minimum(sieve.rate * scale, 1.0))
        kept = sieve.below(side, tuples, probability)
        self.shed += int(len(kept) - kept.sum())
        if sieve.signs is not None:
            probability[first & (2 * known.rank >= sieve.fewest)] = ALMOST
        tuples = tuples.drop_columns(COUNTED)
        tuples = tuples if kept.all() else tuples.filter(pa.array(kept))
        tuples = tuples.append_column(sieve.kept[side], pa.array(probability[kept]))
        if sieve.signs is not None:
            name, seed = sieve.signs[side]
            words = priorities(seed, ints(tuples, SRC), ints(tuples, SEQ)) >> np.uint64(1)
            tuples = tuples.append_column(name, pa.array(words.astype(np.int64)))
        return tuples, kept
