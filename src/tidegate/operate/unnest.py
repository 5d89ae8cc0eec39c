"""The operator that makes a row of each value of a list; it keeps nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.batch import TS
from tidegate.collect.trigger import TRIGGER, TriggerOrder
from tidegate.operate.operator import (
    Arrival,
    BatchFacts,
    InstanceWork,
    MapWork,
    Operator,
    Result,
    Share,
    Traits,
    plain_names,
    together,
)
from tidegate.operate.stateless import time_cuts
from tidegate.operate.tuple_rows import in_total_order, tuple_rows
from tidegate.route.hash import BY_HASH

VALUES, VALUE, PLACE = "values", "value", "place"
"""The column of lists in the tuples, and the columns of a value and its place in the rows."""


@dataclass(frozen=True)
class UnnestTuples(Operator):
    """A row for each value of the lists in `VALUES`, in the order of tuples and then of the list.

    `first` is the number of the first place. With `outer` a tuple without values gives one row, in
    which value and place are NULL. Each instance has a range of event times, which `cuts_us`
    separate. So the total work does not grow with the instances.
    """

    kind: ClassVar[str] = "unnest"

    first: int
    outer: bool
    cuts_us: tuple[int, ...] = ()

    traits = Traits(deals_ahead=True)
    partitioner = BY_HASH
    order = TriggerOrder("ts, input, source, position, place in the list")

    def for_batch(self, facts: BatchFacts) -> UnnestTuples:
        return replace(self, cuts_us=time_cuts(facts))

    def deal(self, work: MapWork, tuples: pa.Table) -> list[Share]:
        owners = np.searchsorted(
            np.array(self.cuts_us, np.int64), tuples.column(TS).to_numpy(), "right"
        )
        return work.by_owner(tuples, owners)

    def run(self, work: InstanceWork, arrived: Sequence[Arrival]) -> Result:
        tuples = together(arrived)
        if tuples is None:
            return Result(tuple(p.carried.empty_table() for p in work.ports), 0)
        tuples = in_total_order(plain_names(tuples))
        rows = exploded(tuples, self.first, self.outer)
        work.spans.mark("instance explode")
        return Result(tuple(tuple_rows(port, rows) for port in work.ports), tuples.num_rows)

    def title(self) -> str:
        return "a row for each value of a list"


def exploded(tuples: pa.Table, first: int, outer: bool) -> pa.Table:
    """Repeat each tuple for every value of its list, with `VALUE` and `PLACE`."""
    lists = tuples.column(VALUES).combine_chunks()
    sizes = pc.fill_null(pc.list_value_length(lists), 0).to_numpy().astype(np.int64)
    counts = np.maximum(sizes, 1) if outer else sizes
    starts = np.cumsum(counts) - counts
    parents = np.repeat(np.arange(len(counts)), counts)
    places = np.arange(len(parents)) - starts[parents]
    lacking = sizes[parents] == 0
    at = (np.cumsum(sizes) - sizes)[parents] + places
    rows = tuples.drop_columns([VALUES]).take(pa.array(parents))
    values = lists.flatten().take(pa.array(at, mask=lacking))
    rows = rows.append_column(VALUE, values)
    rows = rows.append_column(TRIGGER + PLACE, pa.array(places))
    return rows.append_column(PLACE, pa.array((places + first).astype(np.int32), mask=lacking))
