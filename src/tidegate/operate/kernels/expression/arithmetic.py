"""Arithmetic with ANSI failures (overflow, division by zero), over aligned Arrow arrays.

Kernels take the result type and the arguments, arrays of one length or scalars.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.operate.kernels.expression import decimal
from tidegate.operate.kernels.expression.failure import ZERO, ZERO_REMEDY, checked, reject
from tidegate.operate.kernels.expression.vector import both, join, split_all

Kernel = Callable[..., Any]


def _by_type(floats: Kernel, exact: Kernel, decimals: Kernel) -> Kernel:
    def kernel(type_: pa.DataType, left: Any, right: Any) -> Any:
        if pa.types.is_floating(type_):
            return floats(left, right)
        if pa.types.is_decimal(type_):
            return decimals(type_, left, right)
        return checked(exact, left, right)

    return kernel


def divide(type_: pa.DataType, left: Any, right: Any) -> Any:
    """`/` of doubles or decimals; NULL divided by zero is NULL."""
    if pa.types.is_decimal(type_):
        return decimal.divide(type_, left, right)
    _reject_zero(left, right)
    return pc.divide(left, right)


def int_divide(type_: pa.DataType, left: Any, right: Any) -> Any:
    """`DIV`: the quotient cut towards zero, as int64."""
    if pa.types.is_decimal(left.type):
        whole = decimal.whole_quotient(left, right)
        return checked(lambda value, *_: value.cast(type_), whole)
    _reject_zero(left, right)
    return checked(pc.divide_checked, left, right)


def remainder(type_: pa.DataType, left: Any, right: Any) -> Any:
    """`%`: the result has the sign of the dividend; IEEE for floats."""
    if pa.types.is_decimal(type_):
        return decimal.remainder(type_, left, right)
    _reject_zero(left, right)
    (dividend, divisor), valid = split_all(*both(left, right))
    with np.errstate(all="ignore"):
        if pa.types.is_integer(type_):
            # The least integer over -1 overflows, and a zero is left only beside a NULL dividend.
            # Modulo 1 gives the 0 that modulo -1 should.
            divisor = np.where((divisor == 0) | (divisor == -1), 1, divisor)
        values = np.fmod(dividend, divisor)
    return join(values.astype(type_.to_pandas_dtype()), valid, type_)


def positive_remainder(type_: pa.DataType, left: Any, right: Any) -> Any:
    """`pmod` of integers: the remainder made non-negative for positive divisors.

    A negative remainder becomes `(first + right) % right`. The sum cannot overflow for a positive
    divisor; with a negative one it wraps around as in Java, which adds in 32 bits at least.
    """
    wide = type_ if type_.bit_width >= 32 else pa.int32()
    left, right = left.cast(wide), right.cast(wide)
    first = remainder(wide, left, right)
    shifted = remainder(wide, pc.add(first, right), right)
    return pc.if_else(pc.less(first, pa.scalar(0, wide)), shifted, first).cast(type_)


def _reject_zero(left: Any, right: Any) -> None:
    left, right = both(left, right)
    bad = pc.and_(pc.equal(right, pa.scalar(0, right.type)), left.is_valid())
    reject(bad, (left, right), ZERO, ZERO_REMEDY)


def _one(exact: Kernel, decimals: Kernel) -> Kernel:
    """A kernel of one argument: the negative or the absolute value."""

    def kernel(type_: pa.DataType, value: Any) -> Any:
        if pa.types.is_decimal(type_):
            return decimals(value)
        if pa.types.is_duration(type_):
            return checked(exact, value.view(pa.int64())).view(type_)
        return checked(exact, value)

    return kernel


def _shift(shift: Any) -> Kernel:
    """Java's shifts: the count is taken modulo the width."""

    def kernel(type_: pa.DataType, value: Any, count: Any) -> Any:
        (values, counts), valid = split_all(*both(value, count))
        few = (counts & (type_.bit_width - 1)).astype(values.dtype)
        return join(shift(values, few), valid, type_)

    return kernel


def _two(kernel: Kernel) -> Kernel:
    return lambda _, left, right: kernel(left, right)


OPS: dict[str, Kernel] = {
    "add": _by_type(pc.add, pc.add_checked, decimal.add),
    "subtract": _by_type(pc.subtract, pc.subtract_checked, decimal.subtract),
    "multiply": _by_type(pc.multiply, pc.multiply_checked, decimal.multiply),
    "divide": divide,
    "int_divide": int_divide,
    "remainder": remainder,
    "positive_remainder": positive_remainder,
    "negate": _one(pc.negate_checked, decimal.negate),
    "abs": _one(pc.abs_checked, decimal.absolute),
    "bit_and": _two(pc.bit_wise_and),
    "bit_or": _two(pc.bit_wise_or),
    "bit_xor": _two(pc.bit_wise_xor),
    "bit_not": lambda _, value: pc.bit_wise_not(value),
    "shift_left": _shift(np.left_shift),
    "shift_right": _shift(np.right_shift),
}
