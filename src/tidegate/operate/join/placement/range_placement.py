"""Places the tuples of a join by ranges of the value that its index compares.

For a band that is the value itself, for equalities the code of the keys. A map task stores a tuple
in the cell of its value, and sends it to all instances with cells that its bounds reach. One
instance learns from a survey whether another grid of cells would divide the work better, and
stores that grid for later batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from tidegate.batch import MAX_US, MIN_US, TS
from tidegate.errors import TaskError
from tidegate.operate.join.chain.chain import BUCKET
from tidegate.operate.join.placement.candidate import CandidateCount
from tidegate.operate.join.placement.grid import GRIDS, PENDING, GridEpoch, GridKeeper
from tidegate.operate.join.placement.placement import JoinPlacement
from tidegate.operate.join.placement.spread import AllSpread, HomeSpread, OwnerSpread, RangeSpread
from tidegate.operate.join.placement.survey import TupleSurvey, surveyed_of
from tidegate.operate.join.predicate.bound import bounds_of, key_of
from tidegate.operate.join.search import ComparedWork, News
from tidegate.operate.join.state import BY_RANGE, SIDES
from tidegate.operate.operator import Arrival, InstanceWork, MapWork, Share
from tidegate.route.cell import IN_TURN, CellGrid, Floats, Mask
from tidegate.route.partitioner import Int32s
from tidegate.state.segment.segment import Segment
from tidegate.state.store import Store

MOST_GRIDS = 4
"""At most this many grids may have placed tuples of one window: a search goes by each of them."""


@dataclass(frozen=True)
class RangePlacement(JoinPlacement):
    """Stores tuples in the cell of their value; a tuple searches the cells that its bounds reach.

    Total work: nearly the same for any number of instances. Only frequent values are searched for
    in several places (`route/cell.py`). Where windows count tuples, every instance sees all tuples,
    to count them, and searches for those that may have pairs with what it has stored.
    """

    routing = BY_RANGE
    dealt_by = (GRIDS, *SIDES)

    @property
    def spread(self) -> OwnerSpread:
        home = self.spec.kind.home
        if home is not None:
            return HomeSpread(home)
        return AllSpread() if self.spec.counts else RangeSpread()

    @property
    def _keeper(self) -> GridKeeper:
        return GridKeeper(self._way)

    @property
    def _way(self) -> int:
        """The tag of segments whose tuples were arranged and dealt as they are now."""
        return self.keepers[0].way

    def _grids(
        self, state: Mapping[str, Sequence[Segment]], store: Store, batch: int
    ) -> tuple[GridEpoch, ...]:
        """The grids that have placed tuples up to a batch; the last one places those of the batch.

        The map tasks of a batch may run before the previous batch is done, and some may see its
        state already. A grid that a batch chooses holds from the second batch after it on: so map
        tasks place tuples alike, whether they have seen the choice or not.
        """
        return tuple(epoch for epoch in self._known(state, store) if epoch.batch <= batch)

    def _known(self, state: Mapping[str, Sequence[Segment]], store: Store) -> tuple[GridEpoch, ...]:
        found = self._keeper.read(state, store)
        if found is not None:
            return found
        # Another query may have run on this checkpoint in between, and stored its own grids in
        # place of those that placed these tuples. Then a tuple may be in any bucket.
        stored = (segment for side in SIDES for segment in state.get(side, ()))
        lost = any(segment.tag == self._way for segment in stored)
        return (GridEpoch((MIN_US, MIN_US), IN_TURN if lost else self.first),)

    def deal(self, work: MapWork, side: int, tuples: pa.Table) -> list[Share]:
        """Give new tuples their buckets, and send them to the instances that see them.

        Where a value cannot be computed, tuples are dealt in turn and seen by all: the instances
        decide whether it is an error.
        """
        router = work.router(self.partitioner)
        beside, seen = list[Share](), None
        try:
            values = key_of(self.spec.probe, side, tuples)
            bounds = self._bounds(side, tuples, values)
        except TaskError:
            bucket = router.buckets([], tuples.num_rows)
        else:
            grids = self._grids(work.state, work.opened(), work.batch)
            bucket = grids[-1].grid.stored(router, values)
            if work.mapping.running > 1:
                beside = surveyed_of(work, side, values, *bounds)
                seen = self._seen(grids, work, side, bucket, bounds)
        tuples = tuples.add_column(3, BUCKET, pa.array(bucket))
        if self._is_counted_apart(work, work.opened()):
            beside.append(self._candidates.share(tuples))
        if seen is None:
            return [*self.spread.shares(work, side, tuples), *beside]
        return [*_shares(tuples, seen), *beside]

    def _seen(
        self,
        grids: Sequence[GridEpoch],
        work: MapWork,
        side: int,
        bucket: Int32s,
        bounds: tuple[Floats, Floats],
    ) -> Mask | None:
        """A row of flags per instance: the new tuples it sees; None where cells do not decide."""
        if self.spec.counts or side == self.spec.kind.home:
            return None
        seen = self._reached(grids, work, side, bounds)
        # The owner stores the tuple, so it sees it whatever its bounds are.
        seen[work.mapping.owner_array[bucket], np.arange(len(bucket))] = True
        return seen

    def asks(self, work: InstanceWork, side: int, tuples: pa.Table) -> Mask | None:
        if not self.spec.counts or work.mapping.running == 1 or not tuples.num_rows:
            return None
        try:
            bounds = self._bounds(side, tuples)
        except TaskError:
            return None
        grids = self._grids(work.state, work.store, work.batch)
        return np.asarray(self._reached(grids, work, side, bounds)[work.instance])

    def _reached(
        self,
        grids: Sequence[GridEpoch],
        work: MapWork | InstanceWork,
        side: int,
        bounds: tuple[Floats, Floats],
    ) -> Mask:
        """A row of flags per instance: the tuples whose bounds reach what it may have stored."""
        mapping, other = work.mapping, 1 - side
        horizon = self.keepers[other].horizon(work.previous_us, self.before[other])
        stored = [s for s in work.state.get(SIDES[other], ()) if not horizon.passed(s)]
        if any(s.tag != self._way for s in stored):  # an earlier run has placed them anywhere
            return np.ones((mapping.running, len(bounds[0])), np.bool_)
        reached = np.zeros((mapping.running, len(bounds[0])), np.bool_)
        for grid in self._live(grids, other, horizon.needed):
            for rows, buckets in grid.asked(*bounds, mapping.buckets, mapping.instances):
                everywhere = buckets < 0
                if everywhere.any():
                    reached[:, rows[everywhere]] = True
                    rows, buckets = rows[~everywhere], buckets[~everywhere]
                # A former owner still holds what it stored in the bucket before a switch.
                for owners in mapping.tenures:
                    reached[owners[buckets], rows] = True
        return reached

    def _live(self, grids: Sequence[GridEpoch], side: int, needed: int) -> Iterator[CellGrid]:
        """The grids that have placed tuples of a side which may still be in a window, each once."""
        ends = [*(later.since[side] for later in grids[1:]), MAX_US]
        yield from {e.grid: None for e, end in zip(grids, ends, strict=True) if end > needed}

    def _bounds(
        self, side: int, table: pa.Table, values: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """The values of the other side that tuples ask for; `values` are their own, if known."""
        probe = self.spec.probe
        if not probe.one_key:
            return bounds_of(probe.indexed[0], 1 - side, table)
        values = key_of(probe, side, table) if values is None else values
        return values, values

    def cells(self, work: InstanceWork) -> str:
        newest = self._grids(work.state, work.store, work.batch)[-1]
        return f"{newest.batch} {newest.grid}"

    def comparisons(
        self, work: InstanceWork, arrived: Sequence[Arrival], compared: ComparedWork
    ) -> int:
        if not self._is_counted_apart(work, work.store):
            return compared.implied
        return self._candidates.candidates(work, arrived)

    def _is_counted_apart(self, work: MapWork | InstanceWork, store: Store) -> bool:
        """Whether one instance counts pairs within the windows, because none sees all tuples."""
        if self.spec.counts or work.mapping.running == 1:
            return False
        return any(e.grid.width for e in self._grids(work.state, store, work.batch))

    @property
    def _candidates(self) -> CandidateCount:
        return CandidateCount(self.spec, self.keepers, self.sides)

    def written(
        self, work: InstanceWork, arrived: Sequence[Arrival], news: Sequence[News]
    ) -> Mapping[str, tuple[Segment, ...]]:
        """The grids for later batches, where they change; one instance writes them for all."""
        if work.instance != work.mapping.owners[0] or work.frontier_us in (MIN_US, MAX_US):
            return {}
        stored, grids = self._keeper.read(work.state, work.store), self._begun(work, news)
        # Not while a grid is pending: the survey would judge cells that are about to be replaced.
        if grids[-1].batch <= work.batch and len(grids) < MOST_GRIDS:
            survey = TupleSurvey(self.keepers, self.before)
            chosen = survey.better(work, arrived, grids[-1].grid)
            if chosen is not None:
                # + 2, because map tasks of the next batch may have run already: see `_grids`.
                grids = (*grids, GridEpoch(PENDING, chosen, work.batch + 2))
        return {} if grids == stored else {GRIDS: self._keeper.write(work, grids)}

    def _begun(self, work: InstanceWork, news: Sequence[News]) -> tuple[GridEpoch, ...]:
        """The grids that have tuples in a window after the batch, or will have.

        A grid that begins with the next batch learns now at which coordinates.
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
        """The coordinate at which the tuples of later batches begin, on a side."""
        if self.keepers[side].order == TS:
            return work.frontier_us
        return self.before[side] + len(news.place)


def _shares(tuples: pa.Table, seen: Mask) -> Iterator[Share]:
    """Shares of tuples by a row of flags for each instance; tuples that all see are sent once."""
    everyone = seen.all(axis=0)
    if everyone.all():
        yield Share.for_all(tuples)
        return
    if everyone.any():
        yield Share.for_all(tuples.filter(pa.array(everyone)))
        seen &= ~everyone
    for instance, mine in enumerate(seen):
        if len(rows := np.flatnonzero(mine)):
            yield Share(instance, tuples.take(pa.array(rows)))
