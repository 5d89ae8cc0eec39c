"""The user's own operator as one of the engine's, between dealt tuples and the rows it makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from tidegate.batch import MAX_US, TS, ints
from tidegate.collect.trigger import TriggerOrder, triggered
from tidegate.operate.bucket_state import WHOLE, BucketHorizon, BucketKeeper
from tidegate.operate.operator import (
    Arrival,
    InstanceWork,
    MapWork,
    Operator,
    Result,
    Share,
    plain_names,
    together,
)
from tidegate.operate.port import Port
from tidegate.operate.process.advance import advance, assign, pending
from tidegate.operate.process.definition import ProcessSpec
from tidegate.route.broadcast import Broadcast
from tidegate.route.hash import Hash
from tidegate.route.partitioner import Partitioner
from tidegate.schema import TIME
from tidegate.state.bucket_set import BucketSet
from tidegate.state.segment import Segment, read_segment, write_segment

BUCKETS = "buckets"
"""What the segments hold."""

_SNAPSHOT = pa.schema(
    [("bucket", pa.int32()), ("pending_us", pa.int64()), ("snapshot", pa.large_binary())]
)


@dataclass(frozen=True)
class UserProcess(Operator):
    """One object of the user's class per bucket, called in the total order."""

    kind: ClassVar[str] = "process"

    spec: ProcessSpec

    order = TriggerOrder("the tuple that makes a row, bucket")

    @property
    def partitioner(self) -> Partitioner:
        return Broadcast() if self.spec.keys is None else Hash()

    def deal(self, work: MapWork, tuples: pa.Table) -> list[Share]:
        routed = assign(self.spec, plain_names(tuples), work.router(self.partitioner))
        if self.spec.keys is None:
            return [Share.for_all(routed)]
        work.spans.mark("map fold")
        return work.by_bucket(routed)

    def run(self, work: InstanceWork, arrived: Sequence[Arrival]) -> Result:
        """Run the objects of the instance's buckets over the batch, and the timers that are due."""
        spec, news = self.spec, together(arrived)
        mine = work.mapping.owned_by(work.instance)
        touched = set(mine)
        if spec.keys is not None or news is None:
            touched = set() if news is None else set(np.unique(ints(news, "bucket")).tolist())
        state = _snapshots(work, set(mine), touched)
        work.spans.mark("instance read state")
        rows, snapshots = advance(
            spec,
            mine,
            state,
            news,
            work.previous_us,
            work.frontier_us,
            f"batch {work.batch}",
            total=work.mapping.buckets,
        )
        work.spans.mark("instance process")
        segments = _written(work, snapshots)
        work.spans.mark("instance write")
        output = tuple(_rows(port, rows) for port in work.ports)
        work.spans.mark("instance finish")
        return Result(output, 0 if news is None else news.num_rows, {BUCKETS: segments})

    def keepers(self) -> Mapping[str, BucketKeeper]:
        return {BUCKETS: BucketKeeper("bucket", added=False)}

    def title(self) -> str:
        return f"process by {self.spec.name}"

    def details(self, texts: Mapping[str, str]) -> list[str]:
        return ["one object per bucket: one task per instance, shuffle by bucket"]


def _snapshots(work: InstanceWork, mine: set[int], touched: set[int]) -> dict[int, bytes]:
    """The stored objects that the batch concerns: those it touches, and those with a timer due."""
    found: dict[int, bytes] = {}
    stored = work.state.get(BUCKETS, ())
    horizon, owned = BucketHorizon.of(stored), BucketSet.of(sorted(mine))
    for segment in stored:
        own = horizon.needed(segment) & owned
        if not own:
            continue
        times = read_segment(work.store, segment, own, ["bucket", "pending_us"])
        due = ints(times, "pending_us") < work.frontier_us
        wanted = sorted(touched.intersection(own) | set(ints(times, "bucket")[due].tolist()))
        if wanted:
            rows = read_segment(work.store, segment, wanted, ["bucket", "snapshot"])
            found |= zip(
                rows.column("bucket").to_pylist(), rows.column("snapshot").to_pylist(), strict=True
            )
    return found


def _written(work: InstanceWork, snapshots: Mapping[int, bytes]) -> tuple[Segment, ...]:
    if not snapshots:
        return ()
    buckets = sorted(snapshots)
    waits = [pending(snapshots[b]) for b in buckets]
    times = [MAX_US if us is None else us for us in waits]
    table = pa.table([buckets, times, [snapshots[b] for b in buckets]], schema=_SNAPSHOT)
    return (write_segment(work.store, work.name, table, "bucket", WHOLE),)


def _rows(port: Port, results: pa.Table) -> pa.Table:
    times = results.column("trigger_ts").cast(TIME)
    results = port.filtered(results.append_column(TS, times))
    return triggered({TS: results.column(TS)} | port.selected(results), results)
