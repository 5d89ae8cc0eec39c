"""The operator of aggregates over windows of tuples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import pyarrow as pa

from tidegate.batch import ints
from tidegate.calendar.duration import rows_text
from tidegate.collect.trigger import TriggerOrder, triggered
from tidegate.operate.bucket_work import BucketWork, rows_by_bucket
from tidegate.operate.operator import (
    Arrival,
    BatchFacts,
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
from tidegate.operate.tuple_window.spec import TupleSpec
from tidegate.operate.tuple_window.state import TUPLES, TupleKeeper, read_groups, write_tuples
from tidegate.operate.tuple_window.tenure import advance_by_tenure, migration_of, shares_of
from tidegate.operate.tuple_window.window import advance
from tidegate.route.hash import BY_HASH
from tidegate.route.partitioner import Partitioner
from tidegate.route.reach import Reach
from tidegate.state.segment.segment import Segment

WINDOW = ("window_start", "window_end")


@dataclass(frozen=True)
class TupleAggregate(Operator):
    """Keeps the newest tuples of each group, and puts out a window when a tuple fills it.

    Where there are no groups, `before` is how many tuples came in earlier batches. Each group is at
    one instance, so the total work is the same for any number of instances.
    """

    kind: ClassVar[str] = "aggregate"

    spec: TupleSpec
    key_names: tuple[str, ...]
    partitioner: Partitioner = BY_HASH
    before: int = 0

    order = TriggerOrder("the tuple that fills a window")

    @property
    def traits(self) -> Traits:
        return Traits(deals_ahead=True, counted=self._counted)

    def for_batch(self, facts: BatchFacts) -> TupleAggregate:
        return replace(self, before=facts.counts.get(TUPLES, 0))

    def deal(self, work: MapWork, tuples: pa.Table) -> list[Share]:
        tuples = plain_names(tuples)
        keys = [tuples.column(name).combine_chunks() for name, _ in self.spec.keys]
        bucket = work.router(self.partitioner).buckets(keys, tuples.num_rows)
        work.spans.mark("map fold")
        tuples = tuples.add_column(0, "bucket", pa.array(bucket))
        return shares_of(work, tuples) if work.mapping.formers else work.by_bucket(tuples)

    def run(self, work: InstanceWork, arrived: Sequence[Arrival]) -> Result:
        """Add the batch's tuples to their groups, and put out the windows that they fill."""
        spec, news = self.spec, together(arrived)
        if work.mapping.formers:
            return self._by_tenure(work, news)
        if news is None:
            nothing = spec.result_schema.empty_table()
            return Result(tuple(_rows(port, nothing) for port in work.ports), 0)
        held = read_groups(work, spec, news)
        work.spans.mark("instance read state")
        results, ranked = advance(spec, held, news)
        work.spans.mark("instance advance")
        touched = rows_by_bucket([held, news], work.mapping.buckets)
        return self._result(work, results, ranked, touched)

    def _by_tenure(self, work: InstanceWork, news: pa.Table | None) -> Result:
        """Run a batch while former owners have windows to finish."""
        results, ranked = advance_by_tenure(self.spec, work, self.before, news)
        work.spans.mark("instance advance")
        touched = rows_by_bucket([] if news is None else [news], work.mapping.buckets)
        return self._result(work, results, ranked, touched)

    def _result(
        self, work: InstanceWork, results: pa.Table, ranked: pa.Table, touched: BucketWork
    ) -> Result:
        segments: dict[str, tuple[Segment, ...]] = {}
        counts: dict[str, int] = {}
        if ranked.num_rows:
            segments[TUPLES] = (write_tuples(work, self.spec, ranked),)
            # Ranks of a stream whose tuples were all dropped, or of an earlier query, begin anew.
            counts = {n: int(ints(ranked, "rank").max()) + 1 - self.before for n in self._counted}
        work.spans.mark("instance write")
        output = tuple(_rows(port, results) for port in work.ports)
        work.spans.mark("instance finish")
        return Result(output, ranked.num_rows, segments, counts, touched)

    @property
    def _counted(self) -> tuple[str, ...]:
        return () if self.spec.keys else (TUPLES,)

    @property
    def state(self) -> OperatorState:
        kept = {TUPLES: TupleKeeper(self.spec)}
        if self.spec.keys:
            return OperatorState(kept, "its windows count the tuples of each group")
        reach = Reach(tuples=self.spec.rows)
        return OperatorState(kept, reach, partial(migration_of, self.spec))

    def title(self) -> str:
        window = rows_text(self.spec.rows, self.spec.slide)
        return f"aggregate over [{window}] by {', '.join(self.key_names) or 'nothing'}"

    def details(self, texts: Mapping[str, str]) -> list[str]:
        return ["keeps tuples, fills windows: one task per instance, shuffle by bucket"]


def _rows(port: Port, results: pa.Table) -> pa.Table:
    results = port.filtered(results)
    named = {name: results.column(name) for name in WINDOW}
    return triggered(named | port.selected(results), results)
