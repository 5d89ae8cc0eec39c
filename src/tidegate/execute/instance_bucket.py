"""Instances whose state is whole buckets: windows of tuples, and the user's own operator.

Every tuple is in the state of the buckets it belongs to. What a batch touches is written again as a
whole, or added to what older segments have; an untouched bucket costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from tidegate.batch import MAX_US
from tidegate.collect.trigger import triggered
from tidegate.execute.instance import filtered
from tidegate.execute.job import Job, Outcome, Piece
from tidegate.execute.retention import BUCKETS, TUPLES, WHOLE, BucketHorizon
from tidegate.operate.join.match import ints
from tidegate.operate.kernels.expression import evaluate
from tidegate.operate.process import advance as process
from tidegate.operate.tuple_window import window as tuple_window
from tidegate.operate.tuple_window.window import TupleSpec
from tidegate.plan.physical import Port, ProcessPlan, TuplePlan
from tidegate.query.name import EVENT_TIME, WINDOW
from tidegate.route.bucket import bucket_of
from tidegate.schema import TIME
from tidegate.spans import Spans
from tidegate.state.bucket_set import BucketSet
from tidegate.state.compaction import by_bucket
from tidegate.state.segment import Segment, read_segment, write_segment
from tidegate.state.store import Store

_MOST_SEGMENTS = 32
"""How many segments may add to a bucket before it is written whole."""

_FEW_ROWS = 1_024
"""Dead rows that are not worth writing a bucket again for."""

_SNAPSHOT = pa.schema(
    [("bucket", pa.int32()), ("pending_us", pa.int64()), ("snapshot", pa.large_binary())]
)


def placed(spec: TupleSpec, tuples: pa.Table, buckets: int) -> pa.Table:
    """Tuples with the bucket of their group."""
    keys = [tuples.column(name).combine_chunks() for name, _ in spec.keys]
    bucket = bucket_of(keys, buckets, tuples.num_rows)
    return tuples.add_column(0, "bucket", pa.array(bucket))


def run_tuple_windows(
    job: Job, plan: TuplePlan, instance: int, tables: Sequence[pa.Table], spans: Spans
) -> Outcome:
    """Add the batch's tuples to their groups, and put out the windows that they fill."""
    spec, ports = plan.spec, job.subquery.ports
    if not tables:
        results = spec.result_schema.empty_table()
        return Outcome(instance, tuple(Piece.of(p, _windows(p, results)) for p in ports))
    news = pa.concat_tables(tables).combine_chunks()
    store = job.store.open()
    touched = np.unique(ints(news, "bucket"))
    held, segments = _held(store, job, spec, touched)
    spans.mark("instance read state")
    results, ranked = tuple_window.advance(spec, held, news)
    spans.mark("instance advance")
    every = pa.concat_tables([held, ranked]).combine_chunks()
    live = tuple_window.live(spec, every)
    dead = len(live) - int(live.sum())
    name = f"{job.name}-{instance:04d}"
    if segments >= _MOST_SEGMENTS or dead > max(len(live) // 2, _FEW_ROWS):
        kept = every.filter(pa.array(live))
        rows = pa.concat_tables([kept, _emptied(spec, touched, kept)])
        made = write_segment(store, name, by_bucket(rows, "rank"), "rank", WHOLE)
    else:
        made = write_segment(store, name, by_bucket(ranked, "rank"), "rank", 0)
    spans.mark("instance write")
    pieces = tuple(Piece.of(p, _windows(p, results)) for p in ports)
    spans.mark("instance finish")
    return Outcome(instance, pieces, {TUPLES: (made,)})


def _held(
    store: Store, job: Job, spec: TupleSpec, touched: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> tuple[pa.Table, int]:
    """What is stored of some buckets, dead tuples among it, and in how many segments."""
    wanted = BucketSet.of(touched)
    parts = [spec.state_schema.empty_table()]
    stored = job.state.get(TUPLES, ())
    horizon = BucketHorizon.of(stored)
    for segment in stored:
        mine = horizon.needed(segment) & wanted
        if mine:
            rows = read_segment(store, segment, mine).select(spec.state_schema.names)
            parts.append(rows.filter(pa.array(ints(rows, "rank") >= 0)))
    return pa.concat_tables(parts), len(parts) - 1


def _emptied(
    spec: TupleSpec,
    touched: np.ndarray[tuple[int], np.dtype[np.int64]],
    kept: pa.Table,
) -> pa.Table:
    """A row that is no tuple for each bucket of which nothing is left: it hides older segments."""
    left = np.setdiff1d(touched, ints(kept, "bucket"))
    columns = []
    for place in spec.state_schema:
        if place.name == "bucket":
            columns.append(pa.array(left, pa.int32()))
        elif place.name in ("rank", "ts", "src", "seq"):
            columns.append(pa.array(np.full(len(left), -1, np.int64)))
        else:
            columns.append(pa.nulls(len(left), place.type))
    return pa.table(columns, schema=spec.state_schema)


def _windows(port: Port, results: pa.Table) -> pa.Table:
    results = filtered(port, results)
    named = {name: results.column(name) for name in WINDOW}
    named |= {name: evaluate(expr, results) for name, expr in port.outputs}
    return triggered(named, results)


def run_process(
    job: Job, plan: ProcessPlan, instance: int, tables: Sequence[pa.Table], spans: Spans
) -> Outcome:
    """Run the objects of the instance's buckets over the batch, and the timers that are due."""
    spec, ports = plan.spec, job.subquery.ports
    mine = job.mapping.owned_by(instance)
    store = job.store.open()
    news = pa.concat_tables(tables).combine_chunks() if tables else None
    touched = set(mine)
    if spec.keys is not None or news is None:
        touched = set() if news is None else set(np.unique(ints(news, "bucket")).tolist())
    state = _snapshots(store, job, set(mine), touched)
    spans.mark("instance read state")
    rows, snapshots = process.advance(
        spec,
        mine,
        state,
        news,
        job.previous_us,
        job.frontier_us,
        f"batch {job.batch}",
        total=job.mapping.buckets,
    )
    spans.mark("instance process")
    segments: tuple[Segment, ...] = ()
    if snapshots:
        buckets = sorted(snapshots)
        pending = [process.pending(snapshots[b]) for b in buckets]
        times = [MAX_US if p is None else p for p in pending]
        table = pa.table([buckets, times, [snapshots[b] for b in buckets]], schema=_SNAPSHOT)
        name = f"{job.name}-{instance:04d}"
        segments = (write_segment(store, name, table, "bucket", WHOLE),)
    spans.mark("instance write")
    pieces = tuple(Piece.of(p, _rows(p, rows)) for p in ports)
    spans.mark("instance finish")
    return Outcome(instance, pieces, {BUCKETS: segments})


def _snapshots(store: Store, job: Job, mine: set[int], touched: set[int]) -> dict[int, bytes]:
    """The stored objects that the batch concerns: those it touches, and those with a timer due."""
    found: dict[int, bytes] = {}
    stored = job.state.get(BUCKETS, ())
    horizon, owned = BucketHorizon.of(stored), BucketSet.of(sorted(mine))
    for segment in stored:
        own = horizon.needed(segment) & owned
        if not own:
            continue
        times = read_segment(store, segment, own, ["bucket", "pending_us"])
        due = ints(times, "pending_us") < job.frontier_us
        wanted = sorted(touched.intersection(own) | set(ints(times, "bucket")[due].tolist()))
        if wanted:
            rows = read_segment(store, segment, wanted, ["bucket", "snapshot"])
            found |= zip(
                rows.column("bucket").to_pylist(), rows.column("snapshot").to_pylist(), strict=True
            )
    return found


def _rows(port: Port, results: pa.Table) -> pa.Table:
    times = results.column("trigger_ts").cast(TIME)
    results = filtered(port, results.append_column(EVENT_TIME, times))
    named = {EVENT_TIME: results.column(EVENT_TIME)}
    named |= {name: evaluate(expr, results) for name, expr in port.outputs}
    return triggered(named, results)
