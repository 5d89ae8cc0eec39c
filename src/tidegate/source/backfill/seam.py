"""Decides where the partitions of a topic begin after a history: by offset, by time, or as written.

A seam is used when a partition joins and no earlier run has read from it; from then on the manifest
has the offsets. It refuses to begin where records between history and topic were removed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import NamedTuple, Protocol

import pyarrow as pa

from tidegate.calendar.microsecond import time_text
from tidegate.errors import SourceError, near
from tidegate.schema import event_times
from tidegate.source.backfill.history import HistoryConnector
from tidegate.source.backfill.leg import LegSource, TimeSpan
from tidegate.source.kafka.partition import PartitionSource

_log = logging.getLogger(__name__)

PARTITION, OFFSET = "_partition", "_offset"

_SCAN_ROWS = 1 << 20
_LOOK_ROWS = 1000

_LATER = "Write the newer rows to the history as well, or let the topic keep its records for longer"


class PartitionEnd(NamedTuple):
    """The offsets that a history has of a partition: first, last, and the number of rows."""

    first: int
    last: int
    rows: int
    newest_us: int | None

    def joined(self, other: PartitionEnd) -> PartitionEnd:
        known = [t for t in (self.newest_us, other.newest_us) if t is not None]
        return PartitionEnd(
            min(self.first, other.first),
            max(self.last, other.last),
            self.rows + other.rows,
            max(known, default=None),
        )


class Seam(Protocol):
    """Where the rows of a history end in a stream, and those of the topic begin."""

    history_span: TimeSpan
    topic_span: TimeSpan

    def begin(self, leg: LegSource) -> None:
        """Set a partition to begin where the history ends."""


class WrittenSeam:
    """All of the history, then the topic from the offsets in its URI."""

    history_span = topic_span = TimeSpan()

    def begin(self, leg: LegSource) -> None:
        return None


class TimeSeam:
    """The history before an event time, the topic from then on."""

    def __init__(self, until_us: int) -> None:
        self.history_span = TimeSpan(high_us=until_us)
        self.topic_span = TimeSpan(low_us=until_us)
        self._until_us = until_us

    def begin(self, leg: LegSource) -> None:
        """Promise no row before that time; refuse where newer records were already removed."""
        leg.promised_us = self._until_us
        partition = _partition(leg)
        if partition.oldest == 0 or partition.first > partition.oldest:
            return
        oldest_us = _first_time_us(partition)
        if oldest_us is None or oldest_us >= self._until_us:
            got = "none with a time" if oldest_us is None else f"one of {time_text(oldest_us)}"
            raise SourceError(
                partition.place,
                f"must have a record of before UNTIL {time_text(self._until_us)}, because older "
                "ones were removed",
                f"{got} as the oldest, at offset {partition.oldest}",
                f"{_LATER}; then take a later UNTIL.",
            )


class OffsetSeam:
    """All of the history, which has the offsets of its rows, then the topic behind them."""

    history_span = topic_span = TimeSpan()

    def __init__(self, history: HistoryConnector, time: str | None, where: str) -> None:
        self._history, self._time, self._where = history, time, where
        for name in (PARTITION, OFFSET):
            if name not in history.schema.names:
                raise SourceError(
                    where,
                    f"from=history needs the columns {PARTITION} and {OFFSET} in the history",
                    f"no {name}",
                    "Fill the history from 'kafka://...?meta=partition,offset', or write "
                    "UNTIL 'TIME' in place of from=history. " + near(name, history.schema.names),
                )
        self._ends: dict[int, PartitionEnd] | None = None

    def begin(self, leg: LegSource) -> None:
        """Continue after the partition's highest offset in the history."""
        partition = _partition(leg)
        if self._ends is None:
            self._ends = self._scan()
        end = self._ends.get(partition.partition)
        last = -1 if end is None else end.last
        if last + 1 < partition.oldest:
            raise SourceError(
                partition.place,
                f"must go on with offset {last + 1}, where the history ends",
                f"records removed by retention; the first that is there is {partition.oldest}",
                f"{_LATER}.",
            )
        # An end before the history's says that this is another topic, or one that was made anew.
        if last + 1 > partition.end:
            raise SourceError(
                partition.place,
                f"must have the records up to offset {last}, as the history has",
                f"an end at offset {partition.end}",
                "Name the topic that the history was filled from.",
            )
        partition.start(last + 1)
        if end is not None and end.newest_us is not None:
            leg.newest_before_us = end.newest_us

    def _scan(self) -> dict[int, PartitionEnd]:
        """The end of each partition in the history; costs a pass over three of its columns."""
        assert self._time is not None, "only a run asks where to begin"
        found: dict[int, PartitionEnd] = {}
        for source in self._history.listed():
            start, stop = 0, min(source.extend(_SCAN_ROWS), _SCAN_ROWS)
            while start < stop:
                rows = source.reader(start, stop).read([PARTITION, OFFSET, self._time]).table
                for partition, end in self._ends_in(rows, source.id):
                    found[partition] = end.joined(found.get(partition, end._replace(rows=0)))
                start, stop = stop, min(source.extend(stop + _SCAN_ROWS), stop + _SCAN_ROWS)
        for partition, end in sorted(found.items()):
            offsets = end.last + 1 - end.first
            if end.rows != offsets:
                told = "%s: the history has %d rows of partition %d for the %d offsets %d to %d"
                _log.warning(told, self._where, end.rows, partition, offsets, end.first, end.last)
        return found

    def _ends_in(self, rows: pa.Table, file: str) -> Iterator[tuple[int, PartitionEnd]]:
        if rows[PARTITION].null_count or rows[OFFSET].null_count:
            raise SourceError(
                f"{self._where}, file {file}",
                f"{PARTITION} and {OFFSET} must have a value in each row",
                "NULL",
                "Fill them in, or write UNTIL 'TIME' in place of from=history.",
            )
        times, valid = event_times(rows[self._time])
        table = pa.table([rows[PARTITION], rows[OFFSET], pa.array(times, mask=~valid)], "pot")
        wanted = [("o", "min"), ("o", "max"), ("o", "count"), ("t", "max")]
        for row in table.group_by("p").aggregate(wanted).to_pylist():
            yield row["p"], PartitionEnd(row["o_min"], row["o_max"], row["o_count"], row["t_max"])


def _partition(leg: LegSource) -> PartitionSource:
    assert isinstance(leg.inner, PartitionSource), "only a topic has a seam before it"
    return leg.inner


def _first_time_us(partition: PartitionSource) -> int | None:
    """The event time of the oldest record that has one, among the first `_LOOK_ROWS`."""
    first = partition.first
    stop = min(partition.extend(min(first + _LOOK_ROWS, partition.end)), partition.end)
    times, valid = partition.times(first, stop)
    return int(times[valid][0]) if valid.any() else None
