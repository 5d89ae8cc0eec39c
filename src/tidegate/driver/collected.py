"""A batch's rows put together, between the outcomes of the instances and those that take them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from tidegate.batch import from_bytes
from tidegate.collect.order import OutputOrder
from tidegate.execute.job import LATE, REJECTED, Outcome, Parcel
from tidegate.operate.port import Port
from tidegate.sink.batch_output import BatchOutput


def collected(
    order: OutputOrder, number: int, port: Port, outcomes: Sequence[Outcome]
) -> BatchOutput:
    """What an output of the query gets of a batch through a port, without side outputs."""
    if any(o.receipts is not None for o in outcomes):
        tables = [o.pieces[number].load().select(port.schema.names) for o in outcomes]
        receipts = tuple(r for o in outcomes for r in o.receipts or ())
        return BatchOutput(pa.concat_tables(tables).cast(port.schema), receipts=receipts)
    return BatchOutput(port.merged(order, [o.pieces[number].load() for o in outcomes]))


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
