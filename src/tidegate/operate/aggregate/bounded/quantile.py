"""Quantiles from samples, in windows whose groups are all at one instance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.approx.bound import Interval
from tidegate.approx.decision import Reason, decided
from tidegate.operate.aggregate.bounded.cells import Cells, Looked, exactly
from tidegate.operate.aggregate.bounded.windows import SampledWindows
from tidegate.operate.aggregate.sample.quantile_sample import ROWS, TUPLES, Ranked, Ranking
from tidegate.operate.kernels.lists import as_lists
from tidegate.operate.kernels.order import Floats, Ints, Mask


def quantile(found: SampledWindows) -> Cells:
    """The quantile of the sample, with the sample values that bound the quantile of all tuples."""
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
    """The quantile from a drawn sample, if the budget has room for all groups; otherwise exactly.

    What a group needs follows from its number of tuples, so nothing is drawn in vain.
    """
    rules, function, tuples = found.rules, found.answer.function, found.tuples
    assert rules.budget_rows is not None
    ranking = Ranking(0, function.parameters, rules.error, rules.rank_confidence)
    needed = np.minimum(ranking.sampling.k, tuples)
    total = np.bincount(found.windows.of_group, weights=needed, minlength=found.windows.count)
    exact = (found.crowded | (total > rules.budget_rows))[found.windows.of_group]
    sizes = np.where(exact, 0, needed)
    if exact.all():
        value = found.exactly(pa.nulls(len(exact), function.result), exact)
        return replace(exactly(value), looked=found.looked(sizes, needed))
    result = _ranked(found, ranking, sizes)
    error = np.where(exact | (sizes >= tuples), 0.0, ranking.bound(sizes, tuples))
    return _cells(found, result, exact, error, found.looked(sizes, needed))


def drawn_value(found: SampledWindows) -> Cells:
    """The quantile of a drawn sample, if the values that bound it are near enough to each other.

    The groups of a window share the budget. The bounds hold for any distribution of values.
    """
    rules, function, tuples = found.rules, found.answer.function, found.tuples
    assert found.shares is not None
    ranking = Ranking(0, function.parameters, rules.error, rules.rank_confidence)
    sizes = np.minimum(found.shares, tuples)
    result = _ranked(found, ranking, sizes)
    ends = (result.field(n).to_numpy(zero_copy_only=False) for n in ("value0", "low0", "high0"))
    interval = Interval(*ends)
    error = np.where(sizes >= tuples, 0.0, found.promise.allowed.of(interval))
    failed = np.where(found.crowded, Reason.GROUPS, Reason.NONE).astype(np.int64)
    decision = decided(interval, error, found.promise, found.windows, failed)
    exact = ~decision.by_sample & (sizes < tuples)
    looked = found.looked(sizes, sizes)
    return _cells(found, result, exact, np.where(exact, 0.0, error), looked)


def _ranked(found: SampledWindows, ranking: Ranking, sizes: Ints) -> pa.Array:
    """The result of `Ranked` over the first `sizes` drawn values of each row."""
    taken = pa.array(found.lowest(sizes))
    columns = [pa.array(found.sample.priority), *found.sample.columns]
    lists = as_lists(sizes, [column.filter(taken) for column in columns])
    type_ = found.answer.function.types[0]
    return Ranked(type_, ranking).finish([pa.array(found.tuples), *lists])


def _cells(
    found: SampledWindows, result: pa.Array, exact: Mask, error: Floats, looked: Looked
) -> Cells:
    """The sampled results, with the rows that `exact` marks computed from all values."""
    value = found.exactly(result.field("value0"), exact)
    low, high = (pc.if_else(pa.array(exact), value, result.field(end)) for end in ("low0", "high0"))
    return Cells(value, low, high, exact | (looked.rows >= looked.tuples), error, looked)
