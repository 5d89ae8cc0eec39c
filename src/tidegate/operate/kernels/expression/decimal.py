"""Decimal arithmetic by Spark's rules (HALF_UP, overflow is a failure), over Arrow decimals."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.expression.digits import WIDEST, digits_of_quotient
from tidegate.operate.kernels.expression.failure import (
    OVERFLOW,
    OVERFLOW_REMEDY,
    ZERO,
    ZERO_REMEDY,
    reject,
)
from tidegate.operate.kernels.expression.vector import both, none_where

NARROW = 38
"""The digits of a decimal128, in which Arrow computes several times faster than in 256 bits."""

_EXACT = Context(prec=200, rounding=ROUND_DOWN)
_NEGATION = Context(prec=34, rounding=ROUND_HALF_EVEN)
"""Spark negates with so many digits, though its decimals may have 38: so do we."""
_STEP = 9
"""Digits dropped at once: 10**9 is one word of 32 bits, and Arrow divides wrongly by longer ones
when a word of the quotient has all bits set (pc.trunc of 4294967295.5 with 15 digits is ...94)."""


def _room(value: Any, digits: int) -> pa.DataType:
    """A decimal type of the value's scale with room for so many digits; narrow if possible."""
    if max(value.type.precision, digits) < NARROW:
        return pa.decimal128(NARROW, value.type.scale)
    return pa.decimal256(WIDEST, value.type.scale)


def cut(value: Any, scale: int) -> Any:
    """The value with the digits behind a scale dropped; see `_STEP` for why in steps."""
    wide = value.cast(_room(value, 0))
    make = pa.decimal128 if wide.type.bit_width == 128 else pa.decimal256
    while wide.type.scale > scale:
        target = max(scale, wide.type.scale - _STEP)
        wide = wide.cast(make(wide.type.precision, target), safe=False)
    return wide


def round_half_up(value: Any, scale: int) -> Any:
    """The value rounded half away from zero at a scale; the result has that scale, or scale 0."""
    if value.type.scale <= scale:
        return value
    if scale < 0:
        # Arrow has no arithmetic below scale 0: the point is moved there and back again.
        whole = cut(value, 0).cast(pa.decimal256(WIDEST, 0))
        moved = round_half_up(whole.view(pa.decimal256(WIDEST, -scale)), 0)
        return moved.cast(pa.decimal256(WIDEST, -scale)).view(pa.decimal256(WIDEST, 0))
    near = cut(value, scale + 1)
    # Half a unit is added to the size, so that one more cut rounds.
    narrow = near.type.precision == NARROW
    type_ = (pa.decimal128 if narrow else pa.decimal256)(near.type.precision - 1, scale + 1)
    half = pa.scalar(Decimal(5).scaleb(-scale - 1), type_)
    size = cut(pc.add(pc.abs(near).cast(type_), half), scale)
    negative = pc.less(near, pa.scalar(Decimal(0), near.type))
    return pc.if_else(negative, pc.negate(size), size)


def fit(value: Any, type_: pa.DataType) -> tuple[Any, Any]:
    """The decimals rounded into a type, NULL where they do not fit; and flags of those, or None."""
    source = value.type
    integral = type_.precision - type_.scale
    if type_.scale >= source.scale and integral >= source.precision - source.scale:
        return value.cast(type_), None
    rounded = round_half_up(value, type_.scale)
    rounded = rounded.cast(_room(rounded, integral + max(rounded.type.scale, 0) + 1))
    if integral + rounded.type.scale >= rounded.type.precision:
        return rounded.cast(type_), None
    bad = pc.greater_equal(pc.abs(rounded), pa.scalar(Decimal(10) ** integral, rounded.type))
    return none_where(bad, rounded).cast(type_), bad


def floor(value: Any) -> Any:
    """The whole number at or below."""
    return _towards(value, pc.greater, Decimal(-1))


def ceil(value: Any) -> Any:
    """The whole number at or above."""
    return _towards(value, pc.less, Decimal(1))


def _towards(value: Any, passed: Callable[..., Any], step: Decimal) -> Any:
    if value.type.scale == 0:
        return value
    digits = value.type.precision - value.type.scale + 1
    whole = cut(value, 0).cast(pa.decimal256(digits, 0))
    past = passed(whole, value)
    return pc.if_else(past, pc.add(whole, pa.scalar(step, pa.decimal128(1, 0))), whole)


def unscaled(value: Any) -> tuple[np.ndarray[Any, Any] | None, np.ndarray[Any, Any] | None]:
    """The integers behind decimals (None if one has more than 64 bits), and which are valid."""
    words = np.frombuffer(value.buffers()[1], np.int64).reshape(-1, 2)
    low, high = words[value.offset : value.offset + len(value)].T
    valid = value.is_valid().to_numpy(zero_copy_only=False) if value.null_count else None
    if valid is not None:
        low, high = np.where(valid, low, 0), np.where(valid, high, 0)
    return (low if np.array_equal(low >> 63, high) else None), valid


def from_unscaled(
    integers: np.ndarray[Any, Any], valid: np.ndarray[Any, Any], type_: pa.DataType
) -> Any:
    """Decimals of a column type from the int64 integers behind them."""
    words = np.stack([integers, integers >> 63], axis=1)
    mask = pa.array(valid).buffers()[1]
    return pa.Array.from_buffers(type_, len(integers), [mask, pa.py_buffer(words)])


def _fitted(value: Any, type_: pa.DataType, args: tuple[Any, ...]) -> Any:
    if value.type == type_:
        return value
    result, bad = fit(value, type_)
    if bad is not None:
        reject(bad, args, OVERFLOW, OVERFLOW_REMEDY)
    return result


