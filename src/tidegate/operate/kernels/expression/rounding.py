"""ROUND, FLOOR and CEIL as in Spark: half away from zero, by decimal digits; over arrays."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.operate.kernels.expression import decimal
from tidegate.operate.kernels.expression.decimal import fit, round_half_up
from tidegate.operate.kernels.expression.failure import OVERFLOW, OVERFLOW_REMEDY, reject
from tidegate.operate.kernels.expression.vector import join, split

_EXACT = Context(prec=800, rounding=ROUND_HALF_UP)
_FAST_LIMIT = 2.0**49
"""A scaled double below this still has the bits behind the point that show a tie."""
_EXACT_POWERS = 22
"""The largest power of ten that is exact as a double."""
_ERROR = 2.0**-50
"""A relative error larger than that of scaling a double and of its shortest decimal digits."""


def round_to(type_: pa.DataType, value: Any, scale: Any) -> Any:
    """Round half away from zero at a constant number of digits behind (or before) the point."""
    digits = scale.as_py()
    if pa.types.is_floating(type_):
        return _round_floats(type_, value, digits)
    if pa.types.is_decimal(type_):
        return _into(round_half_up(value, digits), type_, value)
    return value if digits >= 0 else _round_integers(type_, value, -digits)


def scale_half_up(
    numbers: np.ndarray[Any, Any], digits: int
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Finite doubles times 10**digits, rounded half away from zero, and flags of those in doubt.

    Spark rounds the decimal digits that a double prints as. Scaling in binary gives the same except
    near a tie and for large numbers. The caller must round those flagged by their digits.
    """
    if abs(digits) > _EXACT_POWERS:
        return np.zeros_like(numbers), numbers != 0.0
    with np.errstate(all="ignore"):
        scaled = numbers * 10.0**digits if digits >= 0 else numbers / 10.0**-digits
        rounded = np.rint(scaled)
        size = np.abs(scaled)
        doubtful = np.abs(np.abs(scaled - rounded) - 0.5) <= size * _ERROR
        doubtful |= size >= _FAST_LIMIT
    return rounded, doubtful


def _round_floats(type_: pa.DataType, value: Any, digits: int) -> Any:
    raw, valid = split(value)
    numbers = raw.astype(np.float64)
    finite = np.isfinite(numbers)
    rounded, doubtful = scale_half_up(np.where(finite, numbers, 0.0), digits)
    power = 10.0 ** min(abs(digits), _EXACT_POWERS)
    with np.errstate(all="ignore"):
        result = rounded / power if digits >= 0 else rounded * power
        result = np.where(finite, result + 0.0, numbers)
    if digits >= 0:
        large = np.abs(numbers) >= 1e17  # a double has no digits behind the point there
        result = np.where(large, numbers, result)
        doubtful &= ~large
    if doubtful.any():
        distinct, places = np.unique(numbers[doubtful], return_inverse=True)
        result[doubtful] = np.array([_round_exactly(x, digits) for x in distinct.tolist()])[places]
    with np.errstate(all="ignore"):
        return join(result.astype(type_.to_pandas_dtype()), valid, type_)


def _round_exactly(number: float, digits: int) -> float:
    step = Decimal(1).scaleb(-max(-400, min(digits, 400)), _EXACT)
    return float(Decimal(repr(number)).quantize(step, ROUND_HALF_UP, _EXACT)) + 0.0


def _round_integers(type_: pa.DataType, value: Any, digits: int) -> Any:
    raw, valid = split(value)
    numbers = raw.astype(np.int64)
    step = np.uint64(10**digits)
    size = np.abs(numbers).astype(np.uint64)
    rounded = (size + step // np.uint64(2)) // step * step
    limit = np.uint64(2 ** (type_.bit_width - 1) - 1)
    bad = rounded > limit + (numbers < 0).astype(np.uint64)
    if valid is not None:
        bad &= valid
    reject(pa.array(bad), (value,), OVERFLOW, OVERFLOW_REMEDY)
    signed = np.where(numbers < 0, -rounded.astype(np.int64), rounded.astype(np.int64))
    return join(signed.astype(type_.to_pandas_dtype()), valid, type_)


def _into(wide: Any, type_: pa.DataType, value: Any) -> Any:
    result, bad = fit(wide, type_)
    if bad is not None:
        reject(bad, (value,), OVERFLOW, OVERFLOW_REMEDY)
    return result


def _whole(decimals: Callable[[Any], Any], floats: Callable[[Any], Any]) -> Callable[..., Any]:
    def kernel(type_: pa.DataType, value: Any) -> Any:
        if pa.types.is_integer(value.type):
            return value
        if pa.types.is_decimal(value.type):
            return _into(decimals(value), type_, value)
        return _to_long(floats, type_, value)

    return kernel


def _to_long(function: Callable[[Any], Any], type_: pa.DataType, value: Any) -> Any:
    """A double made whole by `function`, as int64; NaN is zero, as in Java."""
    numbers, valid = split(value)
    whole = np.where(np.isnan(numbers), 0.0, function(numbers))
    bad = (whole >= 2.0**63) | (whole < -(2.0**63))
    if valid is not None:
        bad &= valid
    reject(pa.array(bad), (value,), OVERFLOW, OVERFLOW_REMEDY)
    return join(np.where(bad, 0.0, whole).astype(np.int64), valid, type_)


OPS: dict[str, Callable[..., Any]] = {
    "round": round_to,
    "floor": _whole(decimal.floor, np.floor),
    "ceil": _whole(decimal.ceil, np.ceil),
}
