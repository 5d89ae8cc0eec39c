"""Places tuples by ranges of a value: cells of one width, each in a bucket, hot ones in several.

A tuple is stored in the cell of its value, and searches the cells that its bounds reach.
Neighbouring cells are in neighbouring buckets, so a smooth distribution of values is divided
evenly, however it moves. A cell with too much work is **hot**: its tuples are dealt in turn over
some buckets, from its own one on, or over all instances; a search of it goes to all of these.

How total work grows with instances: a tuple is stored once. It searches 1 + (width of its bounds /
width of a cell) places, however many instances there are; only hot cells are in more places.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tidegate.route.partitioner import Int32s, Int64s, Router

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_MOST = float(2**52)
"""Values beyond this many cells share one cell: doubles are too coarse to tell them apart."""

EVERYWHERE = 2**31
"""The number of buckets that stands for all instances, of a cell whose tuples are dealt to all."""


@dataclass(frozen=True)
class CellGrid:
    """Maps values to buckets.

    `width` is that of a cell; with 0 there are no cells, and tuples are dealt in turn over all
    instances. `hot` has the cells that are dealt over several buckets, ascending, and `fans` over
    how many each, or EVERYWHERE.
    """

    width: float = 0.0
    hot: tuple[int, ...] = ()
    fans: tuple[int, ...] = ()

    def cells(self, values: Floats) -> Int64s:
        """The cell of each value; it never decreases with the value. NaN gets an arbitrary cell."""
        with np.errstate(over="ignore", invalid="ignore"):
            cells = np.floor(values / self.width)
            found: Int64s = np.nan_to_num(np.clip(cells, -_MOST, _MOST), nan=0.0).astype(np.int64)
        return found

    def stored(self, router: Router, values: Floats) -> Int32s:
        """The buckets in which tuples with these values are stored; NaN may be anywhere."""
        rows = len(values)
        if not self.width:
            return router.buckets([], rows)
        cells = self.cells(values)
        bucket = (cells % router.mapping.buckets).astype(np.int32)
        fans = np.where(np.isnan(values), EVERYWHERE, self._fans(cells))
        several = np.flatnonzero(fans > 1)
        if not len(several):
            return bucket
        # Cell by cell, so that each cell is dealt evenly whatever comes between its tuples.
        several = several[np.argsort(cells[several], kind="stable")]
        everywhere = fans[several] >= router.mapping.buckets
        if everywhere.any():
            dealt = several[everywhere]
            bucket[dealt] = router.buckets([], len(dealt))
        if not everywhere.all():
            dealt = several[~everywhere]
            step = (np.arange(len(dealt)) + router.start) % fans[dealt]
            bucket[dealt] = (cells[dealt] + step) % router.mapping.buckets
        return bucket

    def asked(
        self, low: Floats, high: Floats, buckets: int, most: int
    ) -> Iterator[tuple[Int64s, Int32s]]:
        """Rows of bounds, and buckets that may have values within them; a pair may come again.

        Bucket -1 stands for all buckets. A row with more than `most` cells gets it, and every row
        where there are no cells. NaN in a bound asks nothing.
        """
        if not self.width:
            yield np.arange(len(low)), np.full(len(low), -1, np.int32)
            return
        rows = np.flatnonzero(low <= high)
        first, last = self.cells(low[rows]), self.cells(high[rows])
        wide = last - first >= most
        if wide.any():
            yield rows[wide], np.full(int(wide.sum()), -1, np.int32)
            rows, first, last = rows[~wide], first[~wide], last[~wide]
        while len(rows):
            yield from self._of_cells(rows, first, buckets)
            more = np.flatnonzero(first < last)
            rows, first, last = rows[more], first[more] + 1, last[more]

    def _of_cells(
        self, rows: Int64s, cells: Int64s, buckets: int
    ) -> Iterator[tuple[Int64s, Int32s]]:
        """Rows with one cell each, and the buckets of that cell."""
        fans = self._fans(cells)
        everywhere = fans >= buckets
        yield rows, np.where(everywhere, -1, cells % buckets).astype(np.int32)
        hot = np.flatnonzero((fans > 1) & ~everywhere)
        step = 1
        while len(hot := hot[fans[hot] > step]):
            yield rows[hot], ((cells[hot] + step) % buckets).astype(np.int32)
            step += 1

    def _fans(self, cells: Int64s) -> Int64s:
        hot, fans = self._hot
        if not len(hot):
            return np.ones(len(cells), np.int64)
        place = np.minimum(np.searchsorted(hot, cells), len(hot) - 1)
        return np.where(hot[place] == cells, fans[place], 1)

    @cached_property
    def _hot(self) -> tuple[Int64s, Int64s]:
        return np.array(self.hot, np.int64), np.array(self.fans, np.int64)


IN_TURN = CellGrid()
"""The grid without cells: tuples are dealt in turn."""
