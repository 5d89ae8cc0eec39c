"""The interface of keepers: which rows of a state are still needed, and how they are arranged.

A **keeper** is what an operator says of one part of its state; a **horizon** is what it needs of it
at one moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.batch import ints
from tidegate.state.compaction import DEAD_SHARE, by_bucket
from tidegate.state.segment import Absent, Segment

CELLS = 8
"""Into how many parts a window is divided whose rows may be merged: what dies together stays
together, so that compaction has little to copy."""


class Horizon(Protocol):
    """What is needed at one moment of a query."""

    @property
    def tag(self) -> int:
        """The number a rewritten segment is given, where the keeper gives no other."""

    def live(self, rows: pa.Table, segment: Segment) -> npt.NDArray[np.bool_]:
        """Which rows of a segment are still needed; `rows` has at least the order column."""

    def passed(self, segment: Segment) -> bool:
        """Whether no row of a segment can be needed any more, told from its bounds alone."""

    def whole(self, segment: Segment) -> bool:
        """Whether all rows of a segment are needed, where its bounds alone tell."""


@dataclass(frozen=True)
class OrderHorizon:
    """What is needed of state that dies in its order: the rows from a time, or a number, on."""

    column: str
    needed: int
    tag: int = 0

    def live(self, rows: pa.Table, segment: Segment) -> npt.NDArray[np.bool_]:
        live: npt.NDArray[np.bool_] = ints(rows, self.column) >= self.needed
        return live

    def passed(self, segment: Segment) -> bool:
        return segment.high < self.needed

    def whole(self, segment: Segment) -> bool:
        return segment.low >= self.needed


class Keeper(Protocol):
    """How one part of the state of an operator is kept; picklable.

    Derive from it: most parts are sorted by bucket, and all of their segments may be merged.
    """

    @property
    def order(self) -> str:
        """The column that decides how long a row lives."""

    @property
    def columns(self) -> Sequence[str] | None:
        """The columns that are kept; None for all there are.

        Segments may have others that an earlier query had use for, in another order.
        """

    @property
    def dies_by(self) -> Sequence[str]:
        """The columns beside `order` that decide how long a row lives."""
        return ()

    @property
    def absent(self) -> Absent | None:
        """What columns are in segments that were written before a query had use for them."""
        return None

    @property
    def cell(self) -> int:
        """How far apart, in that column, rows of one merged segment may be."""
        return 1

    @property
    def dead_share(self) -> float:
        """From which share of dead rows on a segment is rewritten."""
        return DEAD_SHARE

    @property
    def grouped(self) -> bool:
        """Whether segments are sorted by bucket."""
        return True

    def horizon(self, frontier_us: int, tuples: int, segments: Sequence[Segment] = ()) -> Horizon:
        """What is needed when the frontier is there and so many tuples have come.

        `segments` are all there are, oldest first.
        """

    def arrange(self, rows: pa.Table) -> pa.Table:
        """Rows of several segments, oldest first, in the order of one."""
        return by_bucket(rows, self.order)

    def tag_of(self, rows: pa.Table, horizon: Horizon) -> int:
        """The number that a rewritten segment of these rows is given."""
        return horizon.tag

    def kin(
        self, segments: Sequence[Segment], owners: Sequence[int], since: int
    ) -> list[int | None]:
        """Numbers that are equal for segments which may be merged; None for one left alone.

        What is stored below `since`, a time or a number of tuples, is for a while with other
        owners than these.
        """
        return [0] * len(segments)
