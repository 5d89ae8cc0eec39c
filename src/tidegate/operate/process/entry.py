"""The rows that store the objects of buckets in segments.

A bucket has one row for its **head**, and one for each **entry** of declared state. The head is the
object without its declared state. A row has a name, made of the state's name and the key. The
newest row of a name counts; a row that hides is a tombstone: it says that the entry is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.batch import MAX_US, MIN_US, ints
from tidegate.operate.keeper import Horizon
from tidegate.operate.kernels.order import flat
from tidegate.operate.layered_state import HIDES, LayeredKeeper, LayerHorizon
from tidegate.operate.process.key import StoredEntry, entry_of
from tidegate.state.segment.compaction import DEAD_SHARE
from tidegate.state.segment.segment import Segment

ENTRY = "entry"
STATE = pa.schema(
    [
        ("bucket", pa.int32()),
        (ENTRY, pa.int64()),
        ("number", pa.int64()),
        ("pending_us", pa.int64()),
        ("name", pa.large_binary()),
        ("value", pa.large_binary()),
    ]
)
"""Rows are sorted by bucket and entry. The iteration of a map follows `number`. `pending_us` is the
earliest timer of a head, or the time at which an entry expires."""

HEAD = 0
"""The `entry` of heads; those of entries are greater."""


class StateRow(NamedTuple):
    """One row of a bucket."""

    entry: int
    number: int
    pending_us: int
    name: bytes
    value: bytes

    @staticmethod
    def head(pending_us: int, value: bytes) -> StateRow:
        return StateRow(HEAD, 0, pending_us, b"", value)

    @staticmethod
    def of(name: bytes, stored: StoredEntry) -> StateRow:
        return StateRow(entry_of(name), stored.number, stored.until_us, name, stored.data)

    @staticmethod
    def gone(name: bytes, stored: StoredEntry) -> StateRow:
        """The tombstone of an entry; it is needed until the entry would have expired."""
        return StateRow(entry_of(name) | HIDES, 0, stored.until_us, name, b"")


@dataclass(frozen=True)
class EntryHorizon(LayerHorizon):
    """A layer's horizon that does not need expired entries either.

    Expired entries are dropped when segments are merged, and when a segment has too many of them:
    its tag is the time at which it will. The rows of one name expire in the order in which they
    were written. So dropping an expired row never uncovers a live one in an older layer.
    """

    frontier_us: int = MIN_US

    def live(self, rows: pa.Table, segment: Segment) -> npt.NDArray[np.bool_]:
        live = super().live(rows, segment)
        if "pending_us" in rows.column_names:
            live &= (ints(rows, ENTRY) == HEAD) | (ints(rows, "pending_us") > self.frontier_us)
        return live

    def whole(self, segment: Segment) -> bool:
        return super().whole(segment) and self.frontier_us < segment.tag


@dataclass(frozen=True)
class EntryKeeper(LayeredKeeper):
    """Keeps the newest row of each head and entry."""

    order = ENTRY
    dies_by = ("pending_us",)
    dead_share = DEAD_SHARE

    def horizon(
        self, frontier_us: int, tuples: int, segments: Sequence[Segment] = ()
    ) -> EntryHorizon:
        oldest = segments[0].name if segments else None
        return EntryHorizon(ENTRY, oldest, frontier_us=frontier_us)

    def arrange(self, rows: pa.Table) -> pa.Table:
        return newest(rows)

    def tag_of(self, rows: pa.Table, horizon: Horizon | None = None) -> int:
        """The time at which a share `dead_share` of the rows will have expired."""
        until_us = np.where(ints(rows, ENTRY) == HEAD, MAX_US, ints(rows, "pending_us"))
        place = int(self.dead_share * len(until_us))
        return int(np.partition(until_us, place)[place])


def newest(rows: pa.Table) -> pa.Table:
    """The last row of every name in every bucket, sorted by bucket and entry.

    `rows` must have the oldest first. Costs O(rows * log(rows)).
    """
    names = flat(rows.column("name")).dictionary_encode().indices.to_numpy()
    bucket, entry = ints(rows, "bucket"), ints(rows, ENTRY)
    order = np.lexsort([names, bucket])  # stable: the newest row of a name is its last
    last = (np.diff(names[order]) != 0) | (np.diff(bucket[order]) != 0)
    kept = order[np.append(last, True)[: len(order)]]
    return rows.take(pa.array(kept[np.lexsort([entry[kept], bucket[kept]])]))


def table_of(buckets: Sequence[tuple[int, Sequence[StateRow]]]) -> pa.Table:
    """A table of the state from the rows of buckets; the buckets must ascend."""
    rows = [(bucket, *row) for bucket, found in buckets for row in sorted(found)]
    columns = [list(column) for column in zip(*rows)] or [[] for _ in STATE]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, STATE)], schema=STATE)
