"""Precision and scale of decimal results by Spark's rules.

A result is computed exactly and rounded once. `work_digits` is the number of digits that takes. If
it exceeds Arrow's widest decimal, there is no kernel.
"""

from __future__ import annotations

import pyarrow as pa

MOST_DIGITS = 38
"""The most digits of a column."""

WIDEST = 76
"""The digits of Arrow's widest decimal, in which results are computed before rounding."""

_INTEGER_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}


def bounded(precision: int, scale: int) -> pa.DataType:
    """A decimal type cut to MOST_DIGITS; the digits after the point are kept."""
    return pa.decimal128(min(precision, MOST_DIGITS), min(scale, MOST_DIGITS))


def adjusted(precision: int, scale: int) -> pa.DataType:
    """A decimal type for a result. Too many digits cost places after the point, never before it."""
    if precision <= MOST_DIGITS:
        return pa.decimal128(precision, scale)
    kept = max(MOST_DIGITS - (precision - scale), min(scale, 6))
    return pa.decimal128(MOST_DIGITS, kept)


def decimal_of(type_: pa.DataType) -> pa.DataType:
    """The decimal type for every value of an integer type; a decimal type stays as it is."""
    return type_ if pa.types.is_decimal(type_) else pa.decimal128(_INTEGER_DIGITS[type_], 0)


def decimal_of_literal(value: int) -> pa.DataType:
    """The decimal type of an integer literal."""
    return pa.decimal128(len(str(abs(value))), 0)


def wider_decimal(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The common decimal type of two decimal types."""
    scale = max(left.scale, right.scale)
    whole = max(left.precision - left.scale, right.precision - right.scale)
    return bounded(whole + scale, scale)


def result_of(op: str, a: pa.DataType, b: pa.DataType) -> pa.DataType:
    """The type of the sum, difference, product, quotient or remainder of two decimals."""
    whole_a, whole_b = a.precision - a.scale, b.precision - b.scale
    if op in ("add", "subtract"):
        scale = max(a.scale, b.scale)
        return adjusted(max(whole_a, whole_b) + scale + 1, scale)
    if op == "multiply":
        return adjusted(a.precision + b.precision + 1, a.scale + b.scale)
    if op == "divide":
        scale = max(6, a.scale + b.precision + 1)
        return adjusted(whole_a + b.scale + scale, scale)
    scale = max(a.scale, b.scale)
    return adjusted(min(whole_a, whole_b) + scale, scale)


def work_digits(op: str, a: pa.DataType, b: pa.DataType, type_: pa.DataType) -> int:
    """The digits that Arrow needs for the result before the kernels of decimals round it."""
    if op in ("add", "subtract"):
        return 0
    if op == "multiply":
        return int(a.precision + b.precision + 1)
    wanted = type_.scale + 1 if op == "divide" else 0
    scale = max(wanted, 4, digits_of_quotient(a, b))
    quotient = a.precision - a.scale + b.scale + scale
    if op == "divide":
        return int(quotient)
    return int(max(quotient, a.precision - a.scale + b.scale + b.precision + 3))


def digits_of_quotient(left: pa.DataType, right: pa.DataType) -> int:
    """The scale that Arrow gives a quotient, if at least 4; digits on the left add to it."""
    return int(left.scale + right.precision - right.scale + 1)
