"""Answers windows within an error bound, all groups of a window together.

In each window an aggregate is answered from samples if its error is within the bound, and otherwise
exactly; either way for all groups of the window. A sample that has all tuples of a group is exact.
The answer depends only on the tuples of the window, not on how they came: samples are sorted by
priority, and sums over them are made in that order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from tidegate.approx.decision import Windows
from tidegate.operate.aggregate.answer import AnswerBatch, Channels, WindowAnswer
from tidegate.operate.aggregate.bounded.answering import Answering
from tidegate.operate.aggregate.bounded.cells import Cells, exactly
from tidegate.operate.aggregate.bounded.figures import (
    ABSOLUTE_SHOWN,
    ANSWERED_SHOWN,
    AnsweredWindows,
    answered_window,
)
from tidegate.operate.aggregate.bounded.moment import moment
from tidegate.operate.aggregate.bounded.quantile import drawn_quantile, drawn_value, quantile
from tidegate.operate.aggregate.bounded.user_aggregate import own
from tidegate.operate.aggregate.bounded.windows import SampledWindows
from tidegate.operate.aggregate.estimate import (
    DRAWN_QUANTILES,
    DRAWN_VALUES,
    KEPT,
    MOMENTS,
    OWN,
    QUANTILES,
)
from tidegate.operate.aggregate.pane.pane import AggregateSpec, named_states
from tidegate.operate.figures import ShownFigure, ToldWindow, Values, WindowFigures
from tidegate.operate.kernels.family import States
from tidegate.operate.kernels.group import dense, rank
from tidegate.operate.kernels.order import Mask, integers
from tidegate.operate.operator import InstanceWork


@dataclass(frozen=True)
class Answered:
    """The columns of `Answering.columns`, with a row for each window and group.

    `cells` has the cells of each aggregate, in the order of the query. `exact` marks the rows in
    which all aggregates are exact.
    """

    cells: list[Cells]
    exact: Mask

    @property
    def columns(self) -> list[pa.Array]:
        ends = [column for c in self.cells for column in (c.value, c.low, c.high)]
        return [*ends, pa.array(self.exact)]


def answer(rules: Answering, states: Mapping[str, States], ends: pa.Array) -> Answered:
    """Answer windows whose groups are all here; `ends` has the window end of each row of states.

    `states` has the merged states of each function, by its name.
    """
    window = dense(rank(ends))
    windows = Windows(window.codes, window.n)
    cells = [_WAYS[one.way](SampledWindows(rules, one, states, windows)) for one in rules.answers]
    return Answered(cells, np.logical_and.reduce([c.exact for c in cells]))


def _kept(found: SampledWindows) -> Cells:
    return exactly(found.answer.function.family.finish(found.exact_states))


_WAYS: dict[str, Callable[[SampledWindows], Cells]] = {
    KEPT: _kept,
    **dict.fromkeys(MOMENTS, moment),
    QUANTILES: quantile,
    DRAWN_QUANTILES: drawn_quantile,
    DRAWN_VALUES: drawn_value,
    OWN: own,
}


@dataclass(frozen=True)
class BoundedAnswer(WindowAnswer):
    """Answers windows from samples where the error allows it, otherwise exactly.

    All groups of a window go to one instance, because they share a budget and a bound.
    """

    answering: Answering

    from_states: ClassVar[bool] = True
    together: ClassVar[bool] = True
    piecewise: ClassVar[bool] = False
    counts_groups: ClassVar[bool] = False
    finish: ClassVar[str] = "finish windows: one task per instance, shuffle by window"

    @property
    def shown(self) -> tuple[ShownFigure, ...]:  # type: ignore[override]
        return ABSOLUTE_SHOWN if self.answering.by_value else ANSWERED_SHOWN

    def renamed(self, names: Mapping[str, str]) -> BoundedAnswer:
        return BoundedAnswer(self.answering.renamed(names))

    def schema(self, spec: AggregateSpec) -> pa.Schema:
        return pa.schema([*spec.heads, *self.answering.columns])

    def routed_by(self, spec: AggregateSpec) -> list[str]:
        return ["window_end"]

    def batch(self, spec: AggregateSpec, work: InstanceWork, came: Channels) -> AnswerBatch:
        return _BoundedBatch(self, spec, work)

    def merged_window(self, told: ToldWindow) -> Values:
        return answered_window(told, self.answering)

    @property
    def merged_shown(self) -> tuple[ShownFigure, ...]:
        return self.shown

    def title(self, keys: str) -> str:
        return f"answer windows by {keys}, {self.answering}"

    def lines(self) -> list[str]:
        return self.answering.details()


class _BoundedBatch(AnswerBatch):
    """Answers merged windows, and collects their figures."""

    def __init__(self, rules: BoundedAnswer, spec: AggregateSpec, work: InstanceWork) -> None:
        super().__init__(spec)
        self._rules, self._work = rules, work
        self._counts = AnsweredWindows(spec.window)

    def merged(self, heads: Sequence[pa.Array], states: Sequence[States]) -> pa.Table:
        answering = self._rules.answering
        found = answer(answering, named_states(self._spec, states), heads[1])
        self._counts.count_cells(answering, integers(heads[1]), found.exact, found.cells)
        self._work.spans.mark("instance answer")
        schema = self._rules.schema(self._spec)
        return pa.Table.from_arrays([*heads, *found.columns], schema=schema)

    def figures(self) -> tuple[WindowFigures, ...]:
        return self._counts.figures()
