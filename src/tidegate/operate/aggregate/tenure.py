"""Which instance stores a pane and closes a window whose bucket changes hands.

Windows belong to the owners of the epoch in which they begin. Where a switch was by window
recreation, those of an earlier epoch still have windows to finish, which cover panes of later ones:
such panes go to the owners of both, and are stored by those of the epoch in which they are.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from tidegate.batch import MAX_US, MIN_US, ints
from tidegate.operate.aggregate.pane import AggregateSpec
from tidegate.operate.kernels.order import Ints, Mask
from tidegate.operate.operator import InstanceWork, MapWork, Migration, Share
from tidegate.route.mapping import Mapping
from tidegate.state.bucket_set import BucketSet
from tidegate.state.segment import Segment


def migration_of(spec: AggregateSpec, frontier_us: int, highest: int) -> Migration | None:
    """Where buckets may change hands, with windows that begin there: see `first_untouched`."""
    until_us, over_us = spec.window.first_untouched(frontier_us, highest)
    return Migration(until_us, over_us) if over_us > frontier_us else None


def shares_of(spec: AggregateSpec, work: MapWork, partials: pa.Table) -> list[Share]:
    """Partials for the owners of all windows that cover their panes."""
    parts = (
        (i, partials.filter(pa.array(received(spec, work.mapping, i, partials))))
        for i in range(work.mapping.running)
    )
    return [Share(i, part) for i, part in parts if part.num_rows]


def received(spec: AggregateSpec, mapping: Mapping, instance: int, partials: pa.Table) -> Mask:
    """Which partials an instance needs, for windows that it closes."""
    bucket, pane = ints(partials, "bucket"), ints(partials, "pane")
    found = np.zeros(len(pane), np.bool_)
    for owners, (since, over) in zip(mapping.tenures, _covered(spec, mapping), strict=True):
        found |= (owners[bucket] == instance) & (pane >= since) & (pane < over)
    return found


Span = tuple[int, int, BucketSet]


def spans_of(spec: AggregateSpec, mapping: Mapping, instance: int) -> list[Span]:
    """Of which panes an instance needs which buckets: from one on, and below another."""
    pairs = zip(mapping.tenures, _covered(spec, mapping), strict=True)
    return [(since, over, BucketSet.where(own == instance)) for own, (since, over) in pairs]


def needed_of(spans: list[Span], segment: Segment) -> BucketSet:
    """The buckets of a segment of which it may have partials that an instance needs."""
    met = [own for since, over, own in spans if segment.low < over and segment.high >= since]
    return BucketSet.union([segment.buckets & own for own in met])


def stored(spec: AggregateSpec, work: InstanceWork, partials: pa.Table) -> pa.Table:
    """Those of the partials of an instance that it writes, and no other does."""
    bucket, pane = ints(partials, "bucket"), ints(partials, "pane")
    owners = work.mapping.owners_at(bucket, spec.window.begins(pane))
    return partials.filter(pa.array(owners == work.instance))


def closings(
    spec: AggregateSpec, work: InstanceWork, panes: pa.Table
) -> Iterator[tuple[pa.Table, int, int]]:
    """The panes whose windows an instance closes, between which ends, in the order of these."""
    if not work.mapping.formers:
        yield panes, work.previous_us, work.frontier_us
        return
    bucket, above_us = ints(panes, "bucket"), work.previous_us
    ends = [*(former.over_us for former in work.mapping.formers), work.frontier_us]
    for owners, end_us in zip(work.mapping.tenures, ends, strict=True):
        upto_us = min(end_us, work.frontier_us)
        if upto_us > above_us:
            yield panes.filter(pa.array(owners[bucket] == work.instance)), above_us, upto_us
            above_us = upto_us


def closes(work: InstanceWork, bucket: Ints, ends: Ints) -> Mask:
    """Which windows of these buckets, by their ends, an instance has to close."""
    mapping = work.mapping
    epochs = np.searchsorted([former.over_us for former in mapping.formers], ends)
    mine: Mask = mapping.tenures[epochs, bucket] == work.instance
    return mine


def _covered(spec: AggregateSpec, mapping: Mapping) -> list[tuple[int, int]]:
    """The panes that the windows of each epoch cover: the first, and the one after the last."""
    since = [MIN_US, *(spec.window.pane_at(former.until_us) for former in mapping.formers)]
    over = [*(spec.window.pane_at(former.over_us) for former in mapping.formers), MAX_US]
    return list(zip(since, over, strict=True))
