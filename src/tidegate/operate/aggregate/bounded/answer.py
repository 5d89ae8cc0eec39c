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
from tidegate.operate.aggregate.bounded.answering import Answering
from tidegate.operate.aggregate.bounded.cells import Cells, exactly
from tidegate.operate.aggregate.bounded.moment import moment
from tidegate.operate.aggregate.bounded.own import own
from tidegate.operate.aggregate.bounded.quantile import quantile
from tidegate.operate.aggregate.bounded.windows import SampledWindows
from tidegate.operate.aggregate.estimate import KEPT, MOMENTS, OWN, QUANTILES
from tidegate.operate.kernels.family import States
from tidegate.operate.kernels.group import dense, rank
from tidegate.operate.kernels.order import Mask


@dataclass(frozen=True)
class Answered:
    """The columns that `Answering.columns` names, a row for each window and group.

    `cells` are those of each aggregate, in the order of the query; `exact` are rows that are so in
    all of them.
    """

    cells: list[Cells]
    exact: Mask

    @property
    def columns(self) -> list[pa.Array]:
        ends = [column for c in self.cells for column in (c.value, c.low, c.high)]
        return [*ends, pa.array(self.exact)]


def answer(rules: Answering, states: Mapping[str, States], ends: pa.Array) -> Answered:
    """Answer windows whose groups are all here; `ends` says for each row of states its window.

    `states` are merged, by the names of the functions whose states they are.
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
    OWN: own,
}
