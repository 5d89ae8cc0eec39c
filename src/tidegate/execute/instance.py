"""One instance of a subquery, between the parcels sent to it and its part of the output."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.batch import SEQ, SRC, TS
from tidegate.collect.order import HIDDEN, first_per_window, in_order, window_order
from tidegate.execute.job import Job, Outcome, Piece, out_name
from tidegate.execute.retention import PANES
from tidegate.operate.aggregate.pane import AggregateSpec, close, merge, needed_from, sealed_before
from tidegate.operate.kernels.expression import evaluate
from tidegate.order import Direction, sort_indices
from tidegate.plan.physical import AggregatePlan, Port
from tidegate.query.name import EVENT_TIME, WINDOW
from tidegate.schema import TIME
from tidegate.spans import Spans
from tidegate.state.bucket_set import BucketSet
from tidegate.state.compaction import by_bucket
from tidegate.state.segment import Segment, read_segment, write_segment
from tidegate.state.store import Store

_APART_ROWS = 2_048
"""Parts with fewer rows share a segment: a file costs more than their dead rows."""


def run_stateless(job: Job, instance: int, tables: Sequence[pa.Table], spans: Spans) -> Outcome:
    """Put the ready tuples of one range of event times into the total order."""
    (port,) = job.subquery.ports
    if not tables:
        return Outcome(instance, (Piece.of(port, port.schema.empty_table()),))
    tuples = pa.concat_tables(tables).combine_chunks()
    order = sort_indices([tuples.column(c).combine_chunks() for c in (TS, SRC, SEQ)])
    tuples = tuples.take(order)
    columns = [tuples.column(out_name(n)) for n in port.schema.names if n != EVENT_TIME]
    if EVENT_TIME in port.schema.names:
        columns = [tuples.column(TS).cast(TIME), *columns]
    rows = pa.table(columns, schema=port.schema)
    spans.mark("instance order")
    return Outcome(instance, (Piece.of(port, rows),))


def run_aggregate(
    job: Job, plan: AggregatePlan, instance: int, tables: Sequence[pa.Table], spans: Spans
) -> Outcome:
    """Fold the batch's partials into the state of this instance's buckets; close windows.

    Reads state only when the frontier has passed the end of a pane. What is left for later, the
    partials of open panes and the sealed panes that open windows still need, goes into segments.
    """
    spec = plan.spec
    sealed, needed = sealed_before(spec, job.frontier_us), needed_from(spec, job.frontier_us)
    news = merge(spec, tables)
    spans.mark("instance merge")
    results = close(spec, news.slice(0, 0), job.previous_us, job.frontier_us)
    keep = [news]
    store = job.store.open()
    if sealed > sealed_before(spec, job.previous_us):
        complete = news.filter(pc.less(news.column("pane"), sealed))
        waiting, panes = _state(store, job, instance, spec)
        spans.mark("instance read state")
        finished = merge(spec, [*waiting, complete])
        held = pa.concat_tables([*panes, finished])
        results = close(spec, held, job.previous_us, job.frontier_us)
        later = news.filter(pc.greater_equal(news.column("pane"), sealed))
        keep = [finished.filter(pc.greater_equal(finished.column("pane"), needed)), later]
        spans.mark("instance close")
    segments = _written(store, f"{job.name}-{instance:04d}", keep, sealed)
    spans.mark("instance write")
    pieces = tuple(Piece.of(p, finish(spec, p, results)) for p in job.subquery.ports)
    spans.mark("instance finish")
    return Outcome(instance, pieces, {PANES: segments})


def _written(
    store: Store, name: str, parts: Sequence[pa.Table], sealed: int
) -> tuple[Segment, ...]:
    """Sealed panes and partials as segments: two where both are large.

    Partials are dead as soon as their pane is sealed. In a segment of their own they leave as a
    whole; beside sealed panes they would have to be compacted away.
    """
    if any(part.num_rows < _APART_ROWS for part in parts):
        parts = [pa.concat_tables(parts)]
    return tuple(
        write_segment(store, f"{name}-{i}", by_bucket(part, "pane"), order="pane", tag=sealed)
        for i, part in enumerate(parts)
        if part.num_rows
    )


def _state(
    store: Store, job: Job, instance: int, spec: AggregateSpec
) -> tuple[list[pa.Table], list[pa.Table]]:
    """Partials of panes that are complete now, in the order of batches, and sealed panes in use."""
    own = BucketSet.of(job.mapping.owned_by(instance))
    sealed = sealed_before(spec, job.frontier_us)
    was_sealed = sealed_before(spec, job.previous_us)
    was_needed = needed_from(spec, job.previous_us)
    waiting, panes = [], []
    for segment in job.state.get(PANES, ()):
        mine = segment.buckets & own
        if not mine:
            continue
        rows = read_segment(store, segment, mine)
        pane = rows.column("pane").to_numpy()
        is_sealed = pane < segment.tag
        due = ~is_sealed & (pane >= was_sealed) & (pane < sealed)
        in_use = is_sealed & (pane >= was_needed)
        if due.any():
            waiting.append(rows.filter(pa.array(due)))
        if in_use.any():
            panes.append(rows.filter(pa.array(in_use)))
    return waiting, panes


def finish(spec: AggregateSpec, port: Port, results: pa.Table) -> pa.Table:
    """HAVING, the select list, and as much of ORDER BY and LIMIT as one instance can do."""
    results = filtered(port, results)
    named = {name: results.column(name) for name in WINDOW}
    for name, expression in port.outputs:
        named[name] = evaluate(expression, results)
    directions = []
    for place, key in enumerate(port.order):
        named[f"{HIDDEN}o{place:03d}"] = evaluate(key.expr, results)
        directions.append(Direction(key.descending, key.nulls_first))
    for place, (name, _) in enumerate(spec.keys):
        named[f"{HIDDEN}k{place:03d}"] = results.column(name)
    rows = pa.table(named).combine_chunks()
    if port.limit is not None:
        rows = first_per_window(in_order(rows, window_order(rows, directions)), port.limit)
    return rows


def filtered(port: Port, rows: pa.Table) -> pa.Table:
    """The rows that a port lets pass."""
    for predicate in port.where:
        rows = rows.filter(pc.fill_null(evaluate(predicate, rows), False))
    return rows
