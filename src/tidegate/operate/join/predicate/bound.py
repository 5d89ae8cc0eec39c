"""Computes the numbers that the intervals of a join compare, from the tuples of either side.

A stored tuple has a value; a probe sets a lower and an upper bound for it. All are doubles. An
equality compares codes of the values, which are hashes cut to the bits of a double: equal values
have equal codes, and the predicate decides on those that are equal by chance.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.expression.tree import Expr
from tidegate.operate.join.spec import EQUAL, PairInterval, Probe
from tidegate.operate.kernels.expression.expression import evaluate
from tidegate.operate.kernels.sort import order_of_hashes
from tidegate.route.bucket import hash_of

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_CODE_BITS = np.uint64(11)
"""Bits that are cut from a 64-bit hash, so that a double holds the rest exactly."""


def key_of(probe: Probe, side: int, table: pa.Table) -> Floats:
    """The values that an index is sorted by; NULL is NaN, which sorts last. Not for unions."""
    if probe.one_key:
        return codes_of(probe.equalities, side, table)
    (index,) = probe.indexed
    return value_of(index, side, table)


def key_order(probe: Probe, key: Floats) -> Ints:
    """The stable order of keys. Codes are spread evenly, so they are sorted in linear time."""
    if probe.one_key:
        return order_of_hashes(key, 64 - int(_CODE_BITS))
    return np.argsort(key, stable=True)


def value_of(interval: PairInterval, side: int, table: pa.Table) -> Floats:
    """The value of an interval for each stored tuple of a side."""
    if interval.kind == EQUAL:
        return codes_of((interval,), side, table)
    return _floats(interval.value(side), table, np.inf)


def bounds_of(interval: PairInterval, side: int, asking: pa.Table) -> tuple[Floats, Floats]:
    """The lower and upper bounds that probes set for the stored tuples of `side`, inclusive."""
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
    """A double expression as an array, with NaN for NULL, which passes no test, and `nan` for NaN.

    SQL has NaN as the greatest value. So a value that is NaN becomes infinity; a bound that is NaN
    becomes open, which lets too much pass and leaves the decision to the predicate.
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
    """The codes of the values of some equalities together, for the tuples of a side.

    NULL is NaN, which equals nothing, unless the equality is null-safe: then it has a code.
    """
    columns = [evaluate(i.value(side), table) for i in equalities]
    if not table.num_rows:
        return np.empty(0, np.float64)
    codes = (hash_of(columns) >> _CODE_BITS).astype(np.float64)
    for equality, column in zip(equalities, columns, strict=True):
        if column.null_count and not equality.null_safe:
            codes[pc.is_null(column).to_numpy(zero_copy_only=False)] = np.nan
    return codes
