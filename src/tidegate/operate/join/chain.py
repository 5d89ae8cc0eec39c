"""Keeps the newest stored tuples of a side in memory, as runs that are searched one by one.

They are a **chain** of runs by time, and go on from batch to batch: small ones are merged with what
comes, larger ones stay with their index, and what is in no window any more is let go. What a chain
does not reach back to is read from segments, where all of it is.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.batch import MIN_US, ORDER, ints
from tidegate.operate.join.program import STORED, PairProgram
from tidegate.operate.join.program_columns import SideColumns
from tidegate.operate.join.run_index import Ints, SearchableRun, Terms

Flags = npt.NDArray[np.bool_]

BUCKET = "bucket"
"""The column of the bucket that a tuple is stored in."""

FEW_ROWS = 1_024
"""So many tuples are merged with new ones in every batch: searching them apart costs more."""

_TIER = 4
"""A run is merged with the one before it that is not so many times longer."""

_LONG_ROWS = 32_768
"""A run that is longer, and a quarter of the chain, is left alone: merging it takes long."""


@dataclass(frozen=True)
class ChainRun:
    """Tuples in the total order, with the columns of `table`, and what each probe looks at.

    `since` is where the run begins: no later tuple of it, and none of the runs after it, is below.
    `coordinate` ascends, as time and the number in a side do.
    """

    table: pa.Table
    coordinate: Ints
    terms: tuple[Terms, ...]
    since: int

    @property
    def rows(self) -> int:
        return len(self.coordinate)

    @property
    def nbytes(self) -> int:
        """With the index, also where it is not made yet, and what the predicate has read."""
        return self._nbytes + sum(c.nbytes for c in self._columns.values())

    @cached_property
    def _nbytes(self) -> int:
        index = sum(2 * t.nbytes for t in self.terms) + 40 * self.rows * len(self.terms)
        return int(self.table.get_total_buffer_size()) + int(self.coordinate.nbytes) + index

    def columns(self, program: PairProgram) -> SideColumns:
        """What the compiled predicate reads of the tuples, computed once."""
        if program not in self._columns:
            self._columns[program] = SideColumns.of(program, STORED, self.table)
        return self._columns[program]

    @cached_property
    def _columns(self) -> dict[PairProgram, SideColumns]:
        return {}

    @cached_property
    def by_bucket(self) -> Ints:
        """How many of the tuples are of each bucket, up to the last that has any."""
        return np.bincount(self.table.column(BUCKET).to_numpy())

    @cached_property
    def searched(self) -> tuple[SearchableRun, ...]:
        return tuple(
            SearchableRun.of(t.key, t.values, self.coordinate, True, t.order) for t in self.terms
        )

    def needed(self, needed: int) -> ChainRun | None:
        """The tuples from a coordinate on; None where there is none."""
        past = int(np.searchsorted(self.coordinate, needed))
        if past == self.rows:
            return None
        if not past:
            return self
        rest = slice(past, None)
        terms = tuple(t.of(rest) for t in self.terms)
        return ChainRun(self.table.slice(past), self.coordinate[rest], terms, self.since)

    def of(self, buckets: Flags) -> ChainRun | None:
        """The tuples of some buckets, which have a flag each; None where there is none."""
        kept = np.flatnonzero(buckets[self.table.column(BUCKET).to_numpy()])
        if not len(kept):
            return None
        if len(kept) == self.rows:
            return self
        terms = tuple(t.of(kept) for t in self.terms)
        return ChainRun(self.table.take(pa.array(kept)), self.coordinate[kept], terms, self.since)

    def followed_by(self, other: ChainRun) -> ChainRun:
        """One run of these tuples and of those after them."""
        both = zip(self.terms, other.terms, strict=True)
        return ChainRun(
            pa.concat_tables([self.table, other.table]).combine_chunks(),
            np.concatenate([self.coordinate, other.coordinate]),
            tuple(one.followed_by(two) for one, two in both),
            self.since,
        )


@dataclass(frozen=True)
class Chain:
    """All stored tuples of a side that an instance compares with, from `since` on, oldest first.

    Grows with the tuples of a window, up to the bytes that it is given.
    """

    since: int = MIN_US
    runs: tuple[ChainRun, ...] = ()

    @property
    def nbytes(self) -> int:
        return sum(run.nbytes for run in self.runs)

    @property
    def newest(self) -> ChainRun | None:
        """The run that is merged with what comes, if it is short."""
        return self.runs[-1] if self.runs and self.runs[-1].rows <= FEW_ROWS else None

    @property
    def others(self) -> tuple[ChainRun, ...]:
        """The runs that are searched as they are."""
        return self.runs[:-1] if self.newest is not None else self.runs

    def needed(self, needed: int) -> Chain:
        """What of it may be in a window that begins at a coordinate, whole runs but for the newest.

        Cutting one means to make its index again.
        """
        runs = [r for r in self.others if r.coordinate[-1] >= needed]
        newest = None if self.newest is None else self.newest.needed(needed)
        return Chain(self.since, (*runs, *([] if newest is None else [newest])))

    def of(self, buckets: Flags, most_rows: int) -> Chain | None:
        """The tuples of some buckets in its newest runs; None where these have more rows.

        The index of what is left of a run is made again.
        """
        since, runs = self.since, self.runs
        while sum(run.rows for run in runs) > most_rows:
            runs = runs[1:]
            if not runs:
                return None
            since = runs[0].since
        left = (run.of(buckets) for run in runs)
        return Chain(since, tuple(run for run in left if run is not None))

    def with_tuples(self, run: ChainRun) -> Chain:
        """One run of its tuples and of others that are not before it."""
        runs = [*self.runs, run]
        table = pa.concat_tables([r.table for r in runs]).combine_chunks()
        order = np.lexsort([ints(table, c) for c in reversed(ORDER)])
        terms = [reduce(Terms.followed_by, alike) for alike in zip(*(r.terms for r in runs))]
        coordinate = np.concatenate([r.coordinate for r in runs])[order]
        whole = ChainRun(
            table.take(pa.array(order)), coordinate, tuple(t.of(order) for t in terms), self.since
        )
        return Chain(self.since, (whole,))

    def apart(self, spans: Collection[tuple[int, int]], end: int) -> Chain:
        """What of it is after all segments with older tuples, whose first and last these are.

        Compaction may have merged tuples that are in memory with older ones, in a segment which is
        then read as it is. `end` is after all stored tuples.
        """
        since, runs = self.since, self.runs
        while any(low < since <= high for low, high in spans):
            runs = runs[1:]
            since = runs[0].since if runs else end
        return Chain(since, runs)

    def grown(self, run: ChainRun | None, *, needed: int, end: int, most_bytes: int) -> Chain:
        """The chain with a newest run instead of the one it had, and what is needed of the others.

        Where it would take more bytes than it may, it begins later; `end` is after all of it.
        """
        runs = [r for r in self.others if r.coordinate[-1] >= needed]
        runs += [] if run is None else [run]
        if run is None or run.rows > FEW_ROWS:
            runs = _tiered(runs, needed)
        since, size = self.since, sum(r.nbytes for r in runs)
        while size > most_bytes:
            size -= runs.pop(0).nbytes
            since = runs[0].since if runs else end
        return Chain(since, tuple(runs))


def _tiered(runs: list[ChainRun], needed: int) -> list[ChainRun]:
    """Fewer runs, each much longer than the next: a tuple is copied a few times in its life."""
    longest = max(_LONG_ROWS, sum(r.rows for r in runs) // 4)
    while len(runs) > 1 and runs[-2].rows <= min(_TIER * runs[-1].rows, longest):
        before = runs[-2].needed(needed)
        runs[-2:] = [runs[-1] if before is None else before.followed_by(runs[-1])]
    return runs
