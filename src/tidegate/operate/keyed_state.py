"""Stores tuples for a limited time, and finds the stored tuples of the keys in a batch.

A segment is sorted by bucket and by the hash of the key. So a batch finds its own keys by binary
search, O(log(rows)) for each key and segment, and reads nothing else. Rows die by their time.
Compaction keeps rows of nearly one time together, so most segments die as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.batch import MAX_US, MIN_US, ORDER, TS, ints
from tidegate.operate.keeper import CELLS, Keeper, OrderHorizon
from tidegate.operate.kernels.order import Ints
from tidegate.operate.kernels.window.window import expand
from tidegate.operate.operator import InstanceWork, MapWork, Share
from tidegate.operate.segment_cache import mapped_segments
from tidegate.route.bucket import hash_of
from tidegate.state.bucket_set import BucketSet
from tidegate.state.segment.segment import Segment, read_segment, write_segment

GROUP = "group"
"""The column by which a tuple is found: its bucket, then bits of the hash of its key. Different
keys may have the same value."""

_HASH_BITS = 42

FEW = 1024
"""A loop over fewer rows runs uncompiled: loading the compiled one would take longer."""


@dataclass(frozen=True)
class KeyedKeeper(Keeper):
    """Keeps a tuple until `reach_us` after the time in the column `order`.

    `held` are its columns beside the bucket, the hash and the place in the total order.
    """

    reach_us: int
    held: tuple[str, ...]
    order: str = TS
    grouped = False

    @property
    def columns(self) -> list[str]:
        return ["bucket", GROUP, *ORDER, *self.held]

    @property
    def cell(self) -> int:
        return max(self.reach_us // CELLS, 1)

    def horizon(
        self, frontier_us: int, tuples: int, segments: Sequence[Segment] = ()
    ) -> OrderHorizon:
        return OrderHorizon(self.order, needed_from(frontier_us, self.reach_us))

    def arrange(self, rows: pa.Table) -> pa.Table:
        return by_hash(rows)


def needed_from(frontier_us: int, reach_us: int) -> int:
    """The earliest time that tuples at or after a frontier look back at."""
    return frontier_us if frontier_us in (MIN_US, MAX_US) else max(frontier_us - reach_us, MIN_US)


def by_hash(rows: pa.Table) -> pa.Table:
    """Sort rows by bucket and hash; rows of one hash keep their order."""
    return rows.take(pa.array(np.argsort(ints(rows, GROUP), stable=True)))


def deal_by_key(work: MapWork, tuples: pa.Table, keys: Sequence[str]) -> list[Share]:
    """Add the columns `bucket` and GROUP, and send each tuple to the owner of its bucket.

    The buckets are those of the partitioner `Hash`: one hash gives both columns.
    """
    columns = [tuples.column(name).combine_chunks() for name in keys]
    hashes = hash_of(columns) if columns else np.zeros(tuples.num_rows, np.uint64)
    bucket = (hashes % np.uint64(work.mapping.buckets)).astype(np.int64)
    # The bucket is in the high bits, so rows that are sorted by GROUP are sorted by bucket too.
    group = (bucket << _HASH_BITS) | (hashes >> np.uint64(64 - _HASH_BITS)).astype(np.int64)
    tuples = tuples.append_column(GROUP, pa.array(group))
    return work.by_bucket(tuples.append_column("bucket", pa.array(bucket.astype(np.int32))))


def read_keys(work: InstanceWork, part: str, names: Sequence[str], tuples: pa.Table) -> pa.Table:
    """The stored rows with the hash of one of these tuples, oldest segment first.

    The caller must compare keys: rows of other keys with the same hash may be among them.
    """
    wanted = np.unique(ints(tuples, GROUP))
    touched = BucketSet.of(np.unique(wanted >> _HASH_BITS))
    layers = [_found(rows, wanted) for rows in stored(work, part, names, touched)]
    return pa.concat_tables(layers) if layers else tuples.slice(0, 0)


def _found(rows: pa.Table, wanted: Ints) -> pa.Table:
    """The rows of a segment that have one of these distinct hashes; both sides ascend."""
    group = ints(rows, GROUP)
    first = np.searchsorted(group, wanted)
    there = first < len(group)
    there[there] = group[first[there]] == wanted[there]
    last = np.searchsorted(group, wanted[there], "right") - 1
    _, places = expand(first[there], last)
    return rows.take(pa.array(places))


def stored(
    work: InstanceWork,
    part: str,
    names: Sequence[str],
    touched: BucketSet,
    below: int = MAX_US,
) -> Iterator[pa.Table]:
    """The segments that have one of these buckets, each sorted by bucket and hash.

    They may have rows of other buckets too. Segments whose smallest order is `below` or more are
    left out.
    """
    segments = [s for s in work.state.get(part, ()) if s.buckets & touched and s.low < below]
    # An operator may look for keys and for due rows in one batch. As one owner, each of the two
    # calls would drop the segments of the other.
    owner = work.query, work.instance, part, below < MAX_US
    mapped = mapped_segments(work.store, owner, segments, names, work.run)
    own = BucketSet.of(work.mapping.owned_by(work.instance))
    for segment in segments:
        rows = mapped.get(segment.name)
        yield read_segment(work.store, segment, own, names) if rows is None else rows


def write_keys(
    work: InstanceWork, keeper: KeyedKeeper, rows: pa.Table, part: str
) -> tuple[Segment, ...]:
    """Write rows as one segment; no segment where there are no rows."""
    if not rows.num_rows:
        return ()
    rows = by_hash(rows.select(keeper.columns))
    name = f"{work.name}-{part}"
    return (write_segment(work.store, name, rows, keeper.order, tag=0, grouped=False),)
