"""The operator of aggregates over windows of tuples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from tidegate.collect.trigger import TriggerOrder, triggered
from tidegate.duration import rows_text
from tidegate.operate.bucket_work import rows_by_bucket
from tidegate.operate.operator import (
    Arrival,
    InstanceWork,
    MapWork,
    Operator,
    OperatorState,
    Result,
    Share,
    Traits,
    plain_names,
    together,
)
from tidegate.operate.port import Port
from tidegate.operate.tuple_window.state import TUPLES, TupleKeeper, read_groups, write_tuples
from tidegate.operate.tuple_window.window import TupleSpec, advance
from tidegate.route.hash import BY_HASH
from tidegate.route.partitioner import Partitioner

WINDOW = ("window_start", "window_end")


@dataclass(frozen=True)
class TupleAggregate(Operator):
    """Keeps the newest tuples of each group, and puts out a window when a tuple fills it."""

    kind: ClassVar[str] = "aggregate"

    spec: TupleSpec
    key_names: tuple[str, ...]
    partitioner: Partitioner = BY_HASH

    traits = Traits(deals_ahead=True)
    order = TriggerOrder("the tuple that fills a window")

    def deal(self, work: MapWork, tuples: pa.Table) -> list[Share]:
        tuples = plain_names(tuples)
        keys = [tuples.column(name).combine_chunks() for name, _ in self.spec.keys]
        bucket = work.router(self.partitioner).buckets(keys, tuples.num_rows)
        work.spans.mark("map fold")
        return work.by_bucket(tuples.add_column(0, "bucket", pa.array(bucket)))

    def run(self, work: InstanceWork, arrived: Sequence[Arrival]) -> Result:
        """Add the batch's tuples to their groups, and put out the windows that they fill."""
        spec, news = self.spec, together(arrived)
        if news is None:
            nothing = spec.result_schema.empty_table()
            return Result(tuple(_rows(port, nothing) for port in work.ports), 0)
        held = read_groups(work, spec, news)
        work.spans.mark("instance read state")
        results, ranked = advance(spec, held, news)
        work.spans.mark("instance advance")
        made = write_tuples(work, spec, ranked)
        work.spans.mark("instance write")
        output = tuple(_rows(port, results) for port in work.ports)
        work.spans.mark("instance finish")
        touched = rows_by_bucket([held, news], work.mapping.buckets)
        return Result(output, news.num_rows, {TUPLES: (made,)}, bucket_work=touched)

    @property
    def state(self) -> OperatorState:
        kept = {TUPLES: TupleKeeper(self.spec)}
        return OperatorState(kept, "its windows count the tuples of each group")

    def title(self) -> str:
        window = rows_text(self.spec.rows, self.spec.slide)
        return f"aggregate over [{window}] by {', '.join(self.key_names) or 'nothing'}"

    def details(self, texts: Mapping[str, str]) -> list[str]:
        return ["keeps tuples, fills windows: one task per instance, shuffle by bucket"]


def _rows(port: Port, results: pa.Table) -> pa.Table:
    results = port.filtered(results)
    named = {name: results.column(name) for name in WINDOW}
    return triggered(named | port.selected(results), results)
