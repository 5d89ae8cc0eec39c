"""Orders rows of time windows by the end of the window, then as ORDER BY says, then by key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.collect.order import HIDDEN, without_hidden
from tidegate.order import ASCENDING, Direction, sort_indices


@dataclass(frozen=True)
class WindowOrder:
    """Rows of windows of time: by end, then as ORDER BY says, then by the group's key."""

    def merge(
        self, outputs: Sequence[pa.Table], directions: Sequence[Direction], limit: int | None
    ) -> pa.Table:
        return merge_windows(outputs, directions, limit)

    def text(self, ordered: bool) -> str:
        return "window, ORDER BY, key" if ordered else "window, key"


def merge_windows(
    outputs: Sequence[pa.Table], directions: Sequence[Direction], limit: int | None
) -> pa.Table:
    """The rows of all instances by window end, then ORDER BY, then key; LIMIT rows per window."""
    rows = pa.concat_tables(outputs)
    places = places_by(rows, window_order(rows, directions))
    rows = without_hidden(rows).combine_chunks().take(places)
    return rows if limit is None else first_per_window(rows, limit)


def window_order(rows: pa.Table, directions: Sequence[Direction]) -> list[tuple[str, Direction]]:
    """The columns that order windows' rows, by their hidden names."""
    ordered = sorted(n for n in rows.column_names if n.startswith(f"{HIDDEN}o"))
    keys = sorted(n for n in rows.column_names if n.startswith(f"{HIDDEN}k"))
    pairs = [("window_end", ASCENDING), *zip(ordered, directions, strict=True)]
    return pairs + [(k, ASCENDING) for k in keys]


def in_order(rows: pa.Table, by: Sequence[tuple[str, Direction]]) -> pa.Table:
    return rows.take(places_by(rows, by))


def places_by(rows: pa.Table, by: Sequence[tuple[str, Direction]]) -> pa.Array:
    """The places of rows in the order of some of their columns."""
    columns = [rows.column(name).combine_chunks() for name, _ in by]
    return sort_indices(columns, [how for _, how in by])


def first_per_window(rows: pa.Table, limit: int) -> pa.Table:
    """The first rows of each window; rows of one window must be adjacent."""
    ends = rows.column("window_end").cast(pa.int64()).to_numpy()
    starts = np.flatnonzero(np.concatenate([[True], ends[1:] != ends[:-1]])) if len(ends) else ends
    lengths = np.diff(np.append(starts, len(ends)))
    place = np.arange(len(ends)) - np.repeat(starts, lengths)
    return rows.filter(pa.array(place < limit))
