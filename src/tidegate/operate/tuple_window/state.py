"""Stores the tuples of groups, finds them again, and drops those that no window to come has.

A batch looks up the tuples of the groups it touches, and adds its own as one layer, sorted by
bucket, group and rank; see `layered_state` for how many layers there are. A tuple that no window to
come has is dropped before it is written, or when layers are merged.
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
from tidegate.operate.opened import mapped_segments
from tidegate.operate.operator import InstanceWork
from tidegate.operate.tuple_window.window import GROUP, TupleSpec, group_of, live, newest
from tidegate.state.bucket_set import BucketSet
from tidegate.state.segment import Segment, read_segment, write_segment

TUPLES = "tuples"
"""What the segments hold."""


@dataclass(frozen=True)
class TupleKeeper(LayeredKeeper):
    """Tuples of groups, as long as a window to come has them."""

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
    """Above all ranks of some tuples, where there are no groups: the tag of their segment."""
    return 0 if spec.keys or not rows.num_rows else int(ints(rows, "rank").max()) + 1


def merged(spec: TupleSpec, rows: pa.Table) -> pa.Table:
    """The tuples of neighbouring layers, without those that are dead for what is among them.

    There may be newer tuples of a group, so some that stay may be dead, and older ones. Where all
    that is here of a group is dead, its newest tuple stays, to say how many there were: else
    older tuples, in a layer beneath, would be taken for all of the group.
    """
    alive = live(spec, rows)
    last = newest(spec, rows) & ~alive
    order = ints(rows, GROUP) & ~HIDES
    order[last] |= HIDES
    place = rows.schema.get_field_index(GROUP)
    marked = rows.set_column(place, GROUP, pa.array(order))
    return _sorted(marked.filter(pa.array(alive | last)))


def read_groups(work: InstanceWork, spec: TupleSpec, news: pa.Table) -> pa.Table:
    """What is stored of the groups of new tuples, dead tuples and groups of equal hash among it.

    Costs O(groups * log(rows)) for each layer, and the rows found.
    """
    pairs = distinct(ints(news, "bucket"), group_of(spec, news))
    return pa.concat_tables([spec.state_schema.empty_table(), *_layers(work, spec, *pairs)])


def read_all(work: InstanceWork, spec: TupleSpec) -> pa.Table:
    """What is stored of all groups that the instance owns, dead tuples among it."""
    own = work.mapping.owner_array == work.instance
    layers = _segments(work, spec, BucketSet.of(work.mapping.owned_by(work.instance)))
    mine = [rows.filter(pa.array(own[ints(rows, "bucket")])) for _, rows in layers]
    return pa.concat_tables([spec.state_schema.empty_table(), *mine])


def read_ranks(work: InstanceWork, spec: TupleSpec, bucket: int, since: int) -> pa.Table:
    """What is stored of a stream without groups from a rank on; segments before it are not read."""
    wanted = BucketSet.of([bucket])
    segments = [s for s in work.state.get(TUPLES, ()) if not since or s.tag > since]
    layers = [rows for _, rows in _opened(work, spec, segments, wanted)]
    rows = pa.concat_tables([spec.state_schema.empty_table(), *layers])
    return rows.filter(pa.array(ints(rows, "rank") >= since)).combine_chunks()


def _layers(work: InstanceWork, spec: TupleSpec, buckets: Ints, groups: Ints) -> Iterator[pa.Table]:
    for segment, rows in _segments(work, spec, BucketSet.of(buckets)):
        yield found(rows, GROUP, buckets, groups)
        if segment.high >= HIDES:
            yield found(rows, GROUP, buckets, groups | HIDES)


def _segments(
    work: InstanceWork, spec: TupleSpec, touched: BucketSet
) -> Iterator[tuple[Segment, pa.Table]]:
    """The segments that have one of these buckets; they may have rows of others."""
    segments = [s for s in work.state.get(TUPLES, ()) if s.buckets & touched]
    own = BucketSet.of(work.mapping.owned_by(work.instance))
    return _opened(work, spec, segments, own)


def _opened(
    work: InstanceWork, spec: TupleSpec, segments: list[Segment], buckets: BucketSet
) -> Iterator[tuple[Segment, pa.Table]]:
    """The rows of segments: of `buckets`, and of others where the store is local."""
    owner, names = (work.query, work.instance, TUPLES), spec.state_schema.names
    mapped = mapped_segments(work.store, owner, segments, names)
    for segment in segments:
        rows = mapped.get(segment.name)
        if rows is None:
            rows = read_segment(work.store, segment, buckets, names)
        yield segment, rows


def write_tuples(work: InstanceWork, spec: TupleSpec, tuples: pa.Table) -> Segment:
    """New tuples as a layer of their own: of each group no more than a window has."""
    rows = merged(spec, tuples)
    return write_segment(work.store, work.name, rows, GROUP, _ranks_below(spec, rows))


def _sorted(tuples: pa.Table) -> pa.Table:
    columns = [ints(tuples, name) for name in ("rank", GROUP, "bucket")]
    return tuples.take(pa.array(np.lexsort(columns)))
