"""State that is written bucket by bucket, whole or as an addition, between batches and compaction.

Windows of tuples and processes keep it: every tuple is in the state of the buckets it belongs to,
and an untouched bucket costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.batch import ints
from tidegate.state.bucket_set import BucketSet
from tidegate.state.compaction import by_bucket
from tidegate.state.segment import Segment

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
