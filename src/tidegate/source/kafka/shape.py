"""Turns records of a topic into rows: columns of their values, and of the records themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.connector import Bools, Int64s, Reject, Rows
from tidegate.schema import event_times
from tidegate.source.kafka.column import RECORD_COLUMNS, TIMESTAMP, record_column
from tidegate.source.kafka.record import RecordRange
from tidegate.source.message.value import ValueLayout
from tidegate.source.text.layout import by_place

_TOMBSTONE = "a tombstone, which has no value", ""


@dataclass(frozen=True)
class RecordShape:
    """How the records of a topic become rows; picklable and hashable."""

    layout: ValueLayout
    own: tuple[str, ...]
    """The columns of the records themselves (`column`)."""
    time: str | None

    @property
    def schema(self) -> pa.Schema:
        mine = [pa.field(name, RECORD_COLUMNS[name]) for name in self.own]
        return pa.schema([*self.layout.schema, *mine])

    def times(self, records: RecordRange) -> tuple[Int64s, Bools]:
        """Event times of all positions of a range; decodes only the column that has them."""
        assert self.time is not None, "a look at the columns asks for no times"
        if self.time == TIMESTAMP and TIMESTAMP in self.own:
            return records.own_times()
        return records.times(self.layout, self.layout.schema.field(self.time))

    def times_of(self, rows: Rows, start: int, stop: int) -> tuple[Int64s, Bools] | None:
        """As `times`, from decoded rows; None if a row was rejected: it may still have a time."""
        if rows.rejects or self.time is None:
            return None
        found = event_times(rows.table.column(self.time))
        return by_place(*found, places=rows.seq - start, count=stop - start)

    def rows(self, parts: Sequence[tuple[int, RecordRange]]) -> list[Rows]:
        """All columns of several ranges, each given with its partition, in one decoding pass.

        Values that are absent or unreadable are rejected.
        """
        values = [v for _, records in parts for v in records.values]
        there = np.flatnonzero([v is not None for v in values])
        parsed = self.layout.parse([v for v in values if v is not None])
        kept = there if parsed.places is None else there[parsed.places]
        faults = {int(there[f.place]): (f.why, f.raw) for f in parsed.faults}
        if len(there) < len(values):
            faults |= dict.fromkeys((i for i, v in enumerate(values) if v is None), _TOMBSTONE)
        ends = np.cumsum([0, *(len(records.values) for _, records in parts)]).tolist()
        found = []
        for (partition, records), (low, high) in zip(parts, pairwise(ends), strict=True):
            first, stop = np.searchsorted(kept, (low, high)).tolist()
            own = {place - low: faults[place] for place in sorted(faults) if low <= place < high}
            table, places = parsed.table, kept[first:stop] - low
            if len(parts) > 1:  # a copy, because a slice would keep the rows of all partitions
                table = table.take(pa.array(np.arange(first, stop)))
            table = self._with_own(table, records, partition, places)
            found.append(Rows(table, records.offsets[places], _rejects(records, partition, own)))
        return found

    def _with_own(
        self, table: pa.Table, records: RecordRange, partition: int, places: Int64s
    ) -> pa.Table:
        """Append the columns of the records themselves."""
        for name in self.own:
            column = record_column(name, records, partition)
            whole = len(places) == len(records.values)
            table = table.append_column(name, column if whole else column.take(pa.array(places)))
        return table


def _rejects(
    records: RecordRange, partition: int, faults: Mapping[int, tuple[str, str]]
) -> tuple[Reject, ...]:
    return tuple(
        Reject(offset, f"partition {partition}, offset {offset}: {why}", raw)
        for offset, why, raw in ((int(records.offsets[p]), *fault) for p, fault in faults.items())
    )


@dataclass
class SharedShape:
    """The shape by which all partitions of a topic are read, also those that join later.

    A checkpoint may restore an older one than the newest schema of the values gives.
    """

    now: RecordShape

    def restore(self, saved: Mapping[str, Any] | None) -> None:
        """Go back to the schema with which an earlier run has read."""
        self.now = replace(self.now, layout=self.now.layout.restored(saved))
