"""Which tuples a join by equality keeps of its sides where it sheds by concept, before it matches.

Of each key of a side the **first** few tuples of a pane of time are kept, and of the others those
with a priority below a rate (`approx.priority`). So a tuple is kept with a probability that is
known before it is looked at, and independently of all others: a pair that is found stands for
1 / (left probability * right probability) pairs, and sums over pairs are estimated without bias. A
**rule** says for which keys first tuples are certain, and with which rate the others are kept. Both
follow from the tuples before in the total order, not from their priorities.

It is done in two steps. A map task keeps the first of its split, which are more, and drops the
others before anything is sent; it says how many there were. The instance that owns the keys finds
the first of all among them, and remembers counts (`key_count`).
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
from tidegate.duration import duration_text
from tidegate.operate.join.bound import codes_of
from tidegate.operate.join.chain import BUCKET
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
from tidegate.operate.join.spec import PairInterval
from tidegate.operate.join.tuple_order import places, total_order
from tidegate.operate.operator import InstanceWork
from tidegate.state.segment import Segment

COUNTED = "counted"
"""The column that counts the tuples of a key and pane, sent or not: the first of each split has the
number, the others have 0."""

ALMOST = float(np.nextafter(1.0, 0.0))
"""A probability that is 1 for all that is computed with it, and yet not."""

Floats = npt.NDArray[np.float64]


class KeyRule(Protocol):
    """Which keys of a side are worth more than others, by what is known of them."""

    @property
    def slack(self) -> int:
        """How many times the rate tuples are kept with that are not certain, at most."""

    @property
    def text(self) -> str:
        """Whose first tuples are certain, for people."""

    def certain(self, known: Known) -> Mask:
        """Whether a tuple is certain if it is among the first of its key."""

    def scale(self, known: Known) -> Floats:
        """How many times the rate a tuple is kept with that is not certain."""


@dataclass(frozen=True)
class EveryKey:
    """All keys alike. For an error that must be kept also of keys that are new."""

    slack = 1
    text = "each key"

    def certain(self, known: Known) -> Mask:
        return np.ones(len(known.rank), np.bool_)

    def scale(self, known: Known) -> Floats:
        return np.ones(len(known.rank))


@dataclass(frozen=True)
class KeysWithPartners:
    """Keys that the other side has: their first tuples are certain, and both sides share alike.

    A new key has the benefit of the doubt: a partner of its first tuples may be on the way. One
    that came before, while the other side had nothing of it, is shed as far as it can be.

    Of a key with n tuples here and m there, kept with p and q, a count of pairs has a variance of
    about 1 / pn + 1 / qm, relative to its square: least, for so many tuples of both, if as many are
    kept of one side as of the other. Hence p is the rate times (n + m) / 2n, up to the slack: half
    of it for keys that the other side does not have. Where neither has the key it is the rate.
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
    """Keeps the `fewest` first tuples of each key, side and pane, and the share `rate` of others.

    The `rule` says of which keys, and scales the rate. `reach` is by side for how many panes its
    keys are remembered. `seeds` are those of the sides: two, because the sides may be of one
    stream. `kept` are the columns that say with which probability a tuple was kept; `signs` those
    of random bits that go with it, and their seeds, where somebody wants them. Where a key has half
    of its first tuples, others of it may have been shed: such tuples are `ALMOST` certain, so that
    it can be told.
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
        """What it does, for people."""
        share = f"{(1 - self.rate) * 100:.10g} percent"
        first = f"the first {self.fewest} of {self.rule.text} in {duration_text(self.pane_us)}"
        return f"{share} of the tuples of both sides, keeping {first}, before they are matched"

    def of_split(self, side: int, tuples: pa.Table) -> pa.Table:
        """What a map task sends of a split: what may be kept, in its order, with COUNTED.

        One sort by key and time; a key that is first in all splits of a batch is sent by all.
        """
        place = total_order(tuples)
        codes = self.codes(side, tuples)[place]
        groups, _ = numbered(codes, self.panes(tuples)[place])
        rank, real = ranks(groups), codes != NO_KEY
        kept, counted = np.empty(len(place), np.bool_), np.empty(len(place), np.int64)
        kept[place] = (rank < self.fewest) & real
        counted[place] = np.where((rank == 0) & real, np.bincount(groups)[groups], 0)
        kept |= self.below(side, tuples, np.array([self.rate * self.rule.slack]))
        tuples = tuples.append_column(COUNTED, pa.array(counted))
        return tuples if kept.all() else tuples.filter(pa.array(kept))

    def below(self, side: int, tuples: pa.Table, rates: Floats) -> Mask:
        """Which tuples are kept at these rates wherever they stand; all of them at 1."""
        words = priorities(self.seeds[side], ints(tuples, SRC), ints(tuples, SEQ))
        limits = (np.minimum(rates, ALMOST) * WHOLE).astype(np.uint64)
        return np.asarray((words < limits) | (rates >= 1))

    def codes(self, side: int, tuples: pa.Table) -> Codes:
        """Keys as numbers, `NO_KEY` for those with a NULL, which are equal to nothing."""
        return np.nan_to_num(codes_of(self.equalities, side, tuples), nan=NO_KEY)

    def panes(self, tuples: pa.Table) -> Ints:
        """The panes of tuples."""
        return ints(tuples, TS) // self.pane_us


class KeptTuples:
    """Chooses the tuples that are kept of both sides, of one instance in one batch."""

    def __init__(self, sieve: ConceptSieve, work: InstanceWork) -> None:
        self._sieve = sieve
        self._counts = KeyCounts(work, sieve.pane_us, sieve.reach, sieve.fewest)
        self.shed = 0

    def sieved(
        self, tables: Sequence[pa.Table], orders: Sequence[list[Ints]]
    ) -> tuple[list[pa.Table], list[list[Ints]]]:
        """What is kept of the tuples that arrived, by side, and the columns that place it.

        `tables` are in the total order, and have COUNTED where a map task has sent something. The
        probability with which a tuple is kept is a column in its place.
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
