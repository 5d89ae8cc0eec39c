"""CAST and TRY_CAST between the engine's types with ANSI failures, over Arrow arrays.

A converter returns the values, NULL where a value cannot be converted, and which rows those are
(None: no row). CAST fails on such a row, TRY_CAST leaves the NULL.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.calendar import era
from tidegate.calendar.microsecond import DAY_US, SECOND_US
from tidegate.expression.digits import WIDEST
from tidegate.expression.kind import kind
from tidegate.operate.kernels.expression.decimal import cut, fit, from_unscaled, unscaled
from tidegate.operate.kernels.expression.failure import reject
from tidegate.operate.kernels.expression.parse import READERS, Converted
from tidegate.operate.kernels.expression.rounding import scale_half_up
from tidegate.operate.kernels.expression.temporal import naive
from tidegate.operate.kernels.expression.vector import by_distinct, join, none_where, split
from tidegate.schema import type_name

Converter = Callable[[Any, pa.DataType], Converted]


def cast(type_: pa.DataType, value: Any) -> Any:
    """CAST: convert, and fail on the first row whose value the type does not have."""
    if value.type == type_:
        return value
    result, bad = CONVERTERS[kind(value.type), kind(type_)](value, type_)
    if bad is not None:
        remedy = "Use TRY_CAST to get NULL instead."
        reject(bad, (value,), f"the value must be convertible to {type_name(type_)}", remedy)
    return result


def try_cast(type_: pa.DataType, value: Any) -> Any:
    """TRY_CAST: convert, with NULL where the type does not have the value."""
    if value.type == type_:
        return value
    return CONVERTERS[kind(value.type), kind(type_)](value, type_)[0]


def _simply(function: Callable[[Any, pa.DataType], Any]) -> Converter:
    return lambda value, type_: (function(value, type_), None)


def _unsafe(value: Any, type_: pa.DataType) -> Any:
    return value.cast(type_, safe=False)


def _bounds(type_: pa.DataType) -> tuple[int, int]:
    top = 2 ** (type_.bit_width - 1)
    return -top, top - 1


def _integer_to_integer(value: Any, type_: pa.DataType) -> Converted:
    low, high = _bounds(type_)
    if value.type.bit_width <= type_.bit_width and not pa.types.is_unsigned_integer(value.type):
        return value.cast(type_), None
    if pa.types.is_unsigned_integer(value.type):
        bad = pc.greater(value, pa.scalar(high, pa.uint64()))
    else:
        wide = value.cast(pa.int64())
        bad = pc.or_(pc.less(wide, low), pc.greater(wide, high))
    return none_where(bad, value).cast(type_), bad


def _integer_to_decimal(value: Any, type_: pa.DataType) -> Converted:
    return fit(value.cast(pa.decimal128(20, 0)), type_)


def _to_boolean(value: Any, type_: pa.DataType) -> Any:
    if pa.types.is_decimal(value.type):
        value = value.cast(pa.float64())
    return pc.not_equal(value, pa.scalar(0, value.type))


def _integer_to_timestamp(value: Any, type_: pa.DataType) -> Any:
    """Seconds; beyond the range the nearest end, as Spark does."""
    seconds, valid = split(value.cast(pa.int64()))
    limit = (2**63 - 1) // SECOND_US
    micros = np.clip(seconds, -limit - 1, limit) * SECOND_US
    micros = np.where(seconds > limit, 2**63 - 1, np.where(seconds < -limit, -(2**63), micros))
    return join(micros, valid, type_)


def _float_to_integer(value: Any, type_: pa.DataType) -> Converted:
    """Cut towards zero; the end of the range is compared in the width of the float, as in Java.

    So 2147483647 as a float32, which is 2**31, is not too large for an int: it becomes the largest.
    """
    numbers, valid = split(value)
    low, high = _bounds(type_)
    top = float(numbers.dtype.type(high)) if type_.bit_width >= 32 else float(high)
    whole = np.trunc(numbers.astype(np.float64))
    bad = ~((whole >= low) & (whole <= top))
    usable = np.clip(np.where(bad, 0.0, whole), low, float(np.nextafter(2.0**63, 0)))
    integers = np.minimum(usable.astype(np.int64), high)
    integers = np.where(~bad & (whole > high), high, integers)
    if high == 2**63 - 1:
        integers = np.where(~bad & (whole >= 2.0**63), high, integers)
    if valid is not None:
        bad &= valid
    keep = ~bad if valid is None else ~bad & valid
    return join(integers.astype(type_.to_pandas_dtype()), keep, type_), pa.array(bad)


def _float_to_decimal(value: Any, type_: pa.DataType) -> Converted:
    """By the digits that the double prints as, rounded half up; NaN and infinities are NULL.

    Scaling in binary is exact enough for nearly all values; those in doubt go through their text.
    """
    numbers, valid = split(value.cast(pa.float64()))
    size = np.abs(numbers)
    usable = np.isfinite(numbers) if valid is None else np.isfinite(numbers) & valid
    bad = usable & (size >= 10.0 ** (type_.precision - type_.scale))
    tiny = size < 10.0 ** (-type_.scale - 1)
    with np.errstate(invalid="ignore"):
        clean = np.where(usable & ~bad & ~tiny, numbers, 0.0)
    scaled, doubtful = scale_half_up(clean, type_.scale)
    odd = np.flatnonzero(doubtful)
    scaled[odd] = 0.0
    bad |= usable & (np.abs(scaled) >= 10.0**type_.precision)
    result = from_unscaled(np.where(bad, 0.0, scaled).astype(np.int64), usable & ~bad, type_)
    if len(odd):
        exact, beyond = _by_digits(clean[odd], type_)
        result = pc.replace_with_mask(result, pa.array(doubtful), exact)
        bad[odd[beyond]] = True
    return none_where(pa.array(bad | ~usable), result), pa.array(bad)


def _by_digits(numbers: np.ndarray[Any, Any], type_: pa.DataType) -> tuple[Any, Any]:
    """Decimals of doubles through their text: slow and exact, for ties and many digits."""
    digits = pa.decimal256(WIDEST, type_.scale + 19)
    wide = pa.array(numbers, pa.float64()).cast(pa.string()).cast(digits)
    result, beyond = fit(wide, type_)
    none = np.zeros(len(numbers), bool)
    return result, none if beyond is None else beyond.to_numpy(zero_copy_only=False)


def _float_to_timestamp(value: Any, type_: pa.DataType) -> Converted:
    """Seconds with a fraction, cut at microseconds."""
    numbers, valid = split(value.cast(pa.float64()))
    with np.errstate(all="ignore"):
        scaled = join(numbers * 1e6, valid, pa.float64())
    micros, bad = _float_to_integer(scaled, pa.int64())
    return micros.view(type_), bad


def _decimal_to_integer(value: Any, type_: pa.DataType) -> Converted:
    whole = cut(value, 0)
    low, high = (pa.scalar(Decimal(bound), whole.type) for bound in _bounds(type_))
    bad = pc.or_(pc.less(whole, low), pc.greater(whole, high))
    return none_where(bad, whole).cast(type_), bad


def _decimal_to_float(value: Any, type_: pa.DataType) -> Any:
    """Rounded once: one division of two exact doubles, or through the text of long decimals."""
    numbers, valid = unscaled(value)
    if numbers is not None and value.type.scale <= 22 and np.all(np.abs(numbers) < 2**53):
        quotient = numbers / 10.0**value.type.scale
        return join(quotient.astype(type_.to_pandas_dtype()), valid, type_)
    return value.cast(pa.string()).cast(pa.float64()).cast(type_, safe=False)


def _decimal_to_string(value: Any, type_: pa.DataType) -> Any:
    text = value.cast(type_)
    if value.type.scale <= 6:
        return text
    odd = pc.match_substring(text, "E")
    if not pc.any(odd).as_py():
        return text
    plain = by_distinct(value, lambda v: None if v is None else format(v, "f"), type_)
    return pc.if_else(odd, plain, text)


def _decimal_to_timestamp(value: Any, type_: pa.DataType) -> Converted:
    million = pa.scalar(Decimal(SECOND_US), pa.decimal256(7, 0))
    wide = value.cast(pa.decimal256(value.type.precision, value.type.scale))
    result, bad = _decimal_to_integer(pc.multiply(wide, million), pa.int64())
    return result.view(type_), bad


def _boolean_to_decimal(value: Any, type_: pa.DataType) -> Converted:
    return fit(value.cast(pa.int8()).cast(pa.decimal128(3, 0)), type_)


def _timestamp_to_date(value: Any, type_: pa.DataType) -> Any:
    micros, valid = split(value)
    return join(np.floor_divide(micros, DAY_US).astype(np.int32), valid, type_)


def _date_to_timestamp(value: Any, type_: pa.DataType) -> Converted:
    days, valid = split(value)
    limit = (2**63 - 1) // DAY_US
    bad = np.abs(days.astype(np.int64)) > limit
    keep = ~bad if valid is None else ~bad & valid
    micros = np.where(bad, 0, days).astype(np.int64) * DAY_US
    return join(micros, keep, type_), pa.array(bad) if bad.any() else None


def _timestamp_to_integer(value: Any, type_: pa.DataType) -> Converted:
    micros, valid = split(value)
    seconds = join(np.floor_divide(micros, SECOND_US), valid, pa.int64())
    return _integer_to_integer(seconds, type_)


def _timestamp_to_float(value: Any, type_: pa.DataType) -> Any:
    micros, valid = split(value)
    return join((micros / 1e6).astype(type_.to_pandas_dtype()), valid, type_)


def _timestamp_to_decimal(value: Any, type_: pa.DataType) -> Converted:
    """Seconds with six digits of fraction, then rounded."""
    return fit(value.view(pa.int64()).cast(pa.decimal128(19, 0)).view(pa.decimal128(19, 6)), type_)


def _timestamp_to_string(value: Any, type_: pa.DataType) -> Any:
    text = era.texts(_written, naive(value))  # always with six digits of fraction
    return pc.ascii_rtrim(pc.ascii_rtrim(text, characters="0"), characters=".")


def _date_to_string(value: Any, type_: pa.DataType) -> Any:
    return era.texts(_written, value)


def _written(value: Any) -> Any:
    return value.cast(pa.string())


CONVERTERS: dict[tuple[str, str], Converter] = {
    ("integer", "integer"): _integer_to_integer,
    ("integer", "float"): _simply(_unsafe),
    ("integer", "decimal"): _integer_to_decimal,
    ("integer", "boolean"): _simply(_to_boolean),
    ("integer", "string"): _simply(_unsafe),
    ("integer", "timestamp"): _simply(_integer_to_timestamp),
    ("float", "integer"): _float_to_integer,
    ("float", "float"): _simply(_unsafe),
    ("float", "decimal"): _float_to_decimal,
    ("float", "boolean"): _simply(_to_boolean),
    ("float", "timestamp"): _float_to_timestamp,
    ("decimal", "integer"): _decimal_to_integer,
    ("decimal", "float"): _simply(_decimal_to_float),
    ("decimal", "decimal"): fit,
    ("decimal", "boolean"): _simply(_to_boolean),
    ("decimal", "string"): _simply(_decimal_to_string),
    ("decimal", "timestamp"): _decimal_to_timestamp,
    ("boolean", "integer"): _simply(_unsafe),
    ("boolean", "float"): _simply(_unsafe),
    ("boolean", "decimal"): _boolean_to_decimal,
    ("boolean", "string"): _simply(_unsafe),
    ("timestamp", "timestamp"): _simply(_unsafe),
    ("timestamp", "date"): _simply(_timestamp_to_date),
    ("timestamp", "integer"): _timestamp_to_integer,
    ("timestamp", "float"): _simply(_timestamp_to_float),
    ("timestamp", "decimal"): _timestamp_to_decimal,
    ("timestamp", "string"): _simply(_timestamp_to_string),
    ("date", "timestamp"): _date_to_timestamp,
    ("date", "string"): _simply(_date_to_string),
    ("string", "binary"): _simply(_unsafe),
    **{("string", name): reader for name, reader in READERS.items()},
}
"""By the kinds of both sides: one for each pair in `expression.kind.CONVERSIONS`."""

OPS: dict[str, Callable[..., Any]] = {"cast": cast, "try_cast": try_cast}
