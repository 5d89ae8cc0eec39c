"""Rows that several splits of a small batch read, read once: a stream that meets itself.

They stand between the sources and the map tasks of one process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

from tidegate.connector import Rows
from tidegate.execute.job import Job, Split
from tidegate.plan.physical import Edge

_MOST_ROWS = 131_072
"""What has more rows is read by each split: holding them would cost more than it saves."""


class SharedReads:
    """The reads of one batch; holds rows until the last split that wants them has them."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._columns: dict[Hashable, dict[str, None]] = {}
        self._waiting: Counter[Hashable] = Counter()
        self._held: dict[Hashable, Rows] = {}
        if len(job.subquery.prefixes) == 1 or job.rows > _MOST_ROWS:
            return
        for split in job.splits:
            place = self._place(split)
            if place is not None:
                prefix = job.subquery.prefixes[split.input]
                wanted = dict.fromkeys((*prefix.columns, prefix.time))
                self._columns.setdefault(place, {}).update(wanted)
                self._waiting[place] += 1

    def rows(self, split: Split, columns: Sequence[str]) -> Rows:
        """The rows of a split, with at least the columns."""
        place = self._place(split)
        if place not in self._held:
            if self._waiting[place] < 2:
                return split.reader.read(columns)
            self._held[place] = split.reader.read(list(self._columns[place]))
        self._waiting[place] -= 1
        return self._held[place] if self._waiting[place] else self._held.pop(place)

    def _place(self, split: Split) -> Hashable | None:
        """What tells the rows of a split from others; None for those of another subquery."""
        prefix = self._job.subquery.prefixes[split.input]
        if isinstance(prefix.origin, Edge):
            return None
        return (prefix.origin, split.order, split.source, split.start, split.stop)
