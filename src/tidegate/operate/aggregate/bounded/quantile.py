"""Quantiles from samples among aggregates that need the groups of a window together."""

from __future__ import annotations

import numpy as np

from tidegate.operate.aggregate.bounded.cells import Cells, Looked
from tidegate.operate.aggregate.bounded.windows import SampledWindows
from tidegate.operate.aggregate.ranked import ROWS, TUPLES, Ranking
from tidegate.operate.kernels.order import Ints


def quantile(found: SampledWindows) -> Cells:
    """The quantile of the sample, and values of it between which that of all tuples is."""
    answer, sampled = found.answer, found.answer.sampled
    assert sampled is not None
    ranking: Ranking = sampled.parameters[0]
    (fraction,) = answer.function.parameters
    number = ranking.fractions.index(fraction)
    result = sampled.family.finish(found.sampled_states)
    tuples: Ints = result.field(TUPLES).to_numpy()
    rows: Ints = result.field(ROWS).to_numpy()
    value, low, high = (result.field(f"{end}{number}") for end in ("value", "low", "high"))
    needed = np.minimum(ranking.rows_for(fraction), tuples)
    looked = Looked(tuples, rows, rows, needed)
    return Cells(value, low, high, rows >= tuples, ranking.bound(rows, tuples), looked)
