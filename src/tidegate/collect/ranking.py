"""Keeps rows of each partition of a window by their numbers: LIMIT n BY, and QUALIFY."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.collect.numbering import Numbering, PartitionedRows
from tidegate.collect.order import HIDDEN
from tidegate.collect.window import told_apart
from tidegate.order import ASCENDING, Direction, alike, sort_indices

PARTITION, RANKED = f"{HIDDEN}p", f"{HIDDEN}q"
"""Prefixes of the hidden columns with the partition of a row, and with its order in that."""


@dataclass(frozen=True)
class RankFilter:
    """Keeps the rows of each window and partition that have some numbers."""

    numbering: Numbering
    directions: tuple[Direction, ...]

    def kept(self, rows: pa.Table, partly: bool = False) -> pa.Table:
        """The rows that are kept, in their given order; with `partly` those that may be kept.

        Hidden columns have the partition, the order in it, and the key. The key breaks ties, which
        ROW_NUMBER and NTILE must not leave to the order of instances.
        """
        if not rows.num_rows:
            return rows
        parts = [*told_apart(rows), *_named(rows, PARTITION)]
        ranked, keys = _named(rows, RANKED), _named(rows, f"{HIDDEN}k")
        how = [
            *([ASCENDING] * len(parts)),
            *self.directions,
            *([ASCENDING] * len(keys)),
        ]
        columns = [rows.column(n).combine_chunks() for n in (*parts, *ranked, *keys)]
        places = sort_indices(columns, how)
        ordered = [column.take(places) for column in columns]
        begins = ~alike(ordered[: len(parts)], rows.num_rows)
        starts = np.flatnonzero(begins)
        counts = np.diff(np.append(starts, len(begins)))
        peers = ~begins & alike(ordered[len(parts) : len(parts) + len(ranked)], rows.num_rows)
        ranked_rows = PartitionedRows(
            np.repeat(starts, counts), np.repeat(starts + counts, counts), peers
        )
        kept = self.numbering.keeps(ranked_rows, partly)
        return rows.take(pa.array(np.sort(places.to_numpy()[kept])))


def _named(rows: pa.Table, begin: str) -> list[str]:
    return sorted(n for n in rows.column_names if n.startswith(begin))
