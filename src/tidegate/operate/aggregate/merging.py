"""Merging of windows that were closed in part, between instances that share keys and the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from tidegate.collect.window import WindowOrder
from tidegate.operate.aggregate.figures import (
    MERGED_SHOWN,
    ToldColumns,
    WindowCounts,
    merged_window,
)
from tidegate.operate.aggregate.pane import AggregateSpec, finished, with_finished
from tidegate.operate.aggregate.rows import window_rows
from tidegate.operate.bucket_work import rows_by_bucket
from tidegate.operate.figures import Shown, ToldWindow, Values
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

PARTS, FINISHED = 0, 1
"""The ports of an aggregate that closes some windows in part, and the inputs of who merges them."""


@dataclass(frozen=True)
class MergeWindows(Operator):
    """Finishes windows that a WindowAggregate has closed in part, in the batch that closed them.

    HAVING, ORDER BY and LIMIT are its own. It keeps no state: all parts of a window come in one
    batch, because one frontier closes it everywhere. It counts the groups of windows, the parts
    that they came in, which is what splitting keys costs, and those that came in several. A second
    input may have groups that are finished; each counts as one part.
    """

    kind: ClassVar[str] = "merge"
    totals: ClassVar[tuple[str, ...]] = ("groups_merged", "parts_merged", "groups_split")

    spec: AggregateSpec
    key_names: tuple[str, ...]
    told: ToldColumns | None = None
    """Where its windows have what is told of them, where they shed or are within an error."""

    partitioner = BY_HASH
    order = WindowOrder()

    def deal(self, work: MapWork, tuples: pa.Table) -> list[Share]:
        keys = [name for name, _ in self.spec.keys]
        return work.by_hash(self.partitioner, plain_names(tuples), keys)

    def run(self, work: InstanceWork, arrived: Sequence[Arrival]) -> Result:
        parts = together([a for a in arrived if a.input == PARTS])
        parts = self.spec.window_schema.empty_table() if parts is None else parts
        results, sizes = finished(self.spec, parts)
        done = [a.rows for a in arrived if a.input == FINISHED]
        count = parts.num_rows + sum(rows.num_rows for rows in done)
        if done:
            results, sizes = with_finished(self.spec, results, sizes, done)
        work.spans.mark("instance merge")
        keys = [name for name, _ in self.spec.keys]
        rows = tuple(window_rows(port, keys, results) for port in work.ports)
        work.spans.mark("instance finish")
        work_of = rows_by_bucket([a.rows for a in arrived], work.mapping.buckets)
        counted = (results.num_rows, count, np.count_nonzero(sizes > 1))
        counts = dict(zip(self.totals, map(int, counted), strict=True))
        windows = WindowCounts(self.spec.range_us)
        windows.add(results, sizes)
        figures = windows.figures()
        if self.told is not None:
            watch = self.told.watch(self.spec.range_us, work.kept)
            watch.add(results)
            figures += watch.figures()
            counts |= watch.counts()
        return Result(
            rows,
            count,
            counts=counts,
            bucket_work=work_of,
            windows=figures,
        )

    def window_figures(self, told: ToldWindow) -> Values:
        return merged_window(told) | ({} if self.told is None else self.told.window(told))

    @property
    def shown_figures(self) -> tuple[Shown, ...]:
        return MERGED_SHOWN if self.told is None else (*self.told.shown, *MERGED_SHOWN)

    def title(self) -> str:
        return f"merge windows by {', '.join(self.key_names) or 'nothing'}"

    def details(self, texts: Mapping[str, str]) -> list[str]:
        lines = [] if self.told is None else self.told.details()
        return [*lines, "finish windows: one task per instance, shuffle by bucket"]
