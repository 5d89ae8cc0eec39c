"""The answers of one aggregate for windows and groups, with estimates as values of its type."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal, localcontext

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.approx.bound import Interval
from tidegate.operate.kernels.order import Floats, Ints, Mask

NEAREST, DOWN, UP = "nearest", "down", "up"

_DECIMAL = {NEAREST: ROUND_HALF_EVEN, DOWN: ROUND_FLOOR, UP: ROUND_CEILING}
_INTEGER = {NEAREST: np.rint, DOWN: np.floor, UP: np.ceil}


@dataclass(frozen=True)
class Looked:
    """How many tuples answering took, for each row.

    `tuples` is how many the aggregate sees, `kept` how many of them are in the sample, and `rows`
    how many of these were evaluated. `needed` is an estimate of how many the error takes. `spilled`
    is how many are on disk, to draw from or to fall back on.
    """

    tuples: Ints
    kept: Ints
    rows: Ints
    needed: Ints
    spilled: Ints


@dataclass(frozen=True)
class Cells:
    """The answers of one aggregate: a value for each window and group, and its interval.

    `exact` marks exact values. `error` bounds the error of the others, relative to the value or in
    ranks; it is 0 for exact ones. `looked` is None for an aggregate without samples.
    """

    value: pa.Array
    low: pa.Array
    high: pa.Array
    exact: Mask
    error: Floats
    looked: Looked | None = None


def exactly(value: pa.Array) -> Cells:
    """Values that are exact."""
    every = np.ones(len(value), np.bool_)
    return Cells(value, value, value, every, np.zeros(len(value)))


def alone(value: pa.Array, found: Interval, error: Floats, whole: Mask, looked: Looked) -> Cells:
    """Answers from samples without a fallback; `whole` marks samples that have all tuples.

    An end that is infinite, or outside the range of the type, is infinite in floats and NULL in
    integers. Errors above 1 are given as 1.
    """
    there = value.is_valid().to_numpy(zero_copy_only=False) & ~whole
    low, high = (_or_null(value, there, *end) for end in ((found.low, DOWN), (found.high, UP)))
    return Cells(value, low, high, whole, np.minimum(error, 1.0), looked)


def _or_null(value: pa.Array, chosen: Mask, ends: Floats, way: str) -> pa.Array:
    if pa.types.is_floating(value.type):
        return _put(value, chosen, ends, way)
    fits = _fits(ends, value.type)
    blank = pc.if_else(pa.array(chosen & ~fits), pa.scalar(None, value.type), value)
    return _put(blank, chosen & fits, ends, way)


def estimated(
    chosen: Mask,
    found: Interval,
    error: Floats,
    exact: pa.Array,
    looked: Looked,
) -> Cells:
    """Estimates where `chosen`, as values of the type of `exact`; elsewhere the exact values.

    Ends of intervals are rounded outwards. Where an interval is outside the range of the type, the
    exact value is used.
    """
    chosen = chosen & representable(found, exact.type)
    return Cells(
        _put(exact, chosen, found.value, NEAREST),
        _put(exact, chosen, found.low, DOWN),
        _put(exact, chosen, found.high, UP),
        ~chosen,
        np.where(chosen, error, 0.0),
        looked,
    )


def representable(found: Interval, type_: pa.DataType) -> Mask:
    """Marks the intervals that are in the range of a type."""
    return _fits(found.low, type_) & _fits(found.high, type_)


def _fits(values: Floats, type_: pa.DataType) -> Mask:
    """Marks the values that are in the range of a type."""
    most = np.inf
    if pa.types.is_integer(type_):
        most = 2.0 ** (type_.bit_width - 1)
    elif pa.types.is_decimal(type_):
        most = 10.0 ** (type_.precision - type_.scale) * (1 - 1e-9)
    inside: Mask = np.abs(values) < most
    return inside


def _put(exact: pa.Array, chosen: Mask, values: Floats, way: str) -> pa.Array:
    """The column `exact` with other values where `chosen`."""
    if not chosen.any():
        return exact
    return pc.replace_with_mask(exact, pa.array(chosen), _rounded(values[chosen], exact.type, way))


def _rounded(values: Floats, type_: pa.DataType, way: str) -> pa.Array:
    if pa.types.is_integer(type_):
        return pa.array(_INTEGER[way](values).astype(np.int64)).cast(type_)
    if not pa.types.is_decimal(type_):
        return pa.array(values, type_)
    unit = Decimal(1).scaleb(-type_.scale)
    with localcontext() as context:
        context.prec = 100
        rounded = [Decimal(v).quantize(unit, rounding=_DECIMAL[way]) for v in values.tolist()]
    return pa.array(rounded, type_)
