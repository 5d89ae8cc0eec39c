"""Exact sums of integers and decimals per group.

An exact total is a list of limbs, least first: base 2**32 digits as int64 columns of one number
per group, all in [0, 2**32) but the last, which carries the sign. Two limbs hold a sum of
integers, four a sum of decimals; neither can overflow below 2**31 rows a group, and the digits
do not depend on the order of addition.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tidegate.errors import TaskError
from tidegate.operate.kernels.group import Groups
from tidegate.operate.kernels.order import Floats, Ints, Mask, integers
from tidegate.schema import type_name

_DIGIT = np.int64(2**32 - 1)
_EXACT = 2**53


def sum_integers(groups: Groups, values: Ints) -> Ints:
    """Exact int64 sums per group, modulo 2**64.

    `bincount` adds doubles, which are exact up to 2**53: so it gets only as many values at a time
    as cannot exceed that, and large values in two halves.
    """
    if len(values) == 0:
        return np.zeros(groups.n, np.int64)
    largest = max(abs(int(values.min())), abs(int(values.max())), 1)
    if largest > 2**33:
        low = sum_integers(groups, values & _DIGIT)
        return (sum_integers(groups, values >> 32) << 32) + low
    step = _EXACT // largest
    total = np.zeros(groups.n, np.int64)
    for start in range(0, len(values), step):
        part = slice(start, start + step)
        sums = np.bincount(groups.codes[part], weights=values[part], minlength=groups.n)
        total += sums.astype(np.int64)
    return total


def slide_integers(values: Ints, first: Ints, last: Ints) -> Ints:
    """The sums of the values in [first, last), one per window, modulo 2**64.

    A running total may wrap around; the difference of two is right all the same.
    """
    sums = np.append(0, np.cumsum(values))
    made: Ints = sums[last] - sums[first]
    return made


def add_limbs(groups: Groups, limbs: list[Ints]) -> list[Ints]:
    """The sums of limbs per group, with carries made."""
    return carry([sum_integers(groups, limb) for limb in limbs])


def sum_exact(groups: Groups, column: pa.Array) -> list[Ints]:
    """The exact totals of an integer or decimal column without NULL, as limbs."""
    if pa.types.is_integer(column.type) and column.type != pa.uint64() and len(column):
        values = integers(column)
        largest = max(abs(int(values.min())), abs(int(values.max())))
        if largest * len(values) < 2**63:
            total = sum_integers(groups, values)
            return [total & _DIGIT, total >> 32]
    return add_limbs(groups, limbs_of(column))


def carry(limbs: list[Ints]) -> list[Ints]:
    """The same number with every limb but the last in [0, 2**32); returns new arrays."""
    result = [limb.copy() for limb in limbs]
    for i in range(len(result) - 1):
        result[i + 1] += result[i] >> 32
        result[i] &= _DIGIT
    return result


def limbs_of(column: pa.Array) -> list[Ints]:
    """The limbs of an integer or decimal column without NULL: two or four."""
    if pa.types.is_integer(column.type):
        if column.type == pa.uint64():
            wide = column.to_numpy()
            return [(wide & np.uint64(_DIGIT)).astype(np.int64), (wide >> 32).astype(np.int64)]
        values = integers(column)
        return [values & _DIGIT, values >> 32]
    wide_type = pa.decimal128(38, column.type.scale)
    column = column if pa.types.is_decimal128(column.type) else column.cast(wide_type)
    words = np.frombuffer(column.buffers()[1] or b"", np.uint32)
    words = words.reshape(-1, 4)[column.offset : column.offset + len(column)]
    limbs = [words[:, i].astype(np.int64) for i in range(3)]
    return [*limbs, words[:, 3].astype(np.int32).astype(np.int64)]


def limb_floats(limbs: list[Ints]) -> Floats:
    """Two limbs as the doubles nearest to the exact totals; the one addition rounds once."""
    low, high = limbs
    return high.astype(np.float64) * 2.0**32 + low.astype(np.float64)


def limb_integers(limbs: list[Ints], where: str) -> Ints:
    """Two limbs as int64; TaskError when a total does not fit, as in Spark's ANSI mode."""
    low, high = limbs
    wrong = np.flatnonzero((high < -(2**31)) | (high >= 2**31))
    if len(wrong):
        total = (int(high[wrong[0]]) << 32) + int(low[wrong[0]])
        raise TaskError(
            where,
            "the total of a group must fit in a bigint",
            str(total),
            "Cast the argument to double or to decimal(38, 0).",
        )
    return (high << 32) + low


def limb_decimals(limbs: list[Ints], type_: pa.DataType, has: Mask, where: str) -> pa.Array:
    """Four limbs as a decimal column, NULL where not `has`; TaskError when one is too large."""
    words = np.stack([limb.astype(np.uint32) for limb in limbs], axis=1)
    column = pa.Array.from_buffers(type_, len(has), [None, pa.py_buffer(words.tobytes())])
    try:
        if ((limbs[3] < -(2**31)) | (limbs[3] >= 2**31)).any():
            raise pa.ArrowInvalid("more than 128 bits")
        column.validate(full=True)
    except pa.ArrowInvalid as error:
        raise TaskError(
            where,
            f"the result of a group must fit in {type_name(type_)}",
            "a larger number",
            "Cast the argument to double.",
        ) from error
    return column if has.all() else column.take(pa.array(np.arange(len(has)), mask=~has))


def divide_limbs(limbs: list[Ints], counts: Ints, digits: int) -> list[Ints]:
    """total * 10**digits / count as four limbs, rounded half away from zero; digits at most 4.

    Long division in base 2**16, exact for counts below 2**46; a count of 0 gives 0. A quotient
    beyond 128 bits becomes one that `limb_decimals` refuses.
    """
    zero = np.zeros(len(counts), np.int64)
    negative = limbs[-1] < 0
    size = carry([np.where(negative, -limb, limb) for limb in limbs] + [zero, zero])
    size = carry([limb * (2 * 10**digits) for limb in size])
    # Twice the total plus the count, over twice the count, cut: that rounds half up. It is done
    # with the size, so halves go away from zero.
    size[0] += counts
    quotient: list[Ints] = []
    divisor, rest = np.maximum(2 * counts, 1), zero
    for limb in reversed(carry(size)):
        digit = zero
        for half in (limb >> 16, limb & 0xFFFF):
            step, rest = np.divmod((rest << 16) | half, divisor)
            digit = (digit << 16) | step
        quotient.append(digit)
    # A digit of 2**40 is no digit: `limb_decimals` refuses such a number by its last limb.
    beyond = (quotient[0] | quotient[1]) != 0
    kept = [*reversed(quotient[3:]), np.where(beyond, np.int64(2**40), quotient[2])]
    return carry([np.where(negative, -digit, digit) for digit in kept])
