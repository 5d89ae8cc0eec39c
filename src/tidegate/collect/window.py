"""Orders rows of time windows by the end of the window, then as ORDER BY says, then by key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.collect.order import HIDDEN, without_hidden
from tidegate.order import ASCENDING, Direction, sort_indices

EMITTED = f"{HIDDEN}e"
"""The prefix of the hidden columns that come before the window in the order: when to emit a row."""


@dataclass(frozen=True)
class WindowOrder:
    """The order of windows' rows: by end, then by ORDER BY, then by the group's key.

    Columns of EMITTED, if there are any, come before the end. `what` is its text.
    """

    what: str = "window"

    def merge(
        self, outputs: Sequence[pa.Table], directions: Sequence[Direction], limit: int | None
    ) -> pa.Table:
        rows = pa.concat_tables(outputs)
        places = places_by(rows, window_order(rows, directions))
        if limit is None:
            return without_hidden(rows).combine_chunks().take(places)
        return without_hidden(first_per_window(rows.combine_chunks().take(places), limit))

    def text(self, ordered: bool) -> str:
        return f"{self.what}, ORDER BY, key" if ordered else f"{self.what}, key"


def window_order(rows: pa.Table, directions: Sequence[Direction]) -> list[tuple[str, Direction]]:
    """The columns that make the order, by their hidden names, with directions."""
    ordered = sorted(n for n in rows.column_names if n.startswith(f"{HIDDEN}o"))
    keys = sorted(n for n in rows.column_names if n.startswith(f"{HIDDEN}k"))
    given = [(name, ASCENDING) for name in told_apart(rows)]
    by = zip(ordered, directions, strict=True)
    return [*given, *by, *((k, ASCENDING) for k in keys)]


def told_apart(rows: pa.Table) -> list[str]:
    """The columns that are equal for all rows of one window that are emitted together."""
    return [*sorted(n for n in rows.column_names if n.startswith(EMITTED)), "window_end"]


def in_order(rows: pa.Table, by: Sequence[tuple[str, Direction]]) -> pa.Table:
    return rows.take(places_by(rows, by))


def places_by(rows: pa.Table, by: Sequence[tuple[str, Direction]]) -> pa.Array:
    """The permutation that sorts rows by some of their columns."""
    columns = [rows.column(name).combine_chunks() for name, _ in by]
    return sort_indices(columns, [how for _, how in by])


def first_per_window(rows: pa.Table, limit: int) -> pa.Table:
    """The first `limit` rows of each window; rows of one window must be neighbours."""
    new = np.arange(rows.num_rows) == 0
    for name in told_apart(rows):
        values = rows.column(name).cast(pa.int64()).to_numpy()
        new[1:] |= values[1:] != values[:-1]
    starts = np.flatnonzero(new)
    lengths = np.diff(np.append(starts, rows.num_rows))
    place = np.arange(rows.num_rows) - np.repeat(starts, lengths)
    return rows.filter(pa.array(place < limit))
