"""A batch's rows put together, between the outcomes of the instances and those that take them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from tidegate.batch import from_bytes
from tidegate.collect.order import merge_windows
from tidegate.collect.pair import merged_pairs
from tidegate.collect.trigger import merged_triggers
from tidegate.execute.job import LATE, REJECTED, Outcome, Parcel
from tidegate.order import Direction
from tidegate.plan.physical import (
    AggregatePlan,
    JoinPlan,
    Operator,
    Port,
    ProcessPlan,
    TuplePlan,
)
from tidegate.sink.batch_output import BatchOutput


def merged(operator: type[Operator] | None, port: Port, tables: Sequence[pa.Table]) -> pa.Table:
    """The rows of all instances for one port as one sequence, in the order of their operator."""
    if operator is JoinPlan:
        rows = merged_pairs(tables)
    elif operator is AggregatePlan:
        ways = [Direction(k.descending, k.nulls_first) for k in port.order]
        rows = merge_windows(tables, ways, port.limit)
    elif operator in (TuplePlan, ProcessPlan):
        rows = merged_triggers(tables)
    else:
        rows = pa.concat_tables(tables)
    return rows.select(port.schema.names).cast(port.schema)


def gather(
    operator: Operator | None, port: int, of: Port, outcomes: Sequence[Outcome]
) -> BatchOutput:
    """What an output of the query gets of a batch, without side outputs."""
    if any(o.receipts is not None for o in outcomes):
        tables = [o.pieces[port].load().select(of.schema.names) for o in outcomes]
        receipts = tuple(r for o in outcomes for r in o.receipts or ())
        return BatchOutput(pa.concat_tables(tables).cast(of.schema), receipts=receipts)
    kind = None if operator is None else type(operator)
    return BatchOutput(merged(kind, of, [o.pieces[port].load() for o in outcomes]))


def side_outputs(
    outcomes: Sequence[Sequence[Outcome]],
) -> tuple[dict[str, pa.Table], pa.Table | None]:
    """The late tuples by stream and the rejected ones, in the order of their sources."""
    side: list[Parcel] = []
    for found in outcomes:
        side += sorted((p for o in found for p in o.side), key=lambda p: p.split)
    late: dict[str, list[pa.Table]] = {}
    for parcel in side:
        if parcel.kind == LATE:
            late.setdefault(parcel.label, []).append(from_bytes(parcel.data))
    rejected = [from_bytes(p.data) for p in side if p.kind == REJECTED]
    return (
        {name: pa.concat_tables(tables) for name, tables in sorted(late.items())},
        pa.concat_tables(rejected) if rejected else None,
    )
