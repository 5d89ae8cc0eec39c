"""The operator of queries without state: it only puts filtered tuples into the total order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.batch import DECIDED, ORDER, TS
from tidegate.collect.order import TotalOrder
from tidegate.operate.operator import (
    OUT,
    Arrival,
    BatchFacts,
    InstanceWork,
    MapWork,
    Operator,
    Result,
    Share,
    Traits,
    together,
)
from tidegate.order import sort_indices
from tidegate.route.hash import BY_HASH
from tidegate.schema import TIME


@dataclass(frozen=True)
class Stateless(Operator):
    """Puts tuples into the total order; the prefixes have filtered and projected them already.

    Each instance sorts a range of event times, which `cuts_us` separate. So the total work does not
    grow with the instances.
    """

    kind: ClassVar[str] = "stateless"
    cuts_us: tuple[int, ...] = ()

    traits = Traits(evaluates_ports=False, deals_ahead=True)
    partitioner = BY_HASH
    order = TotalOrder()

    def for_batch(self, facts: BatchFacts) -> Stateless:
        return replace(self, cuts_us=time_cuts(facts))

    def deal(self, work: MapWork, tuples: pa.Table) -> list[Share]:
        times = tuples.column(TS).to_numpy()
        owners = np.searchsorted(np.array(self.cuts_us, np.int64), times, "right")
        return work.by_owner(tuples, owners)

    def run(self, work: InstanceWork, arrived: Sequence[Arrival]) -> Result:
        (port,) = work.ports
        tuples = together(arrived)
        if tuples is None:
            return Result((port.carried.empty_table(),), 0)
        tuples = tuples.take(sort_indices([tuples.column(c).combine_chunks() for c in ORDER]))
        rows = pa.table([_column(tuples, n) for n in port.carried.names], schema=port.carried)
        work.spans.mark("instance order")
        return Result((rows,), rows.num_rows)

    def title(self) -> str:
        return "filter, select, order"


def _column(tuples: pa.Table, name: str) -> pa.ChunkedArray:
    """A column of the output; a time that the prefixes do not put out is the event time."""
    if name not in (TS, DECIDED):
        return tuples.column(f"{OUT}{name}")
    event = tuples.column(TS).cast(TIME)
    own = f"{OUT}{name}"
    return pc.coalesce(tuples.column(own), event) if own in tuples.column_names else event


def time_cuts(facts: BatchFacts) -> tuple[int, ...]:
    """Event times that cut a batch into one range for each instance, all of one length."""
    low, high = max(facts.low_us, facts.previous_us), min(facts.high_us, facts.frontier_us)
    if low >= high:
        return (low,) * (facts.instances - 1)
    return tuple(low + (high - low) * i // facts.instances for i in range(1, facts.instances))
