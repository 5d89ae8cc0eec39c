"""One partition as a source of the gate, and the readers of its offsets for tasks."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tidegate.arrival import BEFORE, Floats, Growth
from tidegate.clock import Clock
from tidegate.connector import Bools, Int64s, Reader, Rows, Source, check_columns
from tidegate.errors import SourceError
from tidegate.source.kafka.decode import (
    Carried,
    CarriedRecords,
    CarriedRows,
    CarryLimits,
    TopicDecoder,
)
from tidegate.source.kafka.feed import TopicFeed
from tidegate.source.kafka.fetch import fetch
from tidegate.source.kafka.record import RecordRange, shelf_of
from tidegate.source.kafka.shape import RecordShape, SharedShape
from tidegate.source.kafka.topic import Topic, made_anew, removed
from tidegate.source.piece import PIECES

_MOST_AHEAD = 200_000
_MOST_AHEAD_BYTES = 32 * 2**20
"""How far the feed reads a partition ahead of the gate."""


@dataclass(frozen=True)
class KafkaReader(Reader):
    """Reads offsets [start, stop) of a partition in a task, by a consumer of its process.

    What the driver holds of a small batch travels along as `carried`. Every task reads all of such
    a batch, and without it each would ask the brokers for the same records.
    """

    topic: Topic
    partition: int
    shape: RecordShape
    start: int
    stop: int
    carried: Carried | None = field(default=None, compare=False, repr=False)

    def read(self, columns: Sequence[str]) -> Rows:
        check_columns(columns, self.shape.schema, f"topic {self.topic.name}")
        key = (*self.topic.key, self.partition, self.start, self.stop, self.shape)
        rows = PIECES.get(key, self._read).rows
        return Rows(rows.table.select(columns), rows.seq, rows.rejects)

    def _read(self) -> _SizedRows:
        carried = self.carried
        if carried is None:
            carried = CarriedRecords(fetch(self.topic, self.partition, self.start, self.stop))
        # Nobody tells a task which batches were committed; the next range begins after them.
        shelf_of((*self.topic.key, self.partition)).drop(self.start)
        return _SizedRows(carried.rows(self.shape, self.partition))


@dataclass(frozen=True)
class _SizedRows:
    """Rows with the size that the cache asks for."""

    rows: Rows

    @property
    def nbytes(self) -> int:
        return int(self.rows.table.nbytes) + int(self.rows.seq.nbytes)


class RecordArrivals:
    """When records came to the driver, from looks at the end of their partition."""

    def __init__(self, growth: Growth) -> None:
        self._growth = growth

    def at(self, positions: Int64s) -> Floats:
        return self._growth.at(positions + 1)

    def drop(self, position: int) -> None:
        self._growth.drop(position)


@dataclass(frozen=True)
class Stretch:
    """Where a partition begins and ends for a run.

    `low` is the oldest offset, `first` the one to begin with, `there` the end when the run began.
    Without `grows` records after `there` do not count. With `ends` the source ends there.
    """

    low: int
    first: int
    there: int
    grows: bool
    ends: bool


class PartitionSource(Source):
    """A partition as a source. Positions are offsets, so manifests name offsets. An offset without
    a record is a position without a row.

    Grows with the records that came and were not consumed, up to how far the feed reads ahead, and
    with the offsets without a record since the last batch.
    """

    def __init__(
        self,
        topic: Topic,
        partition: int,
        shape: SharedShape,
        stretch: Stretch,
        feed: TopicFeed,
        decoder: TopicDecoder,
        clock: Clock,
        limits: CarryLimits,
    ) -> None:
        self.id = f"{topic.name}/{partition}"
        self.schema = shape.now.schema
        self.partition = partition
        self.next = self.first = stretch.first
        """`next` is the offset up to which the feed has delivered records."""
        self._topic = topic
        self._shape, self._stretch = shape, stretch
        self._feed, self._decoder, self._clock, self._limits = feed, decoder, clock, limits
        self.shelf = shelf_of((*topic.key, partition))
        self._asked = self.next
        self._ahead: deque[tuple[int, int]] = deque()
        self._gaps: list[Int64s] = []
        now = clock.now()
        self._growth = Growth(stretch.there, BEFORE, now)
        self.arrivals = RecordArrivals(self._growth)

    @property
    def place(self) -> str:
        """The name in messages."""
        return f"topic {self._topic.name}, partition {self.partition}"

    @property
    def oldest(self) -> int:
        """The offset of the oldest record when the run began."""
        return self._stretch.low

    @property
    def end(self) -> int:
        """The offset after the newest record when the run began."""
        return self._stretch.there

    def start(self, position: int | None) -> None:
        """Continue at an offset that an earlier run reached, or begin with the oldest record."""
        low, there = self._stretch.low, self._stretch.there
        position = low if position is None else position
        if position < low:
            raise removed(self._topic, self.partition, position, low)
        if position > there:
            raise SourceError(
                self.place,
                f"was read up to offset {position} by this checkpoint and must have as many",
                f"an end at offset {there}",
                "Put the records back, or start from an empty checkpoint.",
            )
        self.first = self.next = self._asked = position

    def extend(self, rows: int) -> int:
        there = self._stretch.there
        wanted = rows if self._stretch.grows else min(rows, there)
        if self.next < wanted:
            self._feed.fill(self, min(there, wanted), wanted)
        return self.next

    def ended(self) -> bool:
        return self._stretch.ends and self.next >= self._stretch.there

    def times(self, start: int, stop: int) -> tuple[Int64s, Bools]:
        self._asked = max(self._asked, stop)
        while self._ahead and self._ahead[0][0] <= self._asked:
            self._ahead.popleft()
        shape, rows = self._shape.now, self._decoder.rows(self.partition, start, stop)
        found = None if rows is None else shape.times_of(rows, start, stop)
        if found is not None:
            return found
        return shape.times(fetch(self._topic, self.partition, start, stop))

    def reader(self, start: int, stop: int) -> KafkaReader:
        carried = self._carried(start, stop)
        return KafkaReader(self._topic, self.partition, self._shape.now, start, stop, carried)

    def _carried(self, start: int, stop: int) -> Carried | None:
        if stop - start > self._limits.records:
            return None
        rows = self._decoder.rows(self.partition, start, stop)
        if rows is not None:
            return CarriedRows(rows)
        held = self.shelf.whole(start, stop)
        few = held is not None and held.nbytes <= self._limits.bytes
        return CarriedRecords(held) if held is not None and few else None

    def answered(self, position: int) -> None:
        super().answered(position)
        self.shelf.drop(position)
        self._decoder.drop(self.partition, position)

    def absent(self, start: int, stop: int) -> int:
        """How many offsets of a range that is new to the gate have no record."""
        return sum(int(np.diff(np.searchsorted(gap, (start, stop)))[0]) for gap in self._gaps)

    def extent(self, position: int) -> tuple[int, int, str]:
        first, there = self._stretch.first, self._stretch.there
        return max(position - first, 0), max(there - first, 0), "rows"

    def untaken(self, position: int) -> tuple[int, str]:
        """The lag: what the broker has and no batch has taken."""
        newest = self._feed.newest(self) if self._stretch.grows else self._stretch.there
        return max((self.next if newest is None else newest) - position, 0), "rows"

    def place_of(self, position: int) -> Mapping[str, Any]:
        return {"topic": self._topic.name, "partition": self.partition, "offset": position}

    def mark(self, position: int) -> Mapping[str, Any]:
        self._gaps = [gap for gap in self._gaps if gap[-1] >= position]
        values = self._shape.now.layout.saved()
        return {"topic_id": self._topic.id, **({} if values is None else {"values": values})}

    def check(self, saved: Mapping[str, Any], position: int, again: bool) -> None:
        if again and saved["topic_id"] != self._topic.id:
            raise made_anew(self._topic)
        self._shape.restore(saved.get("values"))
        if not again:  # an earlier run read it to its end: only later records are new
            self.first = self.next = self._asked = max(position, self._stretch.low)

    def wants(self) -> bool:
        """Whether it takes more records now; the feed pauses a partition that does not."""
        if not self._stretch.grows and self.next >= self._stretch.there:
            return False
        waiting = sum(size for _, size in self._ahead)
        return self.next - self._asked < _MOST_AHEAD and waiting < _MOST_AHEAD_BYTES

    def add(self, records: RecordRange) -> None:
        """Take records from `next` on; those beyond the end of a bounded run are cut off."""
        if not self._stretch.grows and records.stop > self._stretch.there:
            records = records.cut(records.first, max(self._stretch.there, records.first))
        if records.stop > records.first + len(records.offsets):
            every = np.arange(records.first, records.stop)
            self._gaps.append(np.setdiff1d(every, records.offsets, assume_unique=True))
        self.shelf.put(records)
        self._decoder.add(self.partition, records)
        self._ahead.append((records.stop, records.nbytes))
        self.next = records.stop
        self._growth.look(self.next, self._clock.now())
