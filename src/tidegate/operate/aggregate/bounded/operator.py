"""Aggregates within an error as an operator, between windows closed in part and their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from tidegate.collect.window import WindowOrder
from tidegate.operate.aggregate.bounded.answer import answer
from tidegate.operate.aggregate.bounded.answering import Answering
from tidegate.operate.aggregate.bounded.figures import (
    ANSWERED_SHOWN,
    AnsweredWindows,
    answered_window,
)
from tidegate.operate.aggregate.pane import AggregateSpec, merged_parts
from tidegate.operate.aggregate.rows import window_rows
from tidegate.operate.bucket_work import rows_by_bucket
from tidegate.operate.figures import Shown, ToldWindow, Values
from tidegate.operate.kernels.order import integers
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
from tidegate.route.hash import BY_HASH


@dataclass(frozen=True)
class BoundedWindows(Operator):
    """Answers windows that a WindowAggregate has closed in part, from samples where these will do.

    A window goes to one instance with all of its groups, because the budget is divided among them
    and their errors are put together. It keeps no state: all parts of a window come in one batch.
    """

    kind: ClassVar[str] = "merge"

    spec: AggregateSpec
    key_names: tuple[str, ...]
    answering: Answering

    partitioner = BY_HASH
    order = WindowOrder()

    def deal(self, work: MapWork, tuples: pa.Table) -> list[Share]:
        return work.by_hash(self.partitioner, plain_names(tuples), ["window_end"])

    def run(self, work: InstanceWork, arrived: Sequence[Arrival]) -> Result:
        parts = together(arrived)
        if parts is None:
            return Result(self._rows(work, self.result_schema.empty_table()), 0)
        heads, states, _ = merged_parts(self.spec, parts)
        named = {f.name: held for f, held in zip(self.spec.functions, states, strict=True)}
        answered = answer(self.answering, named, heads[1])
        results = pa.Table.from_arrays([*heads, *answered.columns], schema=self.result_schema)
        work.spans.mark("instance answer")
        counts = AnsweredWindows(self.spec.range_us)
        counts.count_cells(self.answering, integers(heads[1]), answered.exact, answered.cells)
        rows = self._rows(work, results)
        work.spans.mark("instance finish")
        return Result(
            rows,
            parts.num_rows,
            bucket_work=rows_by_bucket([a.rows for a in arrived], work.mapping.buckets),
            windows=counts.figures(),
        )

    def _rows(self, work: InstanceWork, results: pa.Table) -> tuple[pa.Table, ...]:
        keys = [name for name, _ in self.spec.keys]
        return tuple(window_rows(port, keys, results) for port in work.ports)

    def window_figures(self, told: ToldWindow) -> Values:
        return answered_window(told, self.answering.budget_rows)

    @property
    def shown_figures(self) -> tuple[Shown, ...]:
        return ANSWERED_SHOWN

    @property
    def result_schema(self) -> pa.Schema:
        """The columns of answered windows, over which ports are."""
        heads = list(self.spec.result_schema)[: 2 + len(self.spec.keys)]
        return pa.schema([*heads, *self.answering.columns])

    def title(self) -> str:
        return f"answer windows by {', '.join(self.key_names) or 'nothing'}, {self.answering}"

    def details(self, texts: Mapping[str, str]) -> list[str]:
        lines = self.answering.details()
        return [*lines, "finish windows: one task per instance, shuffle by window"]
