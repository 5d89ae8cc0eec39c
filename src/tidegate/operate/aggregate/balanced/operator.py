"""Balanced windows whose keys are split, between windows closed in part and their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from tidegate.collect.window import WindowOrder
from tidegate.operate.aggregate.balanced.answer import balanced
from tidegate.operate.aggregate.balanced.balancing import Balancing
from tidegate.operate.aggregate.balanced.figures import (
    BALANCED_SHOWN,
    BalancedCounts,
    balanced_window,
)
from tidegate.operate.aggregate.figures import MERGED_SHOWN, WindowCounts, merged_window
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
class MergeBalanced(Operator):
    """Merges the held tuples of groups that were at several instances, trims and evaluates them.

    Which groups are to be trimmed was decided before, and comes with their states. It keeps no
    state: all parts of a window come in one batch.
    """

    kind: ClassVar[str] = "merge"

    spec: AggregateSpec
    key_names: tuple[str, ...]
    balancing: Balancing

    partitioner = BY_HASH
    order = WindowOrder()

    def deal(self, work: MapWork, tuples: pa.Table) -> list[Share]:
        keys = [name for name, _ in self.spec.keys]
        return work.by_hash(self.partitioner, plain_names(tuples), keys)

    def run(self, work: InstanceWork, arrived: Sequence[Arrival]) -> Result:
        parts, schema = together(arrived), self.balancing.result_schema(self.spec)
        if parts is None:
            return Result(self._rows(work, schema.empty_table()), 0)
        heads, states, sizes = merged_parts(self.spec, parts)
        work.spans.mark("instance merge")
        named = {f.name: held for f, held in zip(self.spec.functions, states, strict=True)}
        found = balanced(self.balancing, named)
        results = pa.Table.from_arrays([*heads, *found.columns], schema=schema)
        work.spans.mark("instance answer")
        counts, merged = BalancedCounts(self.spec.range_us), WindowCounts(self.spec.range_us)
        counts.add(integers(heads[1]), found, np.zeros(len(sizes), np.bool_))
        merged.add(results, sizes)
        rows = self._rows(work, results)
        work.spans.mark("instance finish")
        return Result(
            rows,
            parts.num_rows,
            bucket_work=rows_by_bucket([a.rows for a in arrived], work.mapping.buckets),
            windows=(*merged.figures(), *counts.figures()),
        )

    def _rows(self, work: InstanceWork, results: pa.Table) -> tuple[pa.Table, ...]:
        keys = [name for name, _ in self.spec.keys]
        return tuple(window_rows(port, keys, results) for port in work.ports)

    def window_figures(self, told: ToldWindow) -> Values:
        return merged_window(told) | balanced_window(told)

    @property
    def shown_figures(self) -> tuple[Shown, ...]:
        return (*(one for one in BALANCED_SHOWN if one.name != "skipped"), *MERGED_SHOWN)

    def title(self) -> str:
        return f"merge and balance windows by {', '.join(self.key_names)}"

    def details(self, texts: Mapping[str, str]) -> list[str]:
        return ["trim groups, finish windows: one task per instance, shuffle by bucket"]
