"""Keeps the newest stored tuples of a side in memory, as a chain of indexed runs.

Runs follow each other in time. The newest small run is merged with what comes, larger runs keep
their index, and runs that have left the window are dropped. A chain is a copy: segments have all
stored tuples, and those before the chain begins are read from there.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.batch import MIN_US, ORDER, ints
from tidegate.operate.join.chain.run_index import Ints, SearchableRun, Terms
from tidegate.operate.join.predicate.program import STORED, PairProgram
from tidegate.operate.join.predicate.program_columns import SideColumns

Flags = npt.NDArray[np.bool_]

BUCKET = "bucket"
"""The column of the bucket that a tuple is stored in."""

FEW_ROWS = 1_024
"""A run of at most so many tuples is merged with the new ones of every batch.

A search of a second run costs more than the merge.
"""

_TIER = 4
"""Two runs are merged unless the earlier one is more than this many times longer."""

_LONG_ROWS = 32_768
"""A run is not merged any more once it is longer than this and than a quarter of the chain.

No batch has to wait for such a merge, and a large run leaves the window as a whole.
"""


@dataclass(frozen=True)
class ChainRun:
    """A run: tuples in the total order, with their terms for each probe.

    `coordinate` is the event time, or the number in the side where windows count tuples; it
    ascends. No tuple of this run or of a later one is below `since`.
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
        """Bytes of the tuples, of the index (also where it is not made yet) and of `columns`."""
        return self._nbytes + sum(c.nbytes for c in self._columns.values())

    @cached_property
    def _nbytes(self) -> int:
        index = sum(2 * t.nbytes for t in self.terms) + 40 * self.rows * len(self.terms)
        return int(self.table.get_total_buffer_size()) + int(self.coordinate.nbytes) + index

    def columns(self, program: PairProgram) -> SideColumns:
        """The columns that the compiled predicate reads, computed once."""
        if program not in self._columns:
            self._columns[program] = SideColumns.of(program, STORED, self.table)
        return self._columns[program]

    @cached_property
    def _columns(self) -> dict[PairProgram, SideColumns]:
        return {}

    @cached_property
    def by_bucket(self) -> Ints:
        """How many tuples each bucket has, up to the last bucket with any."""
        return np.bincount(self.table.column(BUCKET).to_numpy())

    @cached_property
    def searched(self) -> tuple[SearchableRun, ...]:
        return tuple(
            SearchableRun.of(t.key, t.values, self.coordinate, True, t.order) for t in self.terms
        )

    def from_coordinate(self, needed: int) -> ChainRun | None:
        """The tuples from a coordinate on; None where there is none."""
        past = int(np.searchsorted(self.coordinate, needed))
        if past == self.rows:
            return None
        if not past:
            return self
        rest = slice(past, None)
        terms = tuple(t.take(rest) for t in self.terms)
        return ChainRun(self.table.slice(past), self.coordinate[rest], terms, self.since)

    def in_buckets(self, buckets: Flags) -> ChainRun | None:
        """The tuples of the flagged buckets; None where there is none."""
        kept = np.flatnonzero(buckets[self.table.column(BUCKET).to_numpy()])
        if not len(kept):
            return None
        if len(kept) == self.rows:
            return self
        terms = tuple(t.take(kept) for t in self.terms)
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
    """The stored tuples of a side that an instance compares with, from `since` on, oldest first.

    Complete: no segment has another tuple of the instance from `since` on. Grows with the tuples of
    a window, up to the bytes that `with_newest` allows.
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
        """The runs that the new tuples are not merged with."""
        return self.runs[:-1] if self.newest is not None else self.runs

    def from_coordinate(self, needed: int) -> Chain:
        """The chain without runs that lie before a coordinate.

        Only the newest run is cut within: another one would have to make its index again.
        """
        runs = [r for r in self.others if r.coordinate[-1] >= needed]
        newest = None if self.newest is None else self.newest.from_coordinate(needed)
        return Chain(self.since, (*runs, *([] if newest is None else [newest])))

    def in_buckets(self, buckets: Flags, most_rows: int) -> Chain | None:
        """The tuples of the flagged buckets, in the newest runs of `most_rows` tuples together.

        The chain then begins later. None where the newest run alone has more tuples: the index of
        every run that loses tuples is made again, and that must not hold a switch up.
        """
        since, runs = self.since, self.runs
        while sum(run.rows for run in runs) > most_rows:
            runs = runs[1:]
            if not runs:
                return None
            since = runs[0].since
        left = (run.in_buckets(buckets) for run in runs)
        return Chain(since, tuple(run for run in left if run is not None))

    def with_tuples(self, run: ChainRun) -> Chain:
        """The tuples of the chain and of another run that does not begin before it, as one run."""
        runs = [*self.runs, run]
        table = pa.concat_tables([r.table for r in runs]).combine_chunks()
        # Tuples of other instances lie between those of the chain, so all are sorted again.
        order = np.lexsort([ints(table, c) for c in reversed(ORDER)])
        terms = [reduce(Terms.followed_by, alike) for alike in zip(*(r.terms for r in runs))]
        coordinate = np.concatenate([r.coordinate for r in runs])[order]
        whole = ChainRun(
            table.take(pa.array(order)), coordinate, tuple(t.take(order) for t in terms), self.since
        )
        return Chain(self.since, (whole,))

    def after_segments(self, spans: Collection[tuple[int, int]], end: int) -> Chain:
        """The chain without what segments have that also hold older tuples.

        `spans` has the first and last coordinates of segments, `end` is after all stored tuples.
        Compaction may merge tuples that are in memory with older ones into one segment. That is
        read as a whole, and no tuple may be met twice: so the chain begins after it.
        """
        since, runs = self.since, self.runs
        # Dropping a run moves `since` forward, into which another segment may reach: so again.
        while any(low < since <= high for low, high in spans):
            runs = runs[1:]
            since = runs[0].since if runs else end
        return Chain(since, runs)

    def with_newest(self, run: ChainRun | None, *, needed: int, end: int, most_bytes: int) -> Chain:
        """The chain for the next batch: `run` replaces its newest run, and old runs are dropped.

        Oldest runs go first where it would take more than `most_bytes`. `end` is after all tuples.
        """
        runs = [r for r in self.others if r.coordinate[-1] >= needed]
        runs += [] if run is None else [run]
        # A short newest run is merged with the new tuples of the next batch anyway, so runs are
        # put in tiers only when it has grown long.
        if run is None or run.rows > FEW_ROWS:
            runs = _merge_tiers(runs, needed)
        since, size = self.since, sum(r.nbytes for r in runs)
        while size > most_bytes:
            size -= runs.pop(0).nbytes
            since = runs[0].since if runs else end
        return Chain(since, tuple(runs))


def _merge_tiers(runs: list[ChainRun], needed: int) -> list[ChainRun]:
    """Merge runs from the newest on, until each is much longer than the next.

    A tuple is then copied a number of times that is logarithmic in the window.
    """
    longest = max(_LONG_ROWS, sum(r.rows for r in runs) // 4)
    while len(runs) > 1 and runs[-2].rows <= min(_TIER * runs[-1].rows, longest):
        before = runs[-2].from_coordinate(needed)
        runs[-2:] = [runs[-1] if before is None else before.followed_by(runs[-1])]
    return runs
