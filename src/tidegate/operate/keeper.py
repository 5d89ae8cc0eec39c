"""The interface of keepers: which rows of a state are still needed, and how they are arranged.

An operator has a **keeper** for each part of its state. A **horizon** says which rows of that part
are needed at one frontier. The driver asks both when it compacts segments and deletes dead ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.batch import ints
from tidegate.state.segment.compaction import DEAD_SHARE, by_bucket
from tidegate.state.segment.segment import Absent, Segment

CELLS = 8
"""Compaction merges rows only within one of so many parts of a window. So rows that die at about
the same time share a segment, and compaction has little to copy."""


class Horizon(Protocol):
    """Which rows of a part of the state are needed at one frontier."""

    @property
    def tag(self) -> int:
        """The tag of a rewritten segment, where `Keeper.tag_of` gives no other."""

    def live(self, rows: pa.Table, segment: Segment) -> npt.NDArray[np.bool_]:
        """Marks the rows of a segment that are needed; `rows` has `order` and `dies_by`."""

    def passed(self, segment: Segment) -> bool:
        """Whether no row of the segment is needed; decided from its bounds, without reading it."""

    def whole(self, segment: Segment) -> bool:
        """Whether all rows are needed, as far as the bounds of the segment say; False is safe."""


@dataclass(frozen=True)
class OrderHorizon:
    """Needs the rows whose order column is at least `needed`, a time or a number."""

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

    Derive from it. By default segments are sorted by bucket, and all of them may be merged.
    """

    @property
    def order(self) -> str:
        """The column that decides how long a row lives."""

    @property
    def columns(self) -> Sequence[str] | None:
        """The columns that are kept; None for all there are.

        Segments of an earlier query may have other columns, in another order.
        """

    @property
    def dies_by(self) -> Sequence[str]:
        """The columns beside `order` that decide how long a row lives."""
        return ()

    @property
    def absent(self) -> Absent | None:
        """Gives a column that segments of an earlier query lack; None where none can be lacking."""
        return None

    @property
    def cell(self) -> int:
        """The largest span of the order column that compaction merges into one segment."""
        return 1

    @property
    def dead_share(self) -> float:
        """A segment is rewritten when more than this share of its rows is dead."""
        return DEAD_SHARE

    @property
    def grouped(self) -> bool:
        """Whether segments are sorted by bucket."""
        return True

    def horizon(self, frontier_us: int, tuples: int, segments: Sequence[Segment] = ()) -> Horizon:
        """What is needed at a frontier, after so many tuples.

        `segments` are all segments of this part, oldest first.
        """

    def arrange(self, rows: pa.Table) -> pa.Table:
        """Sort the rows of several segments, oldest first, as those of one segment."""
        return by_bucket(rows, self.order)

    def tag_of(self, rows: pa.Table, horizon: Horizon) -> int:
        """The tag of a rewritten segment of these rows."""
        return horizon.tag

    def kin(
        self, segments: Sequence[Segment], owners: Sequence[int], since: int
    ) -> list[int | None]:
        """One number for each segment: equal numbers may be merged, and None stays as it is.

        `owners` has the owner of each bucket. What is stored below `since`, a time or a number of
        tuples, belongs to former owners for a while.
        """
        return [0] * len(segments)
