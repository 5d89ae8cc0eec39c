"""Decimal arithmetic by Spark's rules (HALF_UP, overflow is a failure), over Arrow decimals."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.operate.kernels.failure import (
    OVERFLOW,
    OVERFLOW_REMEDY,
    ZERO,
    ZERO_REMEDY,
    reject,
)
from tidegate.operate.kernels.vector import both, none_where

WIDEST = 76
"""The digits of Arrow's widest decimal, in which results are computed before they are rounded."""


def round_half_up(value: Any, scale: int) -> Any:
    """Round half away from zero at a scale, keeping the type's scale; never overflows below 76."""
    wide = value.cast(pa.decimal256(WIDEST, value.type.scale))
    return pc.round(wide, scale, round_mode="half_towards_infinity")


def fit(value: Any, type_: pa.DataType) -> tuple[Any, Any]:
    """The decimals rounded into a type, NULL where they do not fit, and which did not (or None)."""
    source = value.type
    if type_.scale >= source.scale and type_.precision - type_.scale >= (
        source.precision - source.scale
    ):
        return value.cast(type_), None
    wide = value.cast(pa.decimal256(WIDEST, source.scale))
    if type_.scale < source.scale:
        wide = pc.round(wide, type_.scale, round_mode="half_towards_infinity")
    integral = type_.precision - type_.scale
    if integral + source.scale >= WIDEST:
        return wide.cast(type_), None
    limit = pa.scalar(Decimal(10) ** integral, pa.decimal256(WIDEST, source.scale))
    bad = pc.greater_equal(pc.abs(wide), limit)
    return none_where(bad, wide).cast(type_), bad


def _fitted(value: Any, type_: pa.DataType, args: tuple[Any, ...]) -> Any:
    if value.type == type_:
        return value
    result, bad = fit(value, type_)
    if bad is not None:
        reject(bad, args, OVERFLOW, OVERFLOW_REMEDY)
    return result


def _wide(value: Any, more: int = 0) -> Any:
    """The same value with room for `more` further digits behind the point."""
    type_ = value.type
    return value.cast(pa.decimal256(type_.precision + more, type_.scale + more))


def add(type_: pa.DataType, left: Any, right: Any) -> Any:
    return _fitted(pc.add(_wide(left), _wide(right)), type_, (left, right))


def subtract(type_: pa.DataType, left: Any, right: Any) -> Any:
    return _fitted(pc.subtract(_wide(left), _wide(right)), type_, (left, right))


def multiply(type_: pa.DataType, left: Any, right: Any) -> Any:
    return _fitted(pc.multiply(_wide(left), _wide(right)), type_, (left, right))


def reject_zero(left: Any, right: Any) -> None:
    """Fail where a divisor is zero and the dividend is not NULL."""
    left, right = both(left, right)
    zero = pa.scalar(0, pa.int8()).cast(pa.decimal128(3, 0)).cast(right.type)
    bad = pc.and_(pc.equal(right, zero), left.is_valid())
    reject(bad, (left, right), ZERO, ZERO_REMEDY)


def _quotient(left: Any, right: Any, scale: int) -> Any:
    """left / right cut (not rounded) at `scale` or more digits; NULL where either is NULL."""
    left, right = both(left, right)
    none = pc.or_(left.is_null(), right.is_null())
    one = pa.scalar(Decimal(1), pa.decimal128(38, 0)).cast(pa.decimal256(WIDEST, 0))
    divisor = pc.if_else(none, one.cast(_wide(right).type, safe=False), _wide(right))
    more = max(0, scale - digits_of_quotient(left.type, right.type))
    return none_where(none, pc.divide(_wide(left, more), divisor))


def digits_of_quotient(left: pa.DataType, right: pa.DataType) -> int:
    """The scale Arrow gives a quotient."""
    return int(max(4, left.scale + right.precision - right.scale + 1))


def divide(type_: pa.DataType, left: Any, right: Any) -> Any:
    reject_zero(left, right)
    return _fitted(_quotient(left, right, type_.scale + 1), type_, (left, right))


def whole_quotient(left: Any, right: Any) -> Any:
    """The quotient cut to an integer, as a decimal of scale 0."""
    reject_zero(left, right)
    cut = pc.trunc(_quotient(left, right, 0))
    return cut.cast(pa.decimal256(min(WIDEST, cut.type.precision), 0))


def remainder(type_: pa.DataType, left: Any, right: Any) -> Any:
    whole = whole_quotient(left, right)
    left, right = both(left, right)
    digits = left.type.precision - left.type.scale + right.type.scale + 1
    whole = whole.cast(pa.decimal256(min(WIDEST, digits), 0))
    rest = pc.subtract(_wide(left), pc.multiply(whole, _wide(right)))
    return _fitted(rest, type_, (left, right))
