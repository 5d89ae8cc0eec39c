"""Quantiles from samples among aggregates that need the groups of a window together."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.operate.aggregate.bounded.cells import Cells, Looked
from tidegate.operate.aggregate.bounded.windows import SampledWindows
from tidegate.operate.aggregate.ranked import ROWS, TUPLES, Ranked, Ranking
from tidegate.operate.aggregate.sampled import as_lists
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
    looked = Looked(tuples, rows, rows, needed, np.zeros_like(rows))
    return Cells(value, low, high, rows >= tuples, ranking.bound(rows, tuples), looked)


def drawn_quantile(found: SampledWindows) -> Cells:
    """The same where the budget has room for what all groups of a window need, else exactly.

    What a group needs is known by how many tuples it has, so nothing is drawn in vain.
    """
    rules, function, tuples = found.rules, found.answer.function, found.tuples
    assert rules.budget_rows is not None
    ranking = Ranking(0, function.parameters, rules.error, rules.rank_confidence)
    needed = np.minimum(ranking.sampling.k, tuples)
    total = np.bincount(found.windows.of_group, weights=needed, minlength=found.windows.count)
    exact = (found.crowded | (total > rules.budget_rows))[found.windows.of_group]
    sizes = np.where(exact, 0, needed)
    taken = pa.array(found.lowest(sizes))
    columns = [pa.array(found.sample.priority), *found.sample.columns]
    lists = as_lists(sizes, [column.filter(taken) for column in columns])
    result = Ranked(function.types[0], ranking).finish([pa.array(tuples), *lists])
    value = found.exactly(result.field("value0"), exact)
    low, high = (pc.if_else(pa.array(exact), value, result.field(end)) for end in ("low0", "high0"))
    whole = exact | (sizes >= tuples)
    error = np.where(whole, 0.0, ranking.bound(sizes, tuples))
    return Cells(value, low, high, whole, error, found.looked(sizes, needed))
