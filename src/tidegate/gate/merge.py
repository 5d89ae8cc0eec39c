"""Merges sorted runs of several sources into one table in the total order."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from tidegate.batch import MAX_US
from tidegate.gate.lateness import Int64s


class RunRows(Protocol):
    """A table, or what becomes one when it is asked for a part."""

    def slice(self, start: int, rows: int, /) -> pa.Table: ...


@dataclass(frozen=True)
class SortedRun:
    """Tuples [start, stop) of one source, sorted by time, those of one time by sequence.

    `times_us` and `table` are those of the whole run, and all parts share them: splitting a run
    copies nothing. No tuple of this run, or of a later run of its source, is below `bound_us`.
    """

    times_us: Int64s
    table: RunRows
    start: int
    stop: int
    bound_us: int

    @staticmethod
    def of(times_us: Int64s, table: RunRows, bound_us: int) -> SortedRun:
        return SortedRun(times_us, table, 0, len(times_us), bound_us)

    @property
    def rows(self) -> int:
        return self.stop - self.start

    @property
    def newest_us(self) -> int:
        return int(self.times_us[self.stop - 1])

    def split(self, frontier_us: int) -> tuple[SortedRun | None, SortedRun | None]:
        """The part below the frontier and the part that waits; +inf leaves nothing waiting."""
        if frontier_us == MAX_US or self.times_us[self.stop - 1] < frontier_us:
            return self, None
        if self.times_us[self.start] >= frontier_us:
            return None, self
        ready = int(np.searchsorted(self.times_us[self.start : self.stop], frontier_us, "left"))
        middle = self.start + ready
        return (
            SortedRun(self.times_us, self.table, self.start, middle, self.bound_us),
            SortedRun(self.times_us, self.table, middle, self.stop, self.bound_us),
        )


class Section:
    """Consecutive ready tuples, merged when a reader first wants them, for all readers.

    The number of its rows is known before the merge, so positions move past it under the gate's
    lock while the merge is done outside. The first reader merges; others wait for that and get the
    same table.
    """

    def __init__(self, start: int, parts: Sequence[SortedRun]) -> None:
        self.start = start
        self.stop = start + sum(part.rows for part in parts)
        self._parts = tuple(parts)
        self._merging = threading.Lock()
        self._merged: pa.Table | None = None

    def rows(self, start: int, stop: int) -> pa.Table:
        """The tuples at [start, stop) of the whole sequence, where they lie in this section."""
        # A lock of the section, not the gate's: a merge holds up only readers that want it.
        with self._merging:
            if self._merged is None:
                self._merged = merge_ready(self._parts)
                self._parts = ()
        low, high = max(start, self.start), min(stop, self.stop)
        return self._merged.slice(low - self.start, high - low)


def merge_ready(parts: Sequence[SortedRun]) -> pa.Table:
    """The tuples of all parts by (time, place of the part, place in it).

    Parts are in the order of their sources, and those of one source in their sequence. So a stable
    sort by time alone gives the total order, and a merge sort is fast on ascending runs.
    """
    table = pa.concat_tables([p.table.slice(p.start, p.rows) for p in parts]).combine_chunks()
    times = np.concatenate([p.times_us[p.start : p.stop] for p in parts])
    if len(parts) == 1 or bool((times[1:] >= times[:-1]).all()):
        return table
    return table.take(pa.array(np.argsort(times, kind="stable")))
