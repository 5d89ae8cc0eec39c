"""What one source has sent to each instance, period by period, between batches of map tasks.

A **period** is as long as a window, and has a tally of its own: that is how a partitioner begins
anew with each window. What a batch adds comes out as rows, which are stored with the state of the
operator; from them the ledger is made again. A row has the `bucket` that units went to, and either
the `word` of a key that was new to its instance, or a number of `tuples`. All belong to one epoch:
with other owners of the buckets a ledger begins anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from tidegate.batch import MIN_US
from tidegate.route.bucket import hash_of
from tidegate.route.key_memory import KeyMemory, Words, key_memory
from tidegate.route.mapping import Mapping
from tidegate.route.partitioner import Int32s, Int64s

MOST_TALLIES = 256
"""A ledger with more of them lets go of all but the newest: a batch may have many short windows."""

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
    """What stands for a source in the rows of ledgers."""
    return int(hash_of([pa.array([source])]).view(np.int64)[0])


@dataclass
class Tally:
    """One period: how many tuples each instance was sent, and which keys."""

    loads: Int64s
    keys: KeyMemory | None

    @property
    def nbytes(self) -> int:
        return self.loads.nbytes + (0 if self.keys is None else self.keys.nbytes)


@dataclass(frozen=True)
class Places:
    """The instances that own buckets, numbered, and which bucket of an instance a key goes to."""

    owners: Int64s
    buckets: Int32s
    """The buckets, those of the first owner first."""
    first: Int64s
    """Where the buckets of each owner begin, and after the last where they end."""

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
        """The bucket of each unit, by its instance and its key."""
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
    """How keys are remembered; None where they are not."""
    source: int
    places: Places
    overlapping: bool = False
    """Whether windows cover two periods, so that the one before counts for who looks back."""
    tallies: dict[int, Tally] = field(default_factory=dict)
    whole: bool = True
    """Whether all that was noted is here; where not, the next batch has to read it."""
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
        """That of a period, a new one where there is none."""
        held = self.tallies.get(period)
        if held is None:
            loads = np.zeros(self.places.count, np.int64)
            keys = None if self.kind is None else key_memory(self.kind, self.places.count)
            held = self.tallies[period] = Tally(loads, keys)
        return held

    def note(self, period: int, words: Words, buckets: Int32s, sent: Int64s, to: Int32s) -> None:
        """What units have added to a period: keys with their buckets, tuples with theirs."""
        bucket = np.concatenate([buckets, to])
        rows = len(bucket)
        self._news.append(
            pa.Table.from_arrays(
                [
                    pa.array(bucket, pa.int32()),
                    pa.array(np.full(rows, period, np.int64)),
                    pa.array(np.full(rows, int(self.mapping.epoch), np.int64)),
                    pa.array(np.full(rows, self.source, np.int64)),
                    pa.array(np.concatenate([words, np.zeros(len(to), np.uint64)])),
                    pa.array(np.concatenate([np.zeros(len(buckets), np.int64), sent])),
                ],
                schema=LEDGER_SCHEMA,
            )
        )

    def news(self) -> pa.Table | None:
        """What was noted since the last time; None where nothing was."""
        held, self._news = self._news, []
        return pa.concat_tables(held).combine_chunks() if held else None

    def restore(self, tables: Iterable[pa.Table], since: int = MIN_US) -> None:
        """Take up what was noted in earlier batches of periods from one on.

        Rows of other sources and epochs are left.
        """
        for table in tables:
            source, epoch = table.column("source").to_numpy(), table.column("epoch").to_numpy()
            mine = (source == self.source) & (epoch == int(self.mapping.epoch))
            mine &= table.column("period").to_numpy() >= since
            rows = table.filter(pa.array(mine)).combine_chunks()
            period = rows.column("period").to_numpy()
            for number in np.unique(period):
                self._restore(int(number), rows.filter(pa.array(period == number)))

    def _restore(self, period: int, rows: pa.Table) -> None:
        tally = self.tally(period)
        numbers = self.places.numbers(self.mapping, rows.column("bucket").to_numpy())
        tuples = rows.column("tuples").to_numpy()
        np.add.at(tally.loads, numbers, tuples)
        if tally.keys is not None:
            is_key = tuples == 0
            words = np.ascontiguousarray(rows.column("word").to_numpy()[is_key])
            tally.keys.add(words, np.ascontiguousarray(numbers[is_key]))

    def make_room(self, period: int) -> None:
        """Before units of a period are placed, after which none of an earlier one are."""
        if len(self.tallies) >= MOST_TALLIES:
            self.forget(period - 1)
            self.whole = False

    def forget(self, before: int) -> None:
        """Let go of the periods below one: no unit comes for them any more."""
        for period in [p for p in self.tallies if p < before]:
            del self.tallies[period]
