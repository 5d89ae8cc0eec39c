"""Reads a state of which every batch writes only what it changed.

The segments of such a state are layers, oldest first, as in a log-structured merge tree. A row
counts until a newer layer replaces it. A row that removes older rows **hides** them: it is a
tombstone. Compaction merges neighbours of similar size. With n rows that count and b rows written
by each batch, there are O(log(n / b)) layers with O(n) rows in all. Each row is rewritten
O(log(n / b)) times, off the critical path of a batch.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.batch import ints
from tidegate.operate.keeper import Keeper
from tidegate.operate.kernels.group import run_starts
from tidegate.operate.kernels.join.bisect import bisect
from tidegate.operate.kernels.order import Ints, Mask
from tidegate.operate.kernels.window.window import expand
from tidegate.state.segment.compaction import FOREVER
from tidegate.state.segment.segment import Segment

HIDES = 1 << 62
"""Added to the order of a row that hides older ones. The order of all other rows is less than this.
The oldest layer needs no such rows, because there is nothing beneath it."""


@dataclass(frozen=True)
class LayerHorizon:
    """Needs all rows, except those in the oldest layer that hide others.

    One segment cannot tell whether a newer layer has replaced its rows; only a merge can.
    """

    order: str
    oldest: str | None
    tag: int = 0

    def live(self, rows: pa.Table, segment: Segment) -> Mask:
        if segment.name != self.oldest:
            return np.ones(rows.num_rows, np.bool_)
        live: Mask = ints(rows, self.order) < HIDES
        return live

    def passed(self, segment: Segment) -> bool:
        return False

    def whole(self, segment: Segment) -> bool:
        return segment.name != self.oldest or segment.high < HIDES


class LayeredKeeper(Keeper):
    """Derive from it; define `arrange`, and `order`: the column by which rows are sorted and found
    within their bucket.

    A merge does not know whether the oldest layer is part of it, so it keeps the rows that hide.
    `dead_share` is 0, so the oldest layer is written once more, without them.
    """

    dead_share: float = 0.0
    cell: int = FOREVER
    columns: Sequence[str] | None = None

    @abstractmethod
    def arrange(self, rows: pa.Table) -> pa.Table:
        """Merge the rows of neighbouring layers, oldest first; drop those that newer ones replace.

        Rows that hide others must stay, even if the hidden ones are among `rows`: there may be
        more of them in an older layer.
        """

    def horizon(
        self, frontier_us: int, tuples: int, segments: Sequence[Segment] = ()
    ) -> LayerHorizon:
        return LayerHorizon(self.order, segments[0].name if segments else None)


def distinct(buckets: Ints, orders: Ints) -> tuple[Ints, Ints]:
    """Every pair of bucket and order once, ascending."""
    sorting = np.lexsort([orders, buckets])
    buckets, orders = buckets[sorting], orders[sorting]
    new = run_starts(buckets, orders)
    return buckets[new], orders[new]


def found(rows: pa.Table, order: str, buckets: Ints, orders: Ints) -> pa.Table:
    """The rows of a layer that have one of these distinct pairs of bucket and order.

    `rows` must be sorted by bucket and order. Costs O(pairs * log(rows)) and the rows found.
    """
    bucket, position = ints(rows, "bucket"), ints(rows, order)
    begins, ends = (np.searchsorted(bucket, buckets, side) for side in ("left", "right"))
    # Each pair is searched in the rows of its bucket only: orders ascend within a bucket.
    first = bisect(position, orders, begins, ends)
    last = bisect(position, orders + 1, first, ends)
    _, places = expand(first, last - 1)
    return rows.take(pa.array(places))
