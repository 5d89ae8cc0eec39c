"""Places the tuples of a join by ranges of the value that its index compares, cell by cell.

For a band that is the value itself, for equalities the code of the keys.

A map task stores a tuple in the cell of its value, and sends it to whoever has cells that its
bounds reach. One instance sees from a survey whether another grid of cells would be better, and
stores it for the batches to come. Where a tuple is stored decides who
finds its pairs, not which there are: nothing of this changes what the join puts out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.batch import MAX_US, MIN_US, TS
from tidegate.errors import TaskError
from tidegate.operate.join.bound import bounds_of, key_of
from tidegate.operate.join.grid import PENDING, GridEpoch, GridKeeper
from tidegate.operate.join.search import News
from tidegate.operate.join.spec import JoinSpec
from tidegate.operate.join.state import SIDES, SideKeeper
from tidegate.operate.join.survey import TupleSurvey, surveyed_of
from tidegate.operate.operator import Arrival, InstanceWork, MapWork
from tidegate.route.cell import IN_TURN, CellGrid, Floats, Mask
from tidegate.route.mapping import Mapping as BucketMapping
from tidegate.route.partitioner import Int32s, Int64s
from tidegate.route.round_robin import RoundRobin
from tidegate.state.segment import Segment
from tidegate.state.store import Store

MOST_GRIDS = 4
"""So many grids have tuples in a window at a time, at most: each is asked."""


@dataclass(frozen=True)
class RangePlacement:
    """How tuples are placed in one batch. `first` is the grid that a query begins with.

    `before` is how many tuples of each side came before the batch.
    """

    spec: JoinSpec
    keepers: tuple[SideKeeper, SideKeeper]
    before: tuple[int, int]
    first: CellGrid

    @property
    def keeper(self) -> GridKeeper:
        return GridKeeper(self._way)

    @property
    def _way(self) -> int:
        """How tuples of either side are arranged and dealt."""
        return self.keepers[0].way

    def grids(
        self, state: Mapping[str, Sequence[Segment]], store: Store, batch: int
    ) -> tuple[GridEpoch, ...]:
        """The grids that have placed tuples up to a batch, that of the batch last.

        Map tasks may run before the batch before is done. What it chooses places the tuples of the
        batch after them: so it is the same for them whether they have seen it or not.
        """
        return tuple(epoch for epoch in self._known(state, store) if epoch.batch <= batch)

    def _known(self, state: Mapping[str, Sequence[Segment]], store: Store) -> tuple[GridEpoch, ...]:
        found = self.keeper.read(state, store)
        if found is not None:
            return found
        # Another query may have come between, whose grids are kept instead of those that have
        # placed these: then they may be anywhere.
        stored = (segment for side in SIDES for segment in state.get(side, ()))
        lost = any(segment.tag == self._way for segment in stored)
        return (GridEpoch((MIN_US, MIN_US), IN_TURN if lost else self.first),)

    def dealt(
        self, work: MapWork, side: int, table: pa.Table
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_], pa.Table | None]:
        """The buckets of tuples, by instance which of them it sees, and what is surveyed.

        Where a value cannot be computed all instances see them: it is for them to say whether that
        is an error.
        """
        router = work.router(RoundRobin())
        try:
            values = key_of(self.spec.probe, side, table)
            low, high = self._bounds(side, table, values)
        except TaskError:
            return router.buckets([], table.num_rows), _everyone(work.mapping, table), None
        grids = self.grids(work.state, work.opened(), work.batch)
        bucket = grids[-1].grid.stored(router, values)
        if work.mapping.running == 1:
            return bucket, _everyone(work.mapping, table), None
        surveyed = surveyed_of(work, side, values, low, high)
        if self.spec.counts:  # all are sent to all, to be counted
            return bucket, _everyone(work.mapping, table), surveyed
        seen = np.zeros((work.mapping.running, table.num_rows), np.bool_)
        seen[work.mapping.owner_array[bucket], np.arange(len(bucket))] = True
        for rows, buckets in self._reached(grids, work, side, low, high):
            if buckets is None:
                seen[:, rows] = True
                continue
            for owners in work.mapping.tenures:
                seen[owners[buckets], rows] = True
        return bucket, seen, surveyed

    def asks(self, work: InstanceWork, side: int, table: pa.Table) -> Mask | None:
        """Which of all new tuples of a side have to ask what an instance holds; None for all."""
        if work.mapping.running == 1 or not table.num_rows:
            return None
        try:
            low, high = self._bounds(side, table)
        except TaskError:
            return None
        grids = self.grids(work.state, work.store, work.batch)
        asking = np.zeros(table.num_rows, np.bool_)
        for rows, buckets in self._reached(grids, work, side, low, high):
            if buckets is None:
                asking[rows] = True
                continue
            for owners in work.mapping.tenures:
                asking[rows[owners[buckets] == work.instance]] = True
        return asking

    def _reached(
        self,
        grids: Sequence[GridEpoch],
        work: MapWork | InstanceWork,
        side: int,
        low: Floats,
        high: Floats,
    ) -> Iterator[tuple[Int64s, Int32s | None]]:
        """Tuples of a side, and buckets that their bounds for the other reach; None for all."""
        other = 1 - side
        horizon = self.keepers[other].horizon(work.previous_us, self.before[other])
        stored = [s for s in work.state.get(SIDES[other], ()) if not horizon.passed(s)]
        if any(s.tag != self._way for s in stored):  # an earlier run has placed them anywhere
            yield np.arange(len(low)), None
            return
        mapping = work.mapping
        for grid in self._live(grids, other, horizon.needed):
            for rows, buckets in grid.asked(low, high, mapping.buckets, mapping.instances):
                everywhere = buckets < 0
                if everywhere.any():
                    yield rows[everywhere], None
                    rows, buckets = rows[~everywhere], buckets[~everywhere]
                yield rows, buckets

    def _live(self, grids: Sequence[GridEpoch], side: int, needed: int) -> Iterator[CellGrid]:
        """The grids of which tuples of a side may be in a window."""
        ends = [*(later.since[side] for later in grids[1:]), MAX_US]
        yield from {e.grid: None for e, end in zip(grids, ends, strict=True) if end > needed}

    def _bounds(
        self, side: int, table: pa.Table, values: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Which values of the other side tuples of a side ask for; `values` are theirs."""
        probe = self.spec.probe
        if not probe.one_key:
            return bounds_of(probe.indexed[0], 1 - side, table)
        values = key_of(probe, side, table) if values is None else values
        return values, values

    def written(
        self, work: InstanceWork, arrived: Sequence[Arrival], news: Sequence[News]
    ) -> tuple[Segment, ...]:
        """The grids for the batches to come, where they are others; one instance does it."""
        if work.instance != work.mapping.owners[0] or work.frontier_us in (MIN_US, MAX_US):
            return ()
        stored, grids = self.keeper.read(work.state, work.store), self._begun(work, news)
        if grids[-1].batch <= work.batch and len(grids) < MOST_GRIDS:
            survey = TupleSurvey(self.keepers, self.before)
            chosen = survey.better(work, arrived, grids[-1].grid)
            if chosen is not None:
                grids = (*grids, GridEpoch(PENDING, chosen, work.batch + 2))
        return () if grids == stored else self.keeper.write(work, grids)

    def _begun(self, work: InstanceWork, news: Sequence[News]) -> tuple[GridEpoch, ...]:
        """The grids that may have tuples in a window after the batch, or will.

        Of one that begins with the next batch it is known now where that is.
        """
        ends = [self._end(work, side, news[side]) for side in range(2)]
        grids = [
            replace(e, since=(ends[0], ends[1]))
            if e.since == PENDING and e.batch <= work.batch + 1
            else e
            for e in self._known(work.state, work.store)
        ]
        needed = [
            self.keepers[side].horizon(work.frontier_us, self.before[side]).needed
            for side in range(2)
        ]
        nexts: list[GridEpoch | None] = [*grids[1:], None]
        return tuple(
            e
            for e, later in zip(grids, nexts, strict=True)
            if later is None or any(later.since[side] > needed[side] for side in range(2))
        )

    def _end(self, work: InstanceWork, side: int, news: News) -> int:
        """From where on the tuples of a side are in later batches."""
        if self.keepers[side].order == TS:
            return work.frontier_us
        return self.before[side] + len(news.place)


def _everyone(mapping: BucketMapping, table: pa.Table) -> npt.NDArray[np.bool_]:
    return np.ones((mapping.running, table.num_rows), np.bool_)
