"""Decodes records of small batches once, in the driver, and hands the rows to the tasks.

Every task of a small batch reads all of it, and a pass over a few values costs as much as one over
hundreds. So the driver decodes what came for all partitions in one pass, when the gate first asks
for an event time, and the rows travel with the work to the tasks. In larger batches each task
decodes a share. Records travel with the work where the driver holds them, else tasks fetch them.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tidegate.batch import from_bytes, to_bytes
from tidegate.connector import Reject, Rows
from tidegate.source.kafka.record import RecordRange
from tidegate.source.kafka.shape import RecordShape, SharedShape


@dataclass(frozen=True)
class CarryLimits:
    """The most that one pass decodes for all partitions of a topic, and the most of one partition
    that travels with the work."""

    records: int = 8_192
    bytes: int = 2**20


class Carried(Protocol):
    """Records or rows that travel with a reader to a task."""

    def rows(self, shape: RecordShape, partition: int) -> Rows:
        """The rows of all positions of the reader."""


@dataclass(frozen=True)
class CarriedRecords:
    """Records that the task decodes."""

    records: RecordRange

    def rows(self, shape: RecordShape, partition: int) -> Rows:
        (found,) = shape.rows([(partition, self.records)])
        return found


@dataclass(frozen=True)
class CarriedRows:
    """Rows that the driver has decoded. Pickling copies only these rows, not all that it holds."""

    decoded: Rows

    def rows(self, shape: RecordShape, partition: int) -> Rows:
        return self.decoded

    def __reduce__(self) -> tuple[Callable[..., CarriedRows], tuple[Any, ...]]:
        rows = self.decoded
        return _unpacked, (to_bytes(rows.table), rows.seq.tobytes(), rows.rejects)


def _unpacked(table: bytes, seq: bytes, rejects: tuple[Reject, ...]) -> CarriedRows:
    return CarriedRows(Rows(from_bytes(table), np.frombuffer(seq, np.int64), rejects))


class TopicDecoder:
    """The decoded rows of all partitions of a topic; called only in the thread of the gate.

    Grows to at most `limits` rows of each partition, and `limits` records of all partitions that
    wait to be decoded.
    """

    def __init__(self, shape: SharedShape, limits: CarryLimits) -> None:
        self._shape, self._limits = shape, limits
        self._waiting: list[tuple[int, RecordRange]] = []
        self._records = self._bytes = 0
        """The size of `_waiting`."""
        self._decoded: defaultdict[int, deque[_DecodedRange]] = defaultdict(deque)

    def add(self, partition: int, records: RecordRange) -> None:
        """Take records that follow the earlier ones. Once too many wait, all are left to tasks."""
        self._waiting.append((partition, records))
        self._records += len(records.values)
        self._bytes += records.nbytes
        if self._records > self._limits.records or self._bytes > self._limits.bytes:
            self._taken()

    def rows(self, partition: int, start: int, stop: int) -> Rows | None:
        """The rows of [start, stop), decoding what waits; None where some are not held."""
        self._decode()
        found, at = [], start
        for decoded in self._decoded[partition]:
            if decoded.first <= at < decoded.stop:
                end = min(decoded.stop, stop)
                found.append(decoded.cut(at, end))
                at = end
        if at < stop or not found:
            return None
        rows = Rows.joined(found, self._shape.now.schema)
        return (
            rows if len(found) == 1 else Rows(rows.table.combine_chunks(), rows.seq, rows.rejects)
        )

    def drop(self, partition: int, position: int) -> None:
        """Forget ranges that end before a position."""
        held = self._decoded[partition]
        while held and held[0].stop <= position:
            held.popleft()

    def _decode(self) -> None:
        if not self._waiting:
            return
        parts = self._taken()
        for (partition, records), rows in zip(parts, self._shape.now.rows(parts), strict=True):
            held = self._decoded[partition]
            held.append(_DecodedRange(records.first, records.stop, rows))
            while held[-1].stop - held[0].first > self._limits.records and len(held) > 1:
                held.popleft()

    def _taken(self) -> list[tuple[int, RecordRange]]:
        """Empty the queue of waiting records, and return it."""
        parts, self._waiting, self._records, self._bytes = self._waiting, [], 0, 0
        return parts


@dataclass(frozen=True)
class _DecodedRange:
    first: int
    stop: int
    rows: Rows

    def cut(self, first: int, stop: int) -> Rows:
        if first == self.first and stop == self.stop:
            return self.rows
        low, high = np.searchsorted(self.rows.seq, (first, stop)).tolist()
        rejects = tuple(r for r in self.rows.rejects if first <= r.seq < stop)
        return Rows(self.rows.table.slice(low, high - low), self.rows.seq[low:high], rejects)
