"""Quantiles from samples, whose rank error is known before there is a value."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tidegate.approx.rank import quantiles, rank_bound
from tidegate.operate.aggregate.bounded.answering import Answer
from tidegate.operate.aggregate.bounded.cells import Cells
from tidegate.operate.aggregate.bounded.windows import SampledWindows
from tidegate.operate.kernels.order import Floats, Ints, Mask, floats, one_zero, valid


def quantile(found: SampledWindows, answer: Answer) -> Cells:
    """The quantile of the sample, and values of it between which that of all tuples is.

    Where arguments are NULL there are fewer values than were sampled, and the ends lie further
    apart.
    """
    (column,) = found.arguments(answer)
    family, (fraction,) = answer.function.family, answer.function.parameters
    value = family.finish(family.fold(found.sample.groups, [column]))
    codes = found.sample.groups.where(valid(column)).codes
    values = one_zero(floats(column.drop_null()))
    sizes = np.bincount(codes, minlength=len(value)).astype(np.int64)
    tuples = np.where(found.whole, sizes, found.tuples)
    confidence = found.rules.rank_confidence
    interval = quantiles(codes, values, tuples, fraction=fraction, confidence=confidence)
    error = rank_bound(sizes, tuples, confidence, fraction)
    low, high = interval.low, interval.high
    # Far from the middle the bound of ranks may lie outside of the sample. That all of n values
    # are on one side of a quantile has the probability fraction ** n, and mostly rules it out.
    rare = (1 - confidence) / 2
    within = np.isneginf(low) & ((1 - fraction) ** sizes <= rare)
    low = np.where(within, _extreme(np.minimum, codes, values, len(value)), low)
    within = np.isposinf(high) & (fraction**sizes <= rare)
    high = np.where(within, _extreme(np.maximum, codes, values, len(value)), high)
    low, high = (_or_value(end, found.whole, value) for end in (low, high))
    needed = np.minimum(found.rules.quantile_rows(answer.function), found.tuples)
    return Cells(value, low, high, found.whole, error, found.sample.sizes, needed)


def _extreme(of: np.ufunc, codes: Ints, values: Floats, groups: int) -> Floats:
    """The least or the greatest value of each group; 0 of none."""
    if len(values) == 0:
        return np.zeros(groups)
    order = np.argsort(codes, kind="stable")
    there, first = np.unique(codes[order], return_index=True)
    found = np.zeros(groups)
    found[there] = of.reduceat(values[order], first)
    return found


def _or_value(end: Floats, whole: Mask, value: pa.Array) -> pa.Array:
    """The end of intervals, but the value itself where the sample is everything."""
    exact = value.fill_null(0.0).to_numpy(zero_copy_only=False)
    mask = value.is_null().to_numpy(zero_copy_only=False)
    return pa.array(np.where(whole, exact, end), mask=mask)
