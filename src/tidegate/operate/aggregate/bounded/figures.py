"""The figures of windows within an error: which share of rows and tuples came from samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa

from tidegate.operate.aggregate.answer import AnswerBatch, Channels, WindowAnswer
from tidegate.operate.aggregate.bounded.answering import Answering
from tidegate.operate.aggregate.bounded.cells import Cells, Looked
from tidegate.operate.aggregate.figures import WindowTotals
from tidegate.operate.aggregate.pane.pane import AggregateSpec
from tidegate.operate.aggregate.sample.quantile_sample import ROWS, TUPLES, Ranking
from tidegate.operate.figures import ShownFigure, ToldWindow, WindowFigures
from tidegate.operate.kernels.order import Floats, Ints, Mask, flat, integers
from tidegate.operate.operator import InstanceWork

_ROWS, _TUPLES = "rows", "sampled_of"
_ESTIMATED, _LOOKED, _KEPT = "rows_estimated", "tuples_taken", "rows_kept"
_SAMPLE, _NEEDED, _ERROR = "sample_rows", "needed_rows", "error"
_SPILLED = "spilled_rows"

ANSWERED_SHOWN = (
    ShownFigure("windows_from_samples", "windows answered from samples", "share", brief=True),
    ShownFigure(
        "rows_from_samples", "rows answered from samples", "share", brief=True, weight=_ROWS
    ),
    ShownFigure("tuples_looked_at", "tuples looked at", "share", weight=_TUPLES),
    ShownFigure(_ERROR, "widest error", "share", brief=True),
    ShownFigure(_SAMPLE, "sampled tuples looked at"),
    ShownFigure(_NEEDED, "needed"),
    ShownFigure("budget_rows", "budget", brief=True),
    ShownFigure(_SPILLED, "spilled"),
)


ABSOLUTE_SHOWN = tuple(
    ShownFigure("absolute_error", "widest absolute error", brief=True) if f.name == _ERROR else f
    for f in ANSWERED_SHOWN
)
"""The figures where errors are in the unit of the answers."""


class AnsweredWindows(WindowTotals):
    """Counts the rows that came from samples, and the tuples of these samples."""

    def count(self, ends: Ints, exact: Mask, error: Floats, looked: Sequence[Looked]) -> None:
        """Add rows, by the ends of their windows; `looked` has one entry for each sample."""

        def total(columns: Sequence[Ints]) -> Ints:
            added: Ints = np.sum(columns, axis=0, dtype=np.int64)
            return added

        self.add_rows(
            ends,
            {
                _ROWS: np.ones(len(ends), np.int64),
                _ESTIMATED: (~exact).astype(np.int64),
                _TUPLES: total([one.tuples for one in looked]),
                _LOOKED: total([np.where(exact, one.tuples, one.rows) for one in looked]),
                _KEPT: total([one.kept for one in looked]),
                _SAMPLE: total([one.rows for one in looked]),
                _NEEDED: total([one.needed for one in looked]),
                _SPILLED: total([one.spilled for one in looked]),
            },
            largest={_ERROR: error},
        )

    def count_cells(
        self, rules: Answering, ends: Ints, exact: Mask, cells: Sequence[Cells]
    ) -> None:
        """Add rows of aggregates with cells; a sample that several of them share counts once."""
        by_sample: dict[str, Looked] = {}
        for answer, cell in zip(rules.answers, cells, strict=True):
            if answer.sampled is not None and cell.looked is not None:
                before = by_sample.get(answer.sampled.name, cell.looked)
                rows, needed = (
                    np.maximum(getattr(before, name), getattr(cell.looked, name))
                    for name in ("rows", "needed")
                )
                by_sample[answer.sampled.name] = replace(cell.looked, rows=rows, needed=needed)
        error = np.maximum.reduce([cell.error for cell in cells])
        self.count(ends, exact, error, list(by_sample.values()))


def answered_window(told: ToldWindow, rules: Answering) -> dict[str, float]:
    """The figures of a window, from what its instances reported; none without samples."""
    budget_rows = rules.window_rows
    totals = told.totals()
    if not totals.get(_TUPLES):
        return {}
    spilled = {} if budget_rows is None else {_SPILLED: totals[_SPILLED]}
    return {
        "windows_from_samples": int(totals[_ESTIMATED] > 0),
        "rows_from_samples": totals[_ESTIMATED] / totals[_ROWS],
        "tuples_looked_at": totals[_LOOKED] / totals[_TUPLES],
        ("absolute_error" if rules.by_value else _ERROR): told.largest(_ERROR),
        _SAMPLE: totals[_SAMPLE],
        _NEEDED: totals[_NEEDED],
        "budget_rows": totals[_KEPT] if budget_rows is None else budget_rows,
        **spilled,
        _ROWS: totals[_ROWS],
        _TUPLES: totals[_TUPLES],
    }


@dataclass(frozen=True)
class RankedAnswer(WindowAnswer):
    """Quantiles from a sample of each group; ports take values and intervals out of the results.

    `states` has the columns of closed windows with `Ranked` results, and their rules.
    """

    answering: Answering
    states: tuple[tuple[str, Ranking], ...]

    shown: ClassVar[tuple[ShownFigure, ...]] = ANSWERED_SHOWN

    def renamed(self, names: Mapping[str, str]) -> RankedAnswer:
        """The same where the columns have other names."""
        states = tuple((names[name], ranking) for name, ranking in self.states)
        return RankedAnswer(self.answering.renamed(names), states)

    def batch(self, spec: AggregateSpec, work: InstanceWork, came: Channels) -> RankedWindows:
        return RankedWindows(spec, self)

    def window(self, told: ToldWindow) -> dict[str, float]:
        return answered_window(told, self.answering)

    def lines(self) -> list[str]:
        return self.answering.details()


class RankedWindows(AnswerBatch):
    """Collects the figures of closed windows with columns of quantiles."""

    def __init__(self, spec: AggregateSpec, columns: RankedAnswer) -> None:
        super().__init__(spec)
        self._columns, self._counts = columns, AnsweredWindows(spec.window)

    def figures(self) -> tuple[WindowFigures, ...]:
        return self._counts.figures()

    def see(self, rows: pa.Table) -> None:
        """Rows of windows, one for each group, sorted by `window_end`."""
        if not self._columns.states:
            return
        looked, bounds = [], []
        for name, ranking in self._columns.states:
            result = flat(rows.column(name))
            tuples, sampled = (result.field(n).to_numpy() for n in (TUPLES, ROWS))
            needed = np.minimum(ranking.sampling.k, tuples)
            looked.append(Looked(tuples, sampled, sampled, needed, np.zeros_like(sampled)))
            bounds.append(ranking.bound(sampled, tuples))
        exact = np.logical_and.reduce([one.rows >= one.tuples for one in looked])
        ends = integers(flat(rows.column("window_end")))
        self._counts.count(ends, exact, np.maximum.reduce(bounds), looked)
