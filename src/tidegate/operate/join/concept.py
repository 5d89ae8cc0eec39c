"""Which tuples a join by equality keeps of its sides where it sheds by concept, before it matches.

Of each key of a side the **first** few tuples of a pane of time are kept, and of the others those
with a priority below the rate (`approx.priority`). So a tuple is kept with a probability that is
known before it is looked at, 1 or the rate, and independently of all others: a pair that is found
stands for 1 / (left probability * right probability) pairs, and sums over pairs are estimated
without bias. Which tuples are first follows from the total order alone.

It is done in two steps. A map task keeps the first of its split, which are more, and drops the
others before anything is sent. The instance that owns the keys finds the first of all among them;
what it has to remember is how many first tuples the keys of the pane at hand have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.approx.array import Ints
from tidegate.approx.priority import priorities
from tidegate.approx.rate import limit_of
from tidegate.batch import MAX_US, MIN_US, SEQ, SRC, TS, ints
from tidegate.duration import duration_text
from tidegate.operate.join.bound import codes_of
from tidegate.operate.join.chain import BUCKET
from tidegate.operate.join.spec import PairInterval
from tidegate.operate.join.tuple_order import total_order
from tidegate.operate.keeper import Keeper, OrderHorizon
from tidegate.operate.operator import InstanceWork
from tidegate.state.bucket_set import BucketSet
from tidegate.state.compaction import by_bucket
from tidegate.state.segment import Segment, read_segment, write_segment

FIRST = "first"
"""What the segments hold: how many first tuples keys have in the pane at hand."""

ALMOST = float(np.nextafter(1.0, 0.0))
"""A probability that is 1 for all that is computed with it, and yet not."""

NO_KEY = -1.0
"""The code of tuples whose key has a NULL. None is first of its key: they have no partners, and
what else is in their keys would decide which instance counts them."""

_PANE, _SIDE, _CODE, _TUPLES = "pane", "side", "code", "tuples"

_SCHEMA = pa.schema(
    [
        (BUCKET, pa.int32()),
        (_PANE, pa.int64()),
        (_SIDE, pa.int8()),
        (_CODE, pa.float64()),
        (_TUPLES, pa.int64()),
    ]
)

Mask = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.float64]


@dataclass(frozen=True)
class FirstKeeper(Keeper):
    """What is known of a pane goes with it."""

    pane_us: int
    order = _PANE

    @property
    def columns(self) -> list[str]:
        return list(_SCHEMA.names)

    def horizon(
        self, frontier_us: int, tuples: int, segments: Sequence[Segment] = ()
    ) -> OrderHorizon:
        return OrderHorizon(_PANE, _pane_of(frontier_us, self.pane_us))

    def arrange(self, rows: pa.Table) -> pa.Table:
        return by_bucket(rows.select(_SCHEMA.names), self.order)


@dataclass(frozen=True)
class ConceptSieve:
    """Keeps the `fewest` first tuples of each key, side and pane, and the share `rate` of others.

    `seeds` are those of the sides: two, because the sides may be of one stream. `kept` are the
    columns that say with which probability a tuple was kept; `signs` those of random bits that go
    with it, and their seeds, where somebody wants them. Where a key has half of its first tuples,
    others of it may have been shed: such tuples are `ALMOST` certain, so that it can be told.
    """

    equalities: tuple[PairInterval, ...]
    seeds: tuple[int, int]
    kept: tuple[str, str]
    rate: float
    fewest: int
    pane_us: int
    signs: tuple[tuple[str, int], tuple[str, int]] | None = None

    @property
    def text(self) -> str:
        """What it does, for people."""
        share = f"{(1 - self.rate) * 100:.10g} percent"
        first = f"the first {self.fewest} of each key in {duration_text(self.pane_us)}"
        return f"{share} of the tuples of both sides, keeping {first}, before they are sent"

    def of_split(self, side: int, tuples: pa.Table) -> pa.Table:
        """What a map task sends of a split: what it keeps if nothing came before, in its order.

        One sort by key and time; a key that is first in all splits of a batch is sent by all.
        """
        place = total_order(tuples)
        codes = self.codes(side, tuples)[place]
        kept = np.empty(len(place), np.bool_)
        kept[place] = (_ranks(codes, self.panes(tuples)[place]) < self.fewest) & (codes != NO_KEY)
        kept |= self.below(side, tuples)
        return tuples if kept.all() else tuples.filter(pa.array(kept))

    def below(self, side: int, tuples: pa.Table) -> Mask:
        """Which tuples are kept wherever they stand."""
        words = priorities(self.seeds[side], ints(tuples, SRC), ints(tuples, SEQ))
        return np.asarray(words < np.uint64(limit_of(self.rate)))

    def codes(self, side: int, tuples: pa.Table) -> Codes:
        """Keys as numbers, `NO_KEY` for those with a NULL, which are equal to nothing."""
        return np.nan_to_num(codes_of(self.equalities, side, tuples), nan=NO_KEY)

    def panes(self, tuples: pa.Table) -> Ints:
        """The panes of tuples."""
        return ints(tuples, TS) // self.pane_us


class FirstTuples:
    """The first tuples of the pane at hand, of one instance in one batch; grows with its keys."""

    def __init__(self, sieve: ConceptSieve, work: InstanceWork) -> None:
        self._sieve = sieve
        self._work = work
        held: pa.Table | None = work.kept.take(FIRST)
        self._known = self._read() if held is None else held
        self._news: list[pa.Table] = []
        self.shed = 0

    def sieved(self, side: int, tuples: pa.Table) -> tuple[pa.Table, Mask]:
        """The tuples of a side that are kept, of all that arrived, and which of them that are.

        `tuples` are in the total order. The probability with which each is kept is a column more.
        """
        sieve = self._sieve
        codes, panes = sieve.codes(side, tuples), sieve.panes(tuples)
        before = self._before(side, codes, panes)
        rank = _ranks(codes, panes) + before
        first = (rank < sieve.fewest) & (codes != NO_KEY)
        kept = first | sieve.below(side, tuples)
        self._note(side, tuples, codes, panes, first)
        self.shed += int(len(kept) - kept.sum())
        probability = np.where(first, 1.0, sieve.rate)
        if sieve.signs is not None:
            probability[first & (2 * rank >= sieve.fewest)] = ALMOST
        tuples = tuples if kept.all() else tuples.filter(pa.array(kept))
        tuples = tuples.append_column(sieve.kept[side], pa.array(probability[kept]))
        if sieve.signs is not None:
            name, seed = sieve.signs[side]
            words = priorities(seed, ints(tuples, SRC), ints(tuples, SEQ)) >> np.uint64(1)
            tuples = tuples.append_column(name, pa.array(words.astype(np.int64)))
        return tuples, kept

    def written(self) -> tuple[Segment, ...]:
        """What the next batch has to know, as a segment; it is also left in memory."""
        open_ = _pane_of(self._work.frontier_us, self._sieve.pane_us)
        parts = [part.filter(pa.array(ints(part, _PANE) >= open_)) for part in self._news]
        rows = pa.concat_tables(parts) if parts else _SCHEMA.empty_table()
        known = self._known.filter(pa.array(ints(self._known, _PANE) >= open_))
        known = pa.concat_tables([known, rows]).combine_chunks()
        self._work.kept.leave(FIRST, known, known.nbytes)
        if not rows.num_rows:
            return ()
        name = f"{self._work.name}-{FIRST}"
        return (write_segment(self._work.store, name, by_bucket(rows, _PANE), _PANE, 0),)

    def _read(self) -> pa.Table:
        work = self._work
        mine = BucketSet.where(work.mapping.owner_array == work.instance)
        segments = work.state.get(FIRST, ())
        read = [read_segment(work.store, s, mine, _SCHEMA.names) for s in segments]
        return pa.concat_tables([_SCHEMA.empty_table(), *(r.cast(_SCHEMA) for r in read)])

    def _before(self, side: int, codes: Codes, panes: Ints) -> Ints:
        """How many first tuples of the keys and panes of tuples there were before the batch."""
        known = self._known.filter(pa.array(self._known.column(_SIDE).to_numpy() == side))
        if not known.num_rows or not len(codes):
            return np.zeros(len(codes), np.int64)
        theirs = known.column(_CODE).to_numpy()
        groups = _groups(
            np.concatenate([theirs, codes]), np.concatenate([ints(known, _PANE), panes])
        )
        held = np.bincount(groups[: len(theirs)], ints(known, _TUPLES), groups.max() + 1)
        return held[groups[len(theirs) :]].astype(np.int64)

    def _note(self, side: int, tuples: pa.Table, codes: Codes, panes: Ints, first: Mask) -> None:
        """Remember new first tuples, those of a key and pane together."""
        if not first.any():
            return
        places = np.flatnonzero(first)
        groups = _groups(codes[places], panes[places])
        _, at, counts = np.unique(groups, return_index=True, return_counts=True)
        rows = places[at]
        bucket: npt.NDArray[np.int32] = tuples.column(BUCKET).to_numpy()
        columns = [bucket[rows], panes[rows], np.full(len(rows), side, np.int8), codes[rows]]
        self._news.append(pa.table([pa.array(c) for c in (*columns, counts)], schema=_SCHEMA))


def _pane_of(frontier_us: int, pane_us: int) -> int:
    return frontier_us if frontier_us in (MIN_US, MAX_US) else frontier_us // pane_us


def _groups(codes: Codes, panes: Ints) -> Ints:
    """Numbers from 0 on for keys and panes."""
    order = np.lexsort((panes, codes))
    new = _begins(codes[order], panes[order])
    groups = np.empty(len(order), np.int64)
    groups[order] = np.cumsum(new) - 1
    return groups


def _ranks(codes: Codes, panes: Ints) -> Ints:
    """How many tuples of the same key and pane stand before each."""
    order = np.lexsort((panes, codes))
    places = np.arange(len(order))
    new = _begins(codes[order], panes[order])
    ranks = np.empty(len(order), np.int64)
    ranks[order] = places - np.maximum.accumulate(np.where(new, places, 0))
    return ranks


def _begins(codes: Codes, panes: Ints) -> Mask:
    new = np.ones(len(codes), np.bool_)
    new[1:] = (codes[1:] != codes[:-1]) | (panes[1:] != panes[:-1])
    return new
