"""Decides which instance stores a pane and closes a window when buckets change hands.

A window belongs to the owner of the epoch in which it begins. After a switch by window recreation,
the owner of an earlier epoch still has windows to finish, and these cover panes of later epochs.
Such a pane goes to the owners of both epochs. The owner of the epoch in which the pane lies stores
it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from tidegate.batch import MAX_US, MIN_US, ints
from tidegate.operate.aggregate.pane.pane import AggregateSpec
from tidegate.operate.kernels.order import Ints, Mask
from tidegate.operate.operator import InstanceWork, MapWork, Migration, Share
from tidegate.route.mapping import Mapping
from tidegate.state.bucket_set import BucketSet
from tidegate.state.segment.segment import Segment


def migration_of(spec: AggregateSpec, frontier_us: int, highest: int) -> Migration | None:
    """The times of a switch at the first window without stored tuples (`first_untouched`).

    None where no window before it is open, so that there is nothing to hand over.
    """
    until_us, over_us = spec.window.first_untouched(frontier_us, highest)
    return Migration(until_us, over_us) if over_us > frontier_us else None


def shares_of(spec: AggregateSpec, work: MapWork, partials: pa.Table) -> list[Share]:
    """Send partials to the owners of all windows that cover their panes."""
    parts = (
        (i, partials.filter(pa.array(received(spec, work.mapping, i, partials))))
        for i in range(work.mapping.running)
    )
    return [Share(i, part) for i, part in parts if part.num_rows]


def received(spec: AggregateSpec, mapping: Mapping, instance: int, partials: pa.Table) -> Mask:
    """Marks the partials that an instance needs for the windows that it closes."""
    bucket, pane = ints(partials, "bucket"), ints(partials, "pane")
    found = np.zeros(len(pane), np.bool_)
    for owners, (since, over) in zip(mapping.tenures, _covered(spec, mapping), strict=True):
        found |= (owners[bucket] == instance) & (pane >= since) & (pane < over)
    return found


Span = tuple[int, int, BucketSet]


def spans_of(spec: AggregateSpec, mapping: Mapping, instance: int) -> list[Span]:
    """The buckets that an instance needs in each range of panes: first, end and buckets."""
    pairs = zip(mapping.tenures, _covered(spec, mapping), strict=True)
    return [(since, over, BucketSet.where(own == instance)) for own, (since, over) in pairs]


def needed_of(spans: list[Span], segment: Segment) -> BucketSet:
    """The buckets of a segment that may have partials which an instance needs."""
    met = [own for since, over, own in spans if segment.low < over and segment.high >= since]
    return BucketSet.union([segment.buckets & own for own in met])


def stored(spec: AggregateSpec, work: InstanceWork, partials: pa.Table) -> pa.Table:
    """The partials of an instance that it has to write: exactly one instance writes each."""
    bucket, pane = ints(partials, "bucket"), ints(partials, "pane")
    owners = work.mapping.owners_at(bucket, spec.window.begins(pane))
    return partials.filter(pa.array(owners == work.instance))


def closings(
    spec: AggregateSpec, work: InstanceWork, panes: pa.Table
) -> Iterator[tuple[pa.Table, int, int]]:
    """Give the panes with which an instance closes windows, and between which ends, in order.

    Ends ascend: the windows of a former owner end before those of the next epoch.
    """
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
    """Marks the windows that an instance has to close, given their buckets and ends."""
    mapping = work.mapping
    epochs = np.searchsorted([former.over_us for former in mapping.formers], ends)
    mine: Mask = mapping.tenures[epochs, bucket] == work.instance
    return mine


def _covered(spec: AggregateSpec, mapping: Mapping) -> list[tuple[int, int]]:
    """The panes that the windows of each epoch cover: the first, and the one after the last.

    The ranges of two epochs overlap: windows of the earlier one reach into the later one.
    """
    since = [MIN_US, *(spec.window.pane_at(former.until_us) for former in mapping.formers)]
    over = [*(spec.window.pane_at(former.over_us) for former in mapping.formers), MAX_US]
    return list(zip(since, over, strict=True))
