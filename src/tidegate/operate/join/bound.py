"""Computes the numbers that the intervals of a join compare, from the tuples of either side.

Stored tuples have a value, asking ones the bounds they set for it; both are doubles. An equality
compares codes, which are equal where the values are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.expression.tree import Expr
from tidegate.operate.join.spec import EQUAL, PairInterval, Probe
from tidegate.operate.kernels.expression import evaluate
from tidegate.operate.kernels.sort import order_of_hashes
from tidegate.route.bucket import hash_of

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_CODE_BITS = np.uint64(11)
"""By how many bits a hash is too long for a double to hold it exactly."""


def key_of(probe: Probe, side: int, table: pa.Table) -> Floats:
    """The values that the index of a run is in the order of; NULL is NaN and comes last."""
    if probe.one_key:
        return codes_of(probe.equalities, side, table)
    (index,) = probe.indexed
    return value_of(index, side, table)


def key_order(probe: Probe, key: Floats) -> Ints:
    """The places of tuples in the order of their keys, those of equal ones as they are given."""
    if probe.one_key:
        return order_of_hashes(key, 64 - int(_CODE_BITS))
    return np.argsort(key, stable=True)


def value_of(interval: PairInterval, side: int, table: pa.Table) -> Floats:
    """What an interval looks at in stored tuples."""
    if interval.kind == EQUAL:
        return codes_of((interval,), side, table)
    return _floats(interval.value(side), table, np.inf)


def bounds_of(interval: PairInterval, side: int, asking: pa.Table) -> tuple[Floats, Floats]:
    """Between which values the asking tuples want the stored ones of `side`."""
    if interval.kind == EQUAL:
        codes = codes_of((interval,), 1 - side, asking)
        return codes, codes
    low, high = interval.bounds(side)
    rows = asking.num_rows
    return (
        np.full(rows, -np.inf) if low is None else _floats(low, asking, -np.inf),
        np.full(rows, np.inf) if high is None else _floats(high, asking, np.inf),
    )


def _floats(expr: Expr, table: pa.Table, nan: float) -> Floats:
    """A double expression as an array: NULL is NaN, which never passes, and NaN is `nan`.

    NaN is the greatest value, so it is infinity where it is looked at; as a bound it is open.
    """
    column = evaluate(expr, table)
    values: Floats = column.to_numpy(zero_copy_only=False)
    odd = np.isnan(values)
    if odd.any():
        values = np.where(odd, nan, values)
        if column.null_count:
            values[pc.is_null(column).to_numpy(zero_copy_only=False)] = np.nan
    return values


def codes_of(equalities: Sequence[PairInterval], side: int, table: pa.Table) -> Floats:
    """Numbers that are equal where the values are; few are by chance.

    NULL is NaN, which equals nothing, but for equalities of NULL and NULL.
    """
    columns = [evaluate(i.value(side), table) for i in equalities]
    if not table.num_rows:
        return np.empty(0, np.float64)
    codes = (hash_of(columns) >> _CODE_BITS).astype(np.float64)
    for equality, column in zip(equalities, columns, strict=True):
        if column.null_count and not equality.null_safe:
            codes[pc.is_null(column).to_numpy(zero_copy_only=False)] = np.nan
    return codes
