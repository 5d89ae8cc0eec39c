"""The numbers that a join's intervals compare, between tuples of either side and the search.

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
from tidegate.operate.join.spec import EQUAL, SCAN, Interval, JoinSpec
from tidegate.operate.kernels.expression import evaluate
from tidegate.route.bucket import hash_of

Floats = npt.NDArray[np.float64]

_CODE_BITS = np.uint64(11)
"""By how many bits a hash is too long for a double to hold it exactly."""


def tests(spec: JoinSpec) -> list[Interval]:
    """The intervals that candidates are tested with: all but those the index has."""
    if spec.method == SCAN:
        return list(spec.intervals)
    assert spec.index is not None
    index = spec.intervals[spec.index]
    together = spec.equalities if index.kind == EQUAL else (index,)
    return [i for i in spec.intervals if i not in together]


def key_of(spec: JoinSpec, side: int, table: pa.Table) -> Floats:
    """The values that a run is sorted by; NULL is NaN and comes last."""
    assert spec.index is not None
    index = spec.intervals[spec.index]
    if index.kind == EQUAL:
        return _codes(spec.equalities, side, table)
    return value_of(index, side, table)


def index_bounds(spec: JoinSpec, side: int, asking: pa.Table) -> tuple[Floats, Floats] | None:
    """Between which values of the index the asking tuples find theirs."""
    if spec.method == SCAN:
        return None
    assert spec.index is not None
    index = spec.intervals[spec.index]
    if index.kind == EQUAL:
        codes = _codes(spec.equalities, 1 - side, asking)
        return codes, codes
    return bounds_of(index, side, asking)


def value_of(interval: Interval, side: int, table: pa.Table) -> Floats:
    """What an interval looks at in stored tuples."""
    if interval.kind == EQUAL:
        return _codes((interval,), side, table)
    return _floats(interval.value(side), table, np.inf)


def bounds_of(interval: Interval, side: int, asking: pa.Table) -> tuple[Floats, Floats]:
    """Between which values the asking tuples want the stored ones of `side`."""
    if interval.kind == EQUAL:
        codes = _codes((interval,), 1 - side, asking)
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


def _codes(equalities: Sequence[Interval], side: int, table: pa.Table) -> Floats:
    """Numbers that are equal where the values are; few are by chance. NULL is NaN."""
    columns = [evaluate(i.value(side), table) for i in equalities]
    if not table.num_rows:
        return np.empty(0, np.float64)
    codes = (hash_of(columns) >> _CODE_BITS).astype(np.float64)
    for column in columns:
        if column.null_count:
            codes[pc.is_null(column).to_numpy(zero_copy_only=False)] = np.nan
    return codes
