"""Counts what one source has sent to each instance, by period, across batches.

A **period** is as long as a window and has a tally of its own: so a partitioner begins anew with
each window. A batch's additions come out as rows, which are stored with the state of the operator,
and from which the ledger is made again. A row is one of these:

- a key that was new to its instance: its `word`, the `bucket` that it went to, and 0 `tuples`
- tuples sent to an instance: a `bucket` of the instance, the word 0, and the number of `tuples`
- tuples counted by a survey: `tuples` in the bin of `bucket` and part `word`, which is from 1 on
- a register of a survey that has risen: `word` is 32 times its number plus its value, `tuples` -1

Rows of the first two kinds belong to one epoch: with other owners of the buckets, counts begin
anew. A survey does not depend on owners.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa

from tidegate.batch import MIN_US
from tidegate.route.bucket import hash_of
from tidegate.route.key_memory import KeyMemory, Words, key_memory
from tidegate.route.mapping import Mapping
from tidegate.route.partitioner import Int32s, Int64s
from tidegate.route.selection import CHEAP, Costs, Measured, PartitionerChoice
from tidegate.route.survey import Survey

MOST_TALLIES = 256
"""A ledger with so many tallies forgets all but the newest: a batch may have many short windows."""

_HELD = 32
"""A register of a sketch is less than this."""

LEDGER_SCHEMA = pa.schema(
    [
        ("bucket", pa.int32()),
        ("period", pa.int64()),
        ("epoch", pa.int64()),
        ("source", pa.int64()),
        ("word", pa.uint64()),
        ("tuples", pa.int64()),
    ]
)


def source_number(source: str) -> int:
    """The number of a source in the rows of ledgers."""
    return int(hash_of([pa.array([source])]).view(np.int64)[0])


@dataclass
class Tally:
    """The counts of one period: tuples and keys by instance.

    Where a source chooses its partitioner, also its choice, and the survey for it.
    """

    loads: Int64s
    keys: KeyMemory | None
    survey: Survey | None = None
    choice: PartitionerChoice | None = None

    @property
    def nbytes(self) -> int:
        parts = (self.keys, self.survey)
        return self.loads.nbytes + sum(0 if part is None else part.nbytes for part in parts)


@dataclass(frozen=True)
class Chosen:
    """A source's choice for a period from some tuple on, and the choice before it.

    `measured` is what it was chosen from; None if there was nothing yet. `apart` says that tasks
    which did not see each other's keys have placed tuples: a key may be in several places whatever
    was chosen.
    """

    period: int
    choice: PartitionerChoice
    before: PartitionerChoice | None = None
    measured: Measured | None = None
    apart: bool = False


@dataclass(frozen=True)
class Places:
    """Numbers the instances that own buckets, and finds the bucket of a key at an instance."""

    owners: Int64s
    buckets: Int32s
    """All buckets, by owner."""
    first: Int64s
    """Where the buckets of each owner begin, and where the last ones end."""

    @staticmethod
    def of(mapping: Mapping) -> Places:
        owners, counts = np.unique(mapping.owner_array, return_counts=True)
        order = np.argsort(mapping.owner_array, kind="stable").astype(np.int32)
        first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return Places(owners.astype(np.int64), order, first)

    @property
    def count(self) -> int:
        return len(self.owners)

    def bucket(self, words: Words, chosen: Int32s) -> Int32s:
        """The bucket of each unit, from its instance and its key; without a division."""
        begin = self.first[chosen]
        size = (self.first[chosen + 1] - begin).astype(np.uint64)
        low = words & np.uint64(2**32 - 1)
        found: Int32s = self.buckets[begin + ((low * size) >> np.uint64(32)).astype(np.int64)]
        return found

    def numbers(self, mapping: Mapping, buckets: Int32s) -> Int64s:
        """The numbers of the instances that own buckets."""
        return np.searchsorted(self.owners, mapping.owner_array[buckets]).astype(np.int64)


@dataclass
class Ledger:
    """The tallies of a source in one epoch; grows with the open periods and the keys in them."""

    mapping: Mapping
    kind: str | None
    """The kind of memory for keys; None for no memory."""
    source: int
    places: Places
    overlapping: bool = False
    """Whether windows cover two periods, so that a partitioner may look back to the one before."""
    tallies: dict[int, Tally] = field(default_factory=dict)
    whole: bool = True
    """Whether all counts are here; if not, the next batch must read them."""
    costs: Costs = CHEAP
    """The costs that choices are made by."""
    alone: bool = True
    """Whether no other task places tuples of the source in the same batch."""
    informed: bool = False
    """Whether the source's choices of earlier batches are here."""
    former: dict[int, PartitionerChoice] = field(default_factory=dict)
    """The choices for periods in earlier epochs."""
    chosen: list[Chosen] = field(default_factory=list)
    """New choices; the caller takes them away."""
    _news: list[pa.Table] = field(default_factory=list)

    @staticmethod
    def begun(
        mapping: Mapping, kind: str | None, source: int = 0, overlapping: bool = False
    ) -> Ledger:
        return Ledger(mapping, kind, source, Places.of(mapping), overlapping)

    @property
    def nbytes(self) -> int:
        return sum(tally.nbytes for tally in self.tallies.values())

    def tally(self, period: int) -> Tally:
        """The tally of a period; made if there is none."""
        held = self.tallies.get(period)
        if held is None:
            loads = np.zeros(self.places.count, np.int64)
            keys = None if self.kind is None else key_memory(self.kind, self.places.count)
            held = self.tallies[period] = Tally(loads, keys)
        return held

    def survey(self, period: int) -> Survey:
        """The survey of a period; made if there is none."""
        tally = self.tally(period)
        if tally.survey is None:
            tally.survey = Survey(self.mapping.buckets)
        return tally.survey

    @cached_property
    def owners(self) -> Int64s:
        """The number of each bucket's instance."""
        return self.places.numbers(self.mapping, np.arange(self.mapping.buckets, dtype=np.int32))

    def measured(self, survey: Survey, d: int) -> Measured:
        """A survey's measures for a choice among the instances of this epoch."""
        return survey.measured(self.owners, self.places.count, d)

    def choose(self, chosen: Chosen) -> None:
        """Make a choice for the units of a period that are still to come."""
        self.tally(chosen.period).choice = chosen.choice
        self.chosen.append(chosen)

    def held(self, period: int) -> PartitionerChoice | None:
        """The choice that holds as a period begins: its own of an earlier epoch, or the last."""
        before = self.tallies.get(period - 1)
        last = None if before is None else before.choice
        return self.former.get(period, self.former.get(period - 1) if last is None else last)

    def note_keys(self, period: int, words: Words, buckets: Int32s) -> None:
        """Note keys that were new to instances in a period, with the buckets they went to."""
        self._note(period, buckets, words, np.zeros(len(words), np.int64))

    def note_sent(self, period: int, sent: Int64s) -> None:
        """Note how many more tuples each instance was sent in a period."""
        to = np.flatnonzero(sent)
        buckets = self.places.buckets[self.places.first[to]]
        self._note(period, buckets, np.zeros(len(to), np.uint64), sent[to])

    def note_survey(self, period: int, bins: Int64s, registers: Int64s) -> None:
        """Note additions to the survey of a period: tuples of all bins, and risen registers."""
        some = np.flatnonzero(bins)
        part, bucket = np.divmod(some, self.mapping.buckets)
        raised = registers * _HELD + self.survey(period).held(registers)
        self._note(
            period,
            np.concatenate([bucket.astype(np.int32), np.zeros(len(raised), np.int32)]),
            np.concatenate([part + 1, raised]).astype(np.uint64),
            np.concatenate([bins[some], np.full(len(raised), -1, np.int64)]),
        )

    def _note(self, period: int, bucket: Int32s, word: Words, tuples: Int64s) -> None:
        rows = len(bucket)
        if not rows:
            return
        self._news.append(
            pa.Table.from_arrays(
                [
                    pa.array(bucket, pa.int32()),
                    pa.array(np.full(rows, period, np.int64)),
                    pa.array(np.full(rows, int(self.mapping.epoch), np.int64)),
                    pa.array(np.full(rows, self.source, np.int64)),
                    pa.array(word),
                    pa.array(tuples),
                ],
                schema=LEDGER_SCHEMA,
            )
        )

    def news(self) -> pa.Table | None:
        """The rows noted since the last call; None if there are none."""
        held, self._news = self._news, []
        return pa.concat_tables(held).combine_chunks() if held else None

    def restore(self, tables: Iterable[pa.Table], since: int = MIN_US) -> None:
        """Take up rows of earlier batches, of periods from `since` on.

        Ignores rows of other sources, and rows of other epochs except those of surveys.
        """
        for table in tables:
            tuples, word = table.column("tuples").to_numpy(), table.column("word").to_numpy()
            mine = table.column("epoch").to_numpy() == int(self.mapping.epoch)
            mine |= (tuples < 0) | ((tuples > 0) & (word > 0))
            mine &= table.column("source").to_numpy() == self.source
            mine &= table.column("period").to_numpy() >= since
            rows = table.filter(pa.array(mine)).combine_chunks()
            period = rows.column("period").to_numpy()
            for number in np.unique(period):
                self._restore(int(number), rows.filter(pa.array(period == number)))

    def _restore(self, period: int, rows: pa.Table) -> None:
        tally, bucket = self.tally(period), rows.column("bucket").to_numpy()
        numbers = self.places.numbers(self.mapping, bucket)
        tuples, word = rows.column("tuples").to_numpy(), rows.column("word").to_numpy()
        is_load = (tuples > 0) & (word == 0)
        np.add.at(tally.loads, numbers[is_load], tuples[is_load])
        if tally.keys is not None:
            is_key = tuples == 0
            tally.keys.add(word[is_key], numbers[is_key])
        is_bin, is_new = (tuples > 0) & (word > 0), tuples < 0
        if is_bin.any() or is_new.any():
            part = word[is_bin].astype(np.int64) - 1
            bins = part * self.mapping.buckets + bucket[is_bin]
            registers, held = np.divmod(word[is_new].astype(np.int64), _HELD)
            self.survey(period).restore(bins, tuples[is_bin], registers, held)

    def make_room(self, period: int) -> None:
        """Forget old periods if there are many; call it before units of a period are placed.

        No units of an earlier period may follow in the batch.
        """
        # Only the memory forgets; the rows are stored. `whole` has the next batch read them.
        if len(self.tallies) >= MOST_TALLIES:
            self.forget(period - 1)
            self.whole = False

    def forget(self, before: int) -> None:
        """Forget the periods below one; no unit may come for them any more."""
        for held in (self.tallies, self.former):
            for period in [p for p in held if p < before]:
                del held[period]
