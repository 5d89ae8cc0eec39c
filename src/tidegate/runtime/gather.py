"""A batch's output put together, between the outcomes of the instances and the sink."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from tidegate.batch import from_bytes
from tidegate.collect.order import merge_windows
from tidegate.collect.pair import merged_pairs
from tidegate.order import Direction
from tidegate.plan.physical import Plan
from tidegate.runtime.job import LATE, REJECTED, Outcome
from tidegate.sink.protocol import Output


def gather(plan: Plan, outcomes: Sequence[Outcome]) -> Output:
    """One sequence in the output order, and the side outputs in the order of their sources."""
    aggregate = plan.aggregate
    tables = [o.rows for o in outcomes]
    written = None
    if any(o.written is not None for o in outcomes):
        written = sum(o.written or 0 for o in outcomes)
        rows = pa.concat_tables([t.select(plan.schema.names) for t in tables])
    elif plan.join is not None:
        rows = merged_pairs(tables)
    elif aggregate is None:
        rows = pa.concat_tables(tables)
    else:
        ways = [Direction(k.descending, k.nulls_first) for k in aggregate.order]
        rows = merge_windows(tables, ways, aggregate.limit)
    rows = rows.select(plan.schema.names).cast(plan.schema)
    side = sorted((p for o in outcomes for p in o.side), key=lambda p: p.split)
    late: dict[str, list[pa.Table]] = {}
    for parcel in side:
        if parcel.kind == LATE:
            late.setdefault(parcel.label, []).append(from_bytes(parcel.data))
    rejected = [from_bytes(p.data) for p in side if p.kind == REJECTED]
    return Output(
        rows,
        {name: pa.concat_tables(tables) for name, tables in sorted(late.items())},
        pa.concat_tables(rejected) if rejected else None,
        written,
    )
