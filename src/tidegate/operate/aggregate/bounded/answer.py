"""Windows answered within an error bound, between merged states and the columns of their rows.

Each aggregate of each window is answered from the sample where its error is within the bound, and
else exactly: all groups of a window together. What a sample that holds all tuples of a group says
is exact. All of it depends on the tuples of a window alone, not on how they came: samples are in
the order of priorities, and sums over them are made in that order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.approx.decision import Windows
from tidegate.operate.aggregate.bounded.answering import Answer, Answering
from tidegate.operate.aggregate.bounded.cells import Cells, exactly
from tidegate.operate.aggregate.bounded.moment import moment
from tidegate.operate.aggregate.bounded.own import own
from tidegate.operate.aggregate.bounded.quantile import quantile
from tidegate.operate.aggregate.bounded.windows import SampledWindows
from tidegate.operate.aggregate.estimate import KEPT, MOMENTS, OWN, QUANTILES
from tidegate.operate.kernels.family import States
from tidegate.operate.kernels.group import dense, rank
from tidegate.operate.kernels.order import Floats, Ints, Mask


@dataclass(frozen=True)
class AnswerFigures:
    """What answering took, one entry for each window in the order of their ends.

    `error` is the largest that a value of the window may have, in relation to it or in ranks.
    `rows` is how many sampled tuples were looked at, `needed` how many the error takes as far as
    they say, and `budget` how many there could have been.
    """

    ends: pa.Array
    approximate: Mask
    error: Floats
    rows: Ints
    needed: Ints
    budget: Ints


@dataclass(frozen=True)
class Answered:
    """The columns that `Answering.columns` names, a row for each window and group; and figures."""

    columns: list[pa.Array]
    figures: AnswerFigures


def answer(rules: Answering, states: Mapping[str, States], ends: pa.Array) -> Answered:
    """Answer windows whose groups are all here; `ends` says for each row of states its window.

    `states` are merged, by the names of the functions whose states they are.
    """
    window = dense(rank(ends))
    found = SampledWindows(rules, states, Windows(window.codes, window.n))
    cells = [_WAYS[answer.way](found, answer) for answer in rules.answers]
    columns = [column for c in cells for column in (c.value, c.low, c.high)]
    exact: Mask = np.logical_and.reduce([c.exact for c in cells])
    error = np.zeros(window.n)
    np.maximum.at(error, window.codes, np.maximum.reduce([c.error for c in cells]))
    rows, needed = (
        np.bincount(window.codes, np.maximum.reduce(of), window.n).astype(np.int64)
        for of in ([c.rows for c in cells], [c.needed for c in cells])
    )
    ends = ends.take(pa.array(window.rows))
    figures = AnswerFigures(
        ends, found.windows.any(~exact), error, rows, needed, found.window_budgets
    )
    return Answered([*columns, pa.array(exact)], figures)


def _kept(found: SampledWindows, answer: Answer) -> Cells:
    return exactly(answer.function.family.finish(found.exact_states(answer)))


_WAYS: dict[str, Callable[[SampledWindows, Answer], Cells]] = {
    KEPT: _kept,
    **dict.fromkeys(MOMENTS, moment),
    QUANTILES: quantile,
    OWN: own,
}
