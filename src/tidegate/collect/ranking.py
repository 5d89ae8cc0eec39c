"""Keeps the first rows of each partition of a window: LIMIT n BY, and QUALIFY ROW_NUMBER()."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.collect.order import HIDDEN
from tidegate.collect.window import told_apart
from tidegate.order import ASCENDING, Direction, Flags, alike, sort_indices

Ints = npt.NDArray[np.int64]

PARTITION, RANKED = f"{HIDDEN}p", f"{HIDDEN}q"
"""How the hidden columns begin that say which partition a row is of, and its place in it."""


def _row_number(starts: Ints, peers: Flags) -> Ints:
    return np.arange(len(starts)) - starts + 1


def _rank(starts: Ints, peers: Flags) -> Ints:
    first = np.maximum.accumulate(np.where(peers, 0, np.arange(len(starts))))
    return first - starts + 1


def _dense_rank(starts: Ints, peers: Flags) -> Ints:
    values: Ints = np.cumsum(~peers)
    return np.asarray(values - values[starts] + 1)


RANKINGS: dict[str, Callable[[Ints, Flags], Ints]] = {
    "ROW_NUMBER": _row_number,
    "RANK": _rank,
    "DENSE_RANK": _dense_rank,
}
"""Numbers of rows that are sorted by partition, given by row where its partition starts, and
whether it is equal in order to the row before it in the partition."""


@dataclass(frozen=True)
class RankFilter:
    """The rows of each window and partition whose number is at most `most`."""

    kind: str
    most: int
    directions: tuple[Direction, ...]

    def first(self, rows: pa.Table) -> pa.Table:
        """Those rows, in the order that all are given in.

        Hidden columns have the partition, the order in it, and the key, which breaks ties of
        ROW_NUMBER. A part of the rows gives at least those of all that it has.
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
        starts = np.maximum.accumulate(np.where(begins, np.arange(len(begins)), 0))
        peers = ~begins & alike(ordered[len(parts) : len(parts) + len(ranked)], rows.num_rows)
        kept = RANKINGS[self.kind](starts, peers) <= self.most
        return rows.take(pa.array(np.sort(places.to_numpy()[kept])))


def _named(rows: pa.Table, begin: str) -> list[str]:
    return sorted(n for n in rows.column_names if n.startswith(begin))
