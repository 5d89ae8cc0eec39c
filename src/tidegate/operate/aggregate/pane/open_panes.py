"""The panes of open windows, which an instance holds in memory from batch to batch.

It is a copy of what is in the segments (`state.py`): partials of panes that may still get tuples,
oldest first, and complete panes that open windows need. A batch adds what it writes. It leaves the
panes for the next batch where there is room.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.batch import gathered, ints

_MOST_PARTS = 64
"""With more tables than these they are joined into one, because each costs in every batch."""


@dataclass(frozen=True)
class PartialPanes:
    """A table of partials, with its lowest and its highest pane."""

    rows: pa.Table
    low: int
    high: int
    nbytes: int

    @staticmethod
    def of(rows: pa.Table) -> PartialPanes:
        """`rows` must not be empty, and must have its own memory."""
        pane = ints(rows, "pane")
        return PartialPanes(rows, int(pane.min()), int(pane.max()), rows.nbytes)

    def split(self, pane: int) -> tuple[pa.Table | None, PartialPanes | None]:
        """The rows of panes below a pane, and the rest; None where there are no such rows."""
        if self.high < pane:
            return self.rows, None
        if self.low >= pane:
            return None, self
        below, above = split(self.rows, pane)
        return below, PartialPanes.of(above)


@dataclass(frozen=True)
class OpenPanes:
    """Complete panes that are needed, and partials that wait, in the order of their batches.

    Grows with the groups of open windows and with the batches of an open pane; `Kept` bounds it.
    """

    complete: tuple[PartialPanes, ...] = ()
    waiting: tuple[PartialPanes, ...] = ()

    @staticmethod
    def of(complete: Iterable[pa.Table], waiting: Iterable[pa.Table]) -> OpenPanes:
        return OpenPanes(_parts(complete), _parts(waiting))

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in (*self.complete, *self.waiting))

    def due(self, sealed: int) -> tuple[list[pa.Table], OpenPanes]:
        """The waiting partials of panes below `sealed`, oldest first, and all that is left."""
        pairs = [part.split(sealed) for part in self.waiting]
        due = [rows for rows, _ in pairs if rows is not None]
        left = tuple(part for _, part in pairs if part is not None)
        return due, OpenPanes(self.complete, left)

    def needed(self, pane: int) -> OpenPanes:
        """Drop the complete panes below a pane."""
        pairs = [part.split(pane) for part in self.complete]
        return OpenPanes(tuple(part for _, part in pairs if part is not None), self.waiting)

    def those(self, wanted: Callable[[pa.Table], npt.NDArray[np.bool_]]) -> OpenPanes:
        """Keep the partials that `wanted` marks."""
        complete, waiting = (
            [part.rows.filter(pa.array(wanted(part.rows))) for part in parts]
            for parts in (self.complete, self.waiting)
        )
        return OpenPanes.of(complete, waiting)

    def with_complete(self, rows: pa.Table) -> OpenPanes:
        """Add complete panes, as a copy: rows of a map task may be a view of a mapped file."""
        return OpenPanes(_fewer((*self.complete, *_parts([_copied(rows)]))), self.waiting)

    def with_waiting(self, rows: pa.Table) -> OpenPanes:
        """Add partials that wait, also as a copy."""
        return OpenPanes(self.complete, _fewer((*self.waiting, *_parts([_copied(rows)]))))


def split(rows: pa.Table, pane: int) -> tuple[pa.Table, pa.Table]:
    """The partials of panes below a pane, and those from it on; copied only where both exist."""
    number, nothing = ints(rows, "pane"), rows.slice(0, 0)
    below = number < pane
    if below.all():
        return rows, nothing
    if not below.any():
        return nothing, rows
    return rows.filter(pa.array(below)), rows.filter(pa.array(~below))


def _copied(rows: pa.Table) -> pa.Table:
    return gathered(rows, np.arange(rows.num_rows))


def _parts(tables: Iterable[pa.Table]) -> tuple[PartialPanes, ...]:
    return tuple(PartialPanes.of(rows) for rows in tables if rows.num_rows)


def _fewer(parts: Sequence[PartialPanes]) -> tuple[PartialPanes, ...]:
    if len(parts) <= _MOST_PARTS:
        return tuple(parts)
    return (PartialPanes.of(pa.concat_tables([part.rows for part in parts]).combine_chunks()),)