def _wide(value: Any, more: int = 0, whole: int = 0) -> Any:
    """The same value with room for more digits: `more` behind the point, `whole` before it."""
    type_ = value.type
    return value.cast(pa.decimal256(type_.precision + more + whole, type_.scale + more))


def _exactly(kernel: Callable[..., Any], digits: Callable[..., int]) -> Callable[..., Any]:
    """A kernel whose result is computed with all digits and rounded once, afterwards."""

    def run(type_: pa.DataType, left: Any, right: Any) -> Any:
        if digits(left.type, right.type) <= NARROW:
            return _fitted(kernel(left, right), type_, (left, right))
        return _fitted(kernel(_wide(left), _wide(right)), type_, (left, right))

    return run


def _sum_digits(left: pa.DataType, right: pa.DataType) -> int:
    whole = max(left.precision - left.scale, right.precision - right.scale)
    return int(whole + max(left.scale, right.scale) + 1)


def _product_digits(left: pa.DataType, right: pa.DataType) -> int:
    return int(left.precision + right.precision + 1)


add = _exactly(pc.add, _sum_digits)
subtract = _exactly(pc.subtract, _sum_digits)
multiply = _exactly(pc.multiply, _product_digits)


def reject_zero(left: Any, right: Any) -> None:
    """Fail where a divisor is zero and the dividend is not NULL."""
    left, right = both(left, right)
    zero = pa.scalar(0, pa.int8()).cast(pa.decimal128(3, 0)).cast(right.type)
    bad = pc.and_(pc.equal(right, zero), left.is_valid())
    reject(bad, (left, right), ZERO, ZERO_REMEDY)


def _quotient(left: Any, right: Any, scale: int) -> Any:
    """left / right, cut and not rounded, with `scale` digits or more; NULL where either is NULL."""
    left, right = both(left, right)
    natural = digits_of_quotient(left.type, right.type)
    more = max(0, max(scale, 4) - natural)
    digits = left.type.precision - left.type.scale + right.type.scale + natural + more
    if digits <= NARROW and left.type.precision + more <= NARROW:
        left = left.cast(pa.decimal128(left.type.precision + more, left.type.scale + more))
    else:
        left, right = _wide(left, more), _wide(right)
    # A NULL may hide a zero, which Arrow would divide by.
    none = pc.or_(left.is_null(), right.is_null())
    if not none.true_count:
        return _divided(left, right)
    smallest = pa.scalar(Decimal(1).scaleb(-right.type.scale), right.type)
    return none_where(none, _divided(left, pc.if_else(none, smallest, right)))


def _divided(left: Any, right: Any) -> Any:
    """Arrow's quotient, in which the few that may be wrong (see `_STEP`) are computed again."""
    quotient = pc.divide(left, right)
    if right.type.precision <= _STEP:
        return quotient
    words = np.frombuffer(pc.abs(quotient).buffers()[1], np.uint32)
    doubtful = (words >= 0xFFFFFFF0).reshape(len(quotient), -1).any(axis=1)
    if not doubtful.any():
        return quotient
    rows = pa.array(np.flatnonzero(doubtful))
    step = Decimal(1).scaleb(-quotient.type.scale)
    again = [
        None if a is None or b is None else _EXACT.divide(a, b).quantize(step, ROUND_DOWN, _EXACT)
        for a, b in zip(left.take(rows).to_pylist(), right.take(rows).to_pylist(), strict=True)
    ]
    return pc.replace_with_mask(quotient, pa.array(doubtful), pa.array(again, quotient.type))


def negate(value: Any) -> Any:
    """The negative, rounded to 34 digits as in Spark."""
    type_, negative = value.type, pc.negate(value)
    if type_.precision <= _NEGATION.prec:
        return negative
    least = pa.scalar(Decimal(1).scaleb(_NEGATION.prec - type_.scale), type_)
    long = pc.greater_equal(pc.abs(value), least).fill_null(False)
    if not long.true_count:
        return negative
    rounded = [_NEGATION.plus(number) for number in negative.filter(long).to_pylist()]
    wide = _wide(negative, 0, 1)
    return _fitted(pc.replace_with_mask(wide, long, pa.array(rounded, wide.type)), type_, (value,))


def absolute(value: Any) -> Any:
    """The absolute value; negative values are rounded by `negate`, as in Spark."""
    if value.type.precision <= _NEGATION.prec:
        return pc.abs(value)
    below = pc.less(value, pa.scalar(0, pa.int8()).cast(pa.decimal128(3, 0)).cast(value.type))
    none = pa.scalar(None, value.type)
    return pc.coalesce(negate(pc.if_else(below, value, none)), value)


def divide(type_: pa.DataType, left: Any, right: Any) -> Any:
    reject_zero(left, right)
    return _fitted(_quotient(left, right, type_.scale + 1), type_, (left, right))


def whole_quotient(left: Any, right: Any) -> Any:
    """The quotient cut to an integer, as a decimal of scale 0."""
    reject_zero(left, right)
    return cut(_quotient(left, right, 0), 0)


def remainder(type_: pa.DataType, left: Any, right: Any) -> Any:
    whole = whole_quotient(left, right)
    left, right = both(left, right)
    digits = left.type.precision - left.type.scale + right.type.scale + 1
    whole = whole.cast(pa.decimal256(min(WIDEST, digits), 0))
    rest = pc.subtract(_wide(left), pc.multiply(whole, _wide(right)))
    return _fitted(rest, type_, (left, right))
