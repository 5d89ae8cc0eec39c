"""Fields, truncation and shifts of dates and timestamps in UTC, over Arrow arrays."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.calendar import era
from tidegate.calendar.microsecond import DAY_US, SECOND_US, UNITS_US
from tidegate.operate.kernels.expression.decimal import cut
from tidegate.operate.kernels.expression.failure import OVERFLOW, TIME_REMEDY, checked, reject
from tidegate.operate.kernels.expression.vector import join, split
from tidegate.schema import TIME

_MONDAY_US = 4 * DAY_US
"""The first Monday after the epoch, which was a Thursday."""

_TOP_S, _TOP_REST = divmod(2**63 - 1, SECOND_US)
_BOTTOM_S, _BOTTOM_REST = divmod(-(2**63), SECOND_US)
"""The last and the first timestamp as seconds and microseconds."""


def naive(value: Any) -> Any:
    """A timestamp without its zone, so that Arrow needs no zone database; dates as they are."""
    return value.view(pa.timestamp("us")) if pa.types.is_timestamp(value.type) else value


def _field(function: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda type_, value: era.in_era(function, naive(value)).cast(type_)


def year(type_: pa.DataType, value: Any) -> Any:
    return era.year(naive(value)).cast(type_)


def second_fraction(type_: pa.DataType, value: Any) -> Any:
    """EXTRACT(SECOND ...): seconds with six digits, as a decimal."""
    micros, valid = split(value)
    inside = join(np.mod(micros, UNITS_US["minute"]).astype(np.int32), valid, pa.int32())
    millionth = pa.scalar(Decimal("0.000001"), pa.decimal128(6, 6))
    return pc.multiply(inside.cast(pa.decimal128(10, 0)), millionth).cast(type_)


def date_trunc(type_: pa.DataType, value: Any, unit: Any) -> Any:
    """The start of the unit that a timestamp lies in; weeks start on Monday."""
    name = unit.as_py()
    micros, valid = split(value)
    if name in UNITS_US:
        size = UNITS_US[name]
        past = np.mod(micros, size)
        if name == "week":
            past = np.mod(past - _MONDAY_US, size)
        start = micros - past
    else:
        moved, eras = era.near(naive(value))
        floor = pc.floor_temporal(moved, unit=name).cast(pa.timestamp("us"))
        start = split(floor)[0] + eras * era.era_length(TIME)
    reject(pa.array(start > micros), (value,), OVERFLOW, TIME_REMEDY)  # it has wrapped around
    return join(start, valid, type_)


def trunc_date(type_: pa.DataType, value: Any, unit: Any) -> Any:
    """`date_trunc` for dates: week, month, quarter or year."""
    moved, eras = era.near(value)
    starts = date_trunc(TIME, moved.cast(pa.timestamp("us")).view(TIME), unit)
    days, valid = split(starts.view(pa.timestamp("us")).cast(type_))
    start = days + eras * era.era_length(type_)
    reject(pa.array(start > split(value)[0]), (value,), OVERFLOW, TIME_REMEDY)
    return join(start, valid, type_)


def unix_time(size: int) -> Callable[..., Any]:
    def kernel(type_: pa.DataType, value: Any) -> Any:
        micros, valid = split(value)
        return join(micros if size == 1 else np.floor_divide(micros, size), valid, type_)

    return kernel


def from_unix(size: int) -> Callable[..., Any]:
    """timestamp_micros, timestamp_millis and timestamp_seconds of integers."""

    def kernel(type_: pa.DataType, value: Any) -> Any:
        wide = value.cast(pa.int64())
        return checked(pc.multiply_checked, wide, pa.scalar(size, pa.int64())).view(type_)

    return kernel


def float_seconds_to_time(type_: pa.DataType, value: Any) -> Any:
    """timestamp_seconds of floats, cut at microseconds.

    NULL where they are not finite, the nearest end of 64 bits where they are too large, as in Java.
    """
    numbers, valid = split(value.cast(pa.float64()))
    finite = np.isfinite(numbers)
    with np.errstate(over="ignore"):
        micros = np.where(finite, numbers, 0.0) * SECOND_US
    inside = np.abs(micros) < 2.0**63
    whole = np.where(inside, micros, 0.0).astype(np.int64)
    ends = np.where(micros > 0, 2**63 - 1, -(2**63))
    keep = finite if valid is None else finite & valid
    return join(np.where(inside, whole, ends), keep, type_)


def decimal_seconds_to_time(type_: pa.DataType, value: Any) -> Any:
    """timestamp_seconds of decimals, which must have at most six digits of fraction."""
    wide = value.cast(pa.decimal256(value.type.precision, value.type.scale))
    exact = pc.multiply(wide, pa.scalar(Decimal(SECOND_US), pa.decimal256(7, 0)))
    micros = cut(exact, 0)
    remedy = "Round it to six digits first."
    fraction = pc.not_equal(micros.cast(exact.type), exact)
    reject(fraction, (value,), "seconds must not have more than six digits of fraction", remedy)
    low, high = (pa.scalar(Decimal(end), micros.type) for end in (-(2**63), 2**63 - 1))
    beyond = pc.or_(pc.less(micros, low), pc.greater(micros, high))
    reject(beyond, (value,), OVERFLOW, TIME_REMEDY)
    return micros.cast(pa.int64()).view(type_)


def add_months(type_: pa.DataType, value: Any, months: Any) -> Any:
    """The same day of a later month, or its last when it is shorter; the time of day stays."""
    if not months.is_valid:
        return pa.nulls(len(value), type_)
    raw, valid = split(value)
    is_date = pa.types.is_date(value.type)
    numbers = raw.astype(np.int64)
    day = numbers if is_date else np.floor_divide(numbers, DAY_US)
    dates = day.astype("datetime64[D]")
    month = dates.astype("datetime64[M]")
    in_month = (dates - month.astype("datetime64[D]")).astype(np.int64)
    target = month + np.timedelta64(months.as_py(), "M")
    first = target.astype("datetime64[D]")
    last = ((target + np.timedelta64(1, "M")).astype("datetime64[D]") - first).astype(np.int64) - 1
    moved = first.astype(np.int64) + np.minimum(in_month, last)
    if is_date:
        reject(pa.array(moved != moved.astype(np.int32)), (value,), OVERFLOW, TIME_REMEDY)
        return join(moved.astype(np.int32), valid, type_)
    # In seconds nothing overflows; back in microseconds only the ends of 64 bits need a look.
    seconds, rest = np.divmod(numbers, SECOND_US)
    seconds = seconds + (moved - day) * (DAY_US // SECOND_US)
    bad = (seconds > _TOP_S) | ((seconds == _TOP_S) & (rest > _TOP_REST))
    bad |= (seconds < _BOTTOM_S) | ((seconds == _BOTTOM_S) & (rest < _BOTTOM_REST))
    reject(pa.array(bad), (value,), OVERFLOW, TIME_REMEDY)
    result = seconds * SECOND_US + rest
    return join(result, valid, type_)


def add_days(type_: pa.DataType, value: Any, days: Any) -> Any:
    """A date some days later; `days` are int32. Wraps around beyond the range, as Spark does."""
    return pc.add(_days(value), days).view(type_)


def date_diff(_: pa.DataType, end: Any, start: Any) -> Any:
    return pc.subtract(_days(end), _days(start))


def _days(value: Any) -> Any:
    return value.cast(pa.int32()) if isinstance(value, pa.Scalar) else value.view(pa.int32())


OPS: dict[str, Callable[..., Any]] = {
    "year": year,
    "quarter": _field(pc.quarter),
    "month": _field(pc.month),
    "week": _field(pc.iso_week),
    "day": _field(pc.day),
    "day_of_year": _field(pc.day_of_year),
    "day_of_week": _field(lambda x: pc.day_of_week(x, count_from_zero=False, week_start=7)),
    "weekday": _field(pc.day_of_week),
    "hour": _field(pc.hour),
    "minute": _field(pc.minute),
    "second": _field(pc.second),
    "second_fraction": second_fraction,
    "date_trunc": date_trunc,
    "trunc_date": trunc_date,
    "unix_micros": unix_time(1),
    "unix_millis": unix_time(1_000),
    "unix_seconds": unix_time(SECOND_US),
    "timestamp_micros": from_unix(1),
    "timestamp_millis": from_unix(1_000),
    "timestamp_seconds": from_unix(SECOND_US),
    "timestamp_seconds_float": float_seconds_to_time,
    "timestamp_seconds_decimal": decimal_seconds_to_time,
    "add_months": add_months,
    "add_days": add_days,
    "date_diff": date_diff,
}
