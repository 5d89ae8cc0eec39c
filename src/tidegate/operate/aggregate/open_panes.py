"""The panes of open windows, which an instance holds in memory from batch to batch.

What is here is also in segments (`state`): partials of panes that may still get tuples, oldest
first, and complete panes that windows to come need. A batch adds to it what it writes, and leaves
it for the next one where there is room.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.batch import ints

_MOST_PARTS = 64
"""With more tables than these, they become one: each costs something in every batch."""


@dataclass(frozen=True)
class PartialPanes:
    """Some partials, and the first and the last pane that they are of."""

    rows: pa.Table
    low: int
    high: int
    nbytes: int

    @staticmethod
    def of(rows: pa.Table) -> PartialPanes:
        """`rows` is not empty, and has its own memory."""
        pane = ints(rows, "pane")
        return PartialPanes(rows, int(pane.min()), int(pane.max()), rows.nbytes)

    def split(self, pane: int) -> tuple[pa.Table | None, PartialPanes | None]:
        """What is below a pane, and what is from it on; None where there is nothing."""
        if self.high < pane:
            return self.rows, None
        if self.low >= pane:
            return None, self
        below, above = split(self.rows, pane)
        return below, PartialPanes.of(above)


@dataclass(frozen=True)
class OpenPanes:
    """Complete panes in use, and partials that wait in the order of their batches.

    Grows with the groups of open windows and the batches of an open pane, within what `Kept` has
    room for.
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
        """The partials of panes below one, oldest first, and the rest."""
        pairs = [part.split(sealed) for part in self.waiting]
        due = [rows for rows, _ in pairs if rows is not None]
        left = tuple(part for _, part in pairs if part is not None)
        return due, OpenPanes(self.complete, left)

    def needed(self, pane: int) -> OpenPanes:
        """Without the complete panes below one."""
        pairs = [part.split(pane) for part in self.complete]
        return OpenPanes(tuple(part for _, part in pairs if part is not None), self.waiting)

    def those(self, wanted: Callable[[pa.Table], npt.NDArray[np.bool_]]) -> OpenPanes:
        """Some of the partials."""
        complete, waiting = (
            [part.rows.filter(pa.array(wanted(part.rows))) for part in parts]
            for parts in (self.complete, self.waiting)
        )
        return OpenPanes.of(complete, waiting)

    def with_complete(self, rows: pa.Table) -> OpenPanes:
        """With a copy of the rows: what came from a map task may be a view of a file of its."""
        return OpenPanes(_fewer((*self.complete, *_parts([_copied(rows)]))), self.waiting)

    def with_waiting(self, rows: pa.Table) -> OpenPanes:
        """The same of rows that wait."""
        return OpenPanes(self.complete, _fewer((*self.waiting, *_parts([_copied(rows)]))))


def split(rows: pa.Table, pane: int) -> tuple[pa.Table, pa.Table]:
    """Partials of panes below one, and those from it on."""
    number, nothing = ints(rows, "pane"), rows.slice(0, 0)
    below = number < pane
    if below.all():
        return rows, nothing
    if not below.any():
        return nothing, rows
    return rows.filter(pa.array(below)), rows.filter(pa.array(~below))


def _copied(rows: pa.Table) -> pa.Table:
    return rows.combine_chunks().take(pa.array(np.arange(rows.num_rows)))


def _parts(tables: Iterable[pa.Table]) -> tuple[PartialPanes, ...]:
    return tuple(PartialPanes.of(rows) for rows in tables if rows.num_rows)


def _fewer(parts: Sequence[PartialPanes]) -> tuple[PartialPanes, ...]:
    if len(parts) <= _MOST_PARTS:
        return tuple(parts)
    return (PartialPanes.of(pa.concat_tables([part.rows for part in parts]).combine_chunks()),)
