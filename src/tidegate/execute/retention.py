"""What an operator must keep, between the progress of a query and the compaction of its state."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.batch import MAX_US, MIN_US, TS
from tidegate.operate.aggregate.pane import AggregateSpec, needed_from, sealed_before
from tidegate.operate.join.match import RANK, arranged, ints
from tidegate.plan.physical import AggregatePlan, JoinPlan, Operator, ProcessPlan, TuplePlan
from tidegate.state.bucket_set import BucketSet
from tidegate.state.compaction import DEAD_SHARE, by_bucket
from tidegate.state.segment import Segment

PANES = "panes"
SIDES = ("left", "right")
TUPLES = "tuples"
BUCKETS = "buckets"
"""What the segments of an operator hold, by the names they have below it in a manifest."""

_CELLS = 8
"""Into how many parts a window is divided whose rows may be merged."""


class Horizon(Protocol):
    """What is needed at one moment of a query."""

    @property
    def tag(self) -> int:
        """The number a rewritten segment is given."""

    def live(self, rows: pa.Table, segment: Segment) -> npt.NDArray[np.bool_]:
        """Which rows of a segment are still needed; `rows` has at least the order column."""

    def passed(self, segment: Segment) -> bool:
        """Whether no row of a segment can be needed any more, told from its bounds alone."""

    def whole(self, segment: Segment) -> bool:
        """Whether all rows of a segment are needed, where its bounds alone tell."""


class Keeper(Protocol):
    """How the state of one operator is kept."""

    @property
    def order(self) -> str:
        """The column that decides how long a row lives."""

    @property
    def cell(self) -> int:
        """How far apart, in that column, rows of one merged segment may be."""

    @property
    def dead_share(self) -> float:
        """From which share of dead rows on a segment is rewritten."""

    @property
    def grouped(self) -> bool:
        """Whether segments are sorted by bucket."""

    def horizon(self, frontier_us: int, tuples: int, segments: Sequence[Segment] = ()) -> Horizon:
        """What is needed when the frontier is there and so many tuples have come.

        `segments` are all there are, oldest first.
        """

    def arrange(self, rows: pa.Table) -> pa.Table:
        """Rows of several segments, oldest first, in the order of one."""

    def kin(self, segments: Sequence[Segment], owners: Sequence[int]) -> list[int | None]:
        """Numbers that are equal for segments which may be merged; None for one left alone."""


def keepers(operator: Operator | None) -> dict[str, Keeper]:
    """How the state of an operator is kept, by what its segments hold."""
    if isinstance(operator, AggregatePlan):
        return {PANES: PaneKeeper(operator.spec)}
    if isinstance(operator, JoinPlan):
        return {name: SideKeeper(operator, i) for i, name in enumerate(SIDES)}
    if isinstance(operator, TuplePlan):
        return {TUPLES: BucketKeeper("rank", added=True)}
    if isinstance(operator, ProcessPlan):
        return {BUCKETS: BucketKeeper("bucket", added=False)}
    return {}


@dataclass(frozen=True)
class PaneHorizon:
    """Which rows of which segments a frontier has left behind.

    Of a segment's rows, those in panes below its `tag` are complete panes, needed while a window
    over them is open; the others are partials, needed until their pane is complete.
    """

    needed: int
    sealed: int

    @property
    def tag(self) -> int:
        return self.sealed

    @staticmethod
    def at(spec: AggregateSpec, frontier_us: int) -> PaneHorizon:
        return PaneHorizon(needed_from(spec, frontier_us), sealed_before(spec, frontier_us))

    def live(self, rows: pa.Table, segment: Segment) -> npt.NDArray[np.bool_]:
        pane: npt.NDArray[Any] = rows.column("pane").to_numpy()
        return np.where(pane < segment.tag, pane >= self.needed, pane >= self.sealed)

    def passed(self, segment: Segment) -> bool:
        complete_until = min(segment.high, segment.tag - 1)
        no_complete = segment.low >= segment.tag or complete_until < self.needed
        no_partial = segment.high < segment.tag or segment.high < self.sealed
        return no_complete and no_partial

    def whole(self, segment: Segment) -> bool:
        partials_from = max(segment.low, segment.tag)
        no_dead_partial = segment.high < segment.tag or partials_from >= self.sealed
        return segment.low >= self.needed and no_dead_partial


@dataclass(frozen=True)
class PaneKeeper:
    """Panes of an aggregate; the order of segments counts, because floats are added in it."""

    spec: AggregateSpec
    order = "pane"
    dead_share = DEAD_SHARE
    grouped = True

    @property
    def cell(self) -> int:
        return max(self.spec.range_us // self.spec.pane_us // _CELLS, 1)

    def horizon(
        self, frontier_us: int, tuples: int, segments: Sequence[Segment] = ()
    ) -> PaneHorizon:
        return PaneHorizon.at(self.spec, frontier_us)

    def arrange(self, rows: pa.Table) -> pa.Table:
        return by_bucket(rows, self.order)

    def kin(self, segments: Sequence[Segment], owners: Sequence[int]) -> list[int | None]:
        return [0] * len(segments)


@dataclass(frozen=True)
class SideHorizon:
    """The tuples of a side that new ones may still meet: those from a time, or a number, on."""

    column: str
    needed: int
    tag: int

    def live(self, rows: pa.Table, segment: Segment) -> npt.NDArray[np.bool_]:
        live: npt.NDArray[np.bool_] = ints(rows, self.column) >= self.needed
        return live

    def passed(self, segment: Segment) -> bool:
        return segment.high < self.needed

    def whole(self, segment: Segment) -> bool:
        return segment.low >= self.needed


@dataclass(frozen=True)
class SideKeeper:
    """The stored tuples of one side of a join, each segment in the order that it is searched.

    Only segments of one instance are merged: it then searches fewer and larger ones. A segment's
    `tag` says how it was arranged and dealt: an earlier run may have chosen otherwise.
    """

    join: JoinPlan
    side: int
    dead_share = 0.4
    grouped = False

    @property
    def _extent(self) -> tuple[int | None, int | None]:
        extent = self.join.spec.side(self.side).extent
        return extent.range_us, extent.rows

    @property
    def order(self) -> str:
        return TS if self._extent[1] is None else RANK

    @property
    def cell(self) -> int:
        return max((self._extent[0] or self._extent[1] or 0) // _CELLS, 1)

    @property
    def way(self) -> int:
        """A number for how tuples are arranged and dealt."""
        spec = self.join.spec
        index = None if spec.index is None else spec.intervals[spec.index].text
        return zlib.crc32(repr((spec.method, index, self.join.routing)).encode())

    def horizon(
        self, frontier_us: int, tuples: int, segments: Sequence[Segment] = ()
    ) -> SideHorizon:
        range_us, rows = self._extent
        if rows is not None:
            return SideHorizon(RANK, tuples - rows, self.way)
        assert range_us is not None
        if frontier_us in (MIN_US, MAX_US):
            return SideHorizon(TS, frontier_us, self.way)
        return SideHorizon(TS, frontier_us - range_us, self.way)

    def arrange(self, rows: pa.Table) -> pa.Table:
        # Segments of one instance follow each other in time, so equal keys stay in the total order.
        return arranged(self.join.spec, self.side, rows.combine_chunks())

    def kin(self, segments: Sequence[Segment], owners: Sequence[int]) -> list[int | None]:
        by_bucket = np.asarray(owners, np.int32)
        distinct = dict.fromkeys(s.buckets for s in segments)
        several = -1
        owner = {b: by if (by := b.owner(by_bucket)) is not None else several for b in distinct}
        return [owner[s.buckets] if s.tag == self.way else None for s in segments]


WHOLE = 1
"""The `tag` of a segment that has all there is of its buckets; others add to older ones."""


@dataclass(frozen=True)
class BucketHorizon:
    """Of every bucket, the newest segment that has the whole of it, and what came after."""

    held: Mapping[str, BucketSet]
    """By the names of segments, their buckets that are not in a newer whole."""
    tag: int = WHOLE

    @staticmethod
    def of(segments: Sequence[Segment]) -> BucketHorizon:
        held, newer = dict[str, BucketSet](), BucketSet.of(())
        for segment in reversed(segments):
            held[segment.name] = segment.buckets - newer
            if segment.tag == WHOLE:
                newer |= segment.buckets
        return BucketHorizon(held)

    def needed(self, segment: Segment) -> BucketSet:
        """The buckets of a segment that are not in a newer whole."""
        return self.held[segment.name]

    def live(self, rows: pa.Table, segment: Segment) -> npt.NDArray[np.bool_]:
        live: npt.NDArray[np.bool_] = np.isin(ints(rows, "bucket"), self.needed(segment).numbers())
        return live

    def passed(self, segment: Segment) -> bool:
        return not self.needed(segment)

    def whole(self, segment: Segment) -> bool:
        return len(self.needed(segment)) == len(segment.buckets)


@dataclass(frozen=True)
class BucketKeeper:
    """State that its instances write whole, bucket by bucket, or add to.

    Where they add, segments are not merged: what is added must stay after what it adds to.
    """

    order: str
    added: bool
    dead_share = 0.5
    grouped = True
    cell = 2**62

    def horizon(
        self, frontier_us: int, tuples: int, segments: Sequence[Segment] = ()
    ) -> BucketHorizon:
        return BucketHorizon.of(segments)

    def arrange(self, rows: pa.Table) -> pa.Table:
        return by_bucket(rows, self.order)

    def kin(self, segments: Sequence[Segment], owners: Sequence[int]) -> list[int | None]:
        if not self.added:
            return [0] * len(segments)
        return [i if s.tag == WHOLE else None for i, s in enumerate(segments)]
