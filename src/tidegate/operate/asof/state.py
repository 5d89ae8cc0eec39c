"""Stores the tuples that an as-of join needs in later batches, and drops those that cannot match.

Each batch adds its changes as one layer, sorted by bucket and key; see `layered_state`. A segment's
`tag` is the frontier when it was written: all of its tuples are earlier. So a tolerance drops whole
segments by their tags, and single tuples when layers are merged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.batch import MIN_US, TS, ints
from tidegate.operate.asof.key import hashed
from tidegate.operate.asof.spec import GROUP, AsOfSpec
from tidegate.operate.kernels.key_code import KeyCodes
from tidegate.operate.kernels.order import Ints
from tidegate.operate.layered_state import LayeredKeeper, LayerHorizon, distinct, found
from tidegate.operate.operator import InstanceWork
from tidegate.operate.segment_cache import mapped_segments
from tidegate.state.bucket_set import BucketSet
from tidegate.state.segment.segment import Segment, read_segment, write_segment

NEAREST = "nearest"
"""The part of the state that has the tuples."""


@dataclass(frozen=True)
class NearestHorizon(LayerHorizon):
    """Tells the tuples that can still match, within the tolerance."""

    needed_us: int = MIN_US

    def live(self, rows: pa.Table, segment: Segment) -> npt.NDArray[np.bool_]:
        if TS not in rows.column_names:
            return np.ones(rows.num_rows, np.bool_)
        live: npt.NDArray[np.bool_] = ints(rows, TS) >= self.needed_us
        return live

    def passed(self, segment: Segment) -> bool:
        return segment.tag <= self.needed_us

    def whole(self, segment: Segment) -> bool:
        # Only reading would tell: dead tuples stay until layers are merged, and match nothing.
        return True


@dataclass(frozen=True)
class NearestKeeper(LayeredKeeper):
    """Keeps by key the tuples that may still match; `AsOfLook.newest` drops replaced ones."""

    spec: AsOfSpec
    order = GROUP

    @property
    def columns(self) -> list[str]:  # type: ignore[override]
        return list(self.spec.state_schema.names)

    def horizon(self, frontier_us: int, tuples: int, segments: object = ()) -> NearestHorizon:
        needed_us = self.spec.needed_us(frontier_us)
        return NearestHorizon(GROUP, None, tag=frontier_us, needed_us=needed_us)

    def arrange(self, rows: pa.Table) -> pa.Table:
        return arranged(self.spec, rows)


def arranged(spec: AsOfSpec, rows: pa.Table) -> pa.Table:
    """The tuples of neighbouring layers, oldest first, as one layer sorted by bucket and hash."""
    codes = KeyCodes.of([rows.column(n) for n, _ in spec.key_fields], rows.num_rows)
    kept = spec.look.newest(spec, rows, codes)
    columns = [ints(kept, name) for name in (TS, GROUP, "bucket")]
    return kept.take(pa.array(np.lexsort(columns)))


def read_keys(work: InstanceWork, spec: AsOfSpec, buckets: Ints, keys: list[pa.Array]) -> pa.Table:
    """The stored rows of some keys, oldest layer first; also rows of other keys of equal hash.

    Costs O(keys * log(rows)) for each layer, and the rows found.
    """
    pairs = distinct(buckets, hashed(keys, len(buckets)))
    wanted = BucketSet.of(pairs[0])
    parts = [found(rows, GROUP, *pairs) for rows in _layers(work, spec, wanted)]
    return pa.concat_tables([spec.state_schema.empty_table(), *parts])


def read_all(work: InstanceWork, spec: AsOfSpec) -> pa.Table:
    """All stored rows of the instance's buckets, oldest layer first."""
    wanted = BucketSet.of(work.mapping.owned_by(work.instance))
    parts = []
    for rows in _layers(work, spec, wanted):
        mine = np.isin(ints(rows, "bucket"), np.asarray(wanted, np.int64))
        parts.append(rows if mine.all() else rows.filter(pa.array(mine)))
    return pa.concat_tables([spec.state_schema.empty_table(), *parts])


def _layers(work: InstanceWork, spec: AsOfSpec, wanted: BucketSet) -> Iterator[pa.Table]:
    schema = spec.state_schema
    segments = [s for s in work.state.get(NEAREST, ()) if s.buckets & wanted]
    owner = (work.query, work.instance, NEAREST)
    mapped = mapped_segments(work.store, owner, segments, schema.names)
    own = BucketSet.of(work.mapping.owned_by(work.instance))
    for segment in segments:
        rows = mapped.get(segment.name)
        if rows is None:
            rows = read_segment(work.store, segment, own, schema.names)
        yield rows.cast(schema)


def write_layer(work: InstanceWork, spec: AsOfSpec, rows: pa.Table) -> tuple[Segment, ...]:
    """Write new tuples as a layer; no segment where none of them can match any more."""
    live = ints(rows, TS) >= spec.needed_us(work.frontier_us)
    if not live.any():
        return ()
    kept = rows if live.all() else rows.filter(pa.array(live))
    return (write_segment(work.store, work.name, arranged(spec, kept), GROUP, work.frontier_us),)
