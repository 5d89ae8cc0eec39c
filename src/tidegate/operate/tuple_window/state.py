"""Stores the tuples of groups, finds them again, and drops those that no later window needs.

A batch finds the tuples of the groups that it touches, and adds its own as one layer, sorted by
bucket, group and rank. `layered_state.py` says how many layers there are. A tuple that no later
window needs is **dead**. It is dropped before it is written, or when layers are merged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.batch import ints
from tidegate.operate.keeper import Horizon
from tidegate.operate.kernels.order import Ints
from tidegate.operate.layered_state import HIDES, LayeredKeeper, distinct, found
from tidegate.operate.operator import InstanceWork
from tidegate.operate.segment_cache import mapped_segments
from tidegate.operate.tuple_window.spec import GROUP, TupleSpec
from tidegate.operate.tuple_window.window import group_of, live, newest
from tidegate.state.bucket_set import BucketSet
from tidegate.state.segment.segment import Segment, read_segment, write_segment

TUPLES = "tuples"
"""What the segments hold."""


@dataclass(frozen=True)
class TupleKeeper(LayeredKeeper):
    """Keeps tuples of groups as long as a later window needs them."""

    spec: TupleSpec
    order = GROUP

    @property
    def columns(self) -> list[str]:  # type: ignore[override]
        return list(self.spec.state_schema.names)

    def arrange(self, rows: pa.Table) -> pa.Table:
        return merged(self.spec, rows)

    def tag_of(self, rows: pa.Table, horizon: Horizon) -> int:
        return _ranks_below(self.spec, rows)


def _ranks_below(spec: TupleSpec, rows: pa.Table) -> int:
    """The tag of a segment: where there are no groups, one more than its highest rank."""
    return 0 if spec.keys or not rows.num_rows else int(ints(rows, "rank").max()) + 1


def merged(spec: TupleSpec, rows: pa.Table) -> pa.Table:
    """Merge the tuples of neighbouring layers, and drop those that are dead for sure.

    Newer layers may make more of them dead. If all tuples of a group are dead here, its newest one
    stays, and hides. Its rank says how many tuples the group has had. Otherwise older tuples of the
    group, in a layer beneath, would be taken for its newest ones.
    """
    alive = live(spec, rows)
    last = newest(spec, rows) & ~alive
    order = ints(rows, GROUP) & ~HIDES
    order[last] |= HIDES
    place = rows.schema.get_field_index(GROUP)
    marked = rows.set_column(place, GROUP, pa.array(order))
    return _sorted(marked.filter(pa.array(alive | last)))


def read_groups(work: InstanceWork, spec: TupleSpec, news: pa.Table) -> pa.Table:
    """The stored tuples of the groups of new tuples; some may be dead, or of other groups.

    Costs O(groups * log(rows)) for each layer, and the rows found. Groups of equal hash are found
    together, so the caller must compare keys.
    """
    pairs = distinct(ints(news, "bucket"), group_of(spec, news))
    return pa.concat_tables([spec.state_schema.empty_table(), *_layers(work, spec, *pairs)])


def read_all(work: InstanceWork, spec: TupleSpec) -> pa.Table:
    """The stored tuples of all groups that the instance owns; some may be dead."""
    own = work.mapping.owner_array == work.instance
    layers = _segments(work, spec, BucketSet.of(work.mapping.owned_by(work.instance)))
    mine = [rows.filter(pa.array(own[ints(rows, "bucket")])) for _, rows in layers]
    return pa.concat_tables([spec.state_schema.empty_table(), *mine])


def read_ranks(work: InstanceWork, spec: TupleSpec, bucket: int, since: int) -> pa.Table:
    """The stored tuples of a stream without groups from a rank on; skips segments before it."""
    wanted = BucketSet.of([bucket])
    segments = [s for s in work.state.get(TUPLES, ()) if not since or s.tag > since]
    layers = [rows for _, rows in _opened(work, spec, segments, wanted)]
    rows = pa.concat_tables([spec.state_schema.empty_table(), *layers])
    return rows.filter(pa.array(ints(rows, "rank") >= since)).combine_chunks()


def _layers(work: InstanceWork, spec: TupleSpec, buckets: Ints, groups: Ints) -> Iterator[pa.Table]:
    for segment, rows in _segments(work, spec, BucketSet.of(buckets)):
        yield found(rows, GROUP, buckets, groups)
        # A layer without rows that hide need not be searched for them.
        if segment.high >= HIDES:
            yield found(rows, GROUP, buckets, groups | HIDES)


def _segments(
    work: InstanceWork, spec: TupleSpec, touched: BucketSet
) -> Iterator[tuple[Segment, pa.Table]]:
    """The segments with one of these buckets; they may have rows of other buckets too."""
    segments = [s for s in work.state.get(TUPLES, ()) if s.buckets & touched]
    own = BucketSet.of(work.mapping.owned_by(work.instance))
    return _opened(work, spec, segments, own)


def _opened(
    work: InstanceWork, spec: TupleSpec, segments: list[Segment], buckets: BucketSet
) -> Iterator[tuple[Segment, pa.Table]]:
    """The rows of segments; of other buckets than `buckets` too, where the store is local."""
    owner, names = (work.query, work.instance, TUPLES), spec.state_schema.names
    mapped = mapped_segments(work.store, owner, segments, names)
    for segment in segments:
        rows = mapped.get(segment.name)
        if rows is None:
            rows = read_segment(work.store, segment, buckets, names)
        yield segment, rows


def write_tuples(work: InstanceWork, spec: TupleSpec, tuples: pa.Table) -> Segment:
    """Write new tuples as one layer, without those that are dead already."""
    rows = merged(spec, tuples)
    return write_segment(work.store, work.name, rows, GROUP, _ranks_below(spec, rows))


def _sorted(tuples: pa.Table) -> pa.Table:
    columns = [ints(tuples, name) for name in ("rank", GROUP, "bucket")]
    return tuples.take(pa.array(np.lexsort(columns)))
