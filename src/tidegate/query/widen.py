"""The common type of columns that meet in a union, by Spark's ANSI rules."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import pyarrow as pa

from tidegate.errors import QueryError
from tidegate.schema import TIME, type_name

_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
_MAX_PRECISION = 38


def wider(types: Sequence[pa.DataType], where: str) -> pa.DataType:
    """The narrowest type that holds all of these; text and numbers have none in common."""

    def both(left: pa.DataType, right: pa.DataType) -> pa.DataType:
        common = wider_of(left, right)
        if common is None:
            raise QueryError(
                where,
                "the types have nothing in common",
                f"{type_name(left)} and {type_name(right)}",
                "CAST one of them.",
            )
        return common

    return reduce(both, types)


def wider_of(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The common type of two, or None."""
    if left == right or pa.types.is_null(right):
        return left
    if pa.types.is_null(left):
        return right
    times = (left, right)
    if all(pa.types.is_date(t) or pa.types.is_timestamp(t) for t in times):
        return TIME
    if not all(_is_number(t) for t in times):
        return None
    if any(pa.types.is_floating(t) for t in times):
        return pa.float64()
    if any(pa.types.is_decimal(t) for t in times):
        return _wider_decimal(_as_decimal(left), _as_decimal(right))
    return left if left.bit_width > right.bit_width else right


def _is_number(type_: pa.DataType) -> bool:
    return type_ in _DIGITS or pa.types.is_floating(type_) or pa.types.is_decimal(type_)


def _as_decimal(type_: pa.DataType) -> pa.DataType:
    return type_ if pa.types.is_decimal(type_) else pa.decimal128(_DIGITS[type_], 0)


def _wider_decimal(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    scale = max(left.scale, right.scale)
    whole = max(left.precision - left.scale, right.precision - right.scale)
    scale = min(scale, max(0, _MAX_PRECISION - whole)) if whole + scale > _MAX_PRECISION else scale
    return pa.decimal128(min(_MAX_PRECISION, whole + scale), scale)
