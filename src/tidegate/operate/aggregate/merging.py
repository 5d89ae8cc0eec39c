"""The operator that merges the parts of windows, and answers them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pyarrow as pa

from tidegate.collect.window import WindowOrder
from tidegate.operate.aggregate.answer import AnswerBatch, ExactAnswer, WindowAnswer
from tidegate.operate.aggregate.figures import WindowCounts
from tidegate.operate.aggregate.pane.pane import AggregateSpec, merged_parts, with_finished
from tidegate.operate.aggregate.rows import window_rows
from tidegate.operate.bucket_work import rows_by_bucket
from tidegate.operate.figures import ShownFigure, ToldWindow, Values
from tidegate.operate.kernels.order import Ints
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
"""The ports of an aggregate that closes windows in part, and the inputs of their merge."""

_COUNTED = ("groups_merged", "parts_merged", "groups_split")


@dataclass(frozen=True)
class MergeWindows(Operator):
    """Answers windows that a WindowAggregate has closed in part, in the batch that closed them.

    It applies HAVING, ORDER BY and LIMIT. It keeps no state: all parts of a window come in one
    batch, because one frontier closes the window everywhere. It counts groups, their parts (the
    price of splitting keys), and the groups with several parts. A second input may bring groups
    that are answered already; each counts as one part. The total work grows with the parts.
    """

    kind: ClassVar[str] = "merge"

    spec: AggregateSpec
    key_names: tuple[str, ...]
    answer: WindowAnswer = field(default_factory=ExactAnswer)

    partitioner = BY_HASH
    order = WindowOrder()

    def deal(self, work: MapWork, tuples: pa.Table) -> list[Share]:
        by = self.answer.routed_by(self.spec)
        return work.by_hash(self.partitioner, plain_names(tuples), by)

    def run(self, work: InstanceWork, arrived: Sequence[Arrival]) -> Result:
        answer = self.answer.batch(self.spec, work, {})
        results, sizes = self._merged(answer, together([a for a in arrived if a.input == PARTS]))
        done = [a.rows for a in arrived if a.input == FINISHED]
        if done:
            results, sizes = with_finished(self.spec, results, sizes, done)
        work.spans.mark("instance merge")
        keys = [name for name, _ in self.spec.keys]
        rows = tuple(window_rows(port, keys, results) for port in work.ports)
        work.spans.mark("instance finish")
        answer.see(results)
        windows = WindowCounts(self.spec.window)
        windows.add(results, sizes)
        count = int(sizes.sum())
        return Result(
            rows,
            count,
            counts=self._counted(sizes, count) | answer.counts(),
            bucket_work=rows_by_bucket([a.rows for a in arrived], work.mapping.buckets),
            windows=(*windows.figures(), *answer.figures()),
        )

    def _merged(self, answer: AnswerBatch, parts: pa.Table | None) -> tuple[pa.Table, Ints]:
        """The rows of windows, and the number of parts of each."""
        if parts is None or not parts.num_rows:
            return self.answer.schema(self.spec).empty_table(), np.empty(0, np.int64)
        heads, states, sizes = merged_parts(self.spec, parts)
        return answer.merged(heads, states), sizes

    def _counted(self, sizes: Ints, count: int) -> dict[str, int]:
        if not self.answer.counts_groups:
            return {}
        return dict(zip(_COUNTED, (len(sizes), count, int((sizes > 1).sum())), strict=True))

    def window_figures(self, told: ToldWindow) -> Values:
        return self.answer.merged_window(told)

    @property
    def shown_figures(self) -> tuple[ShownFigure, ...]:
        return self.answer.merged_shown

    def title(self) -> str:
        return self.answer.title(", ".join(self.key_names) or "nothing")

    def details(self, texts: Mapping[str, str]) -> list[str]:
        return [*self.answer.lines(), self.answer.finish]
