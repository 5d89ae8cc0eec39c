"""The compiled loops of second moments: from kept sums per group to doubles.

A long number is a sign and a size here. The size is an array of base 2**32 digits in int64, least
first; digit i counts 2**(32 * (base + i)). Everything is exact until one rounding to the nearest
double, half to even. A correlation rounds three such numbers, and then computes in doubles.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import ldexp, sqrt
from typing import Any

import numpy as np
from numba import types

from tidegate.machine_code import compiled, given, made, part

_DIGIT = 2**32 - 1
_INFINITE = 0x7FF << 52
_NOT_A_NUMBER = 0x7FF8 << 48
_ROOM = 320
"""Digits of the widest number: n * sum(a * b) and sum(a) * sum(b) have fewer."""

_QUOTIENT_DIGITS = 5
"""The leading digits of a numerator that are divided. They have more than 128 bits, so the quotient
by two divisors of 32 bits keeps the 64 bits that rounding looks at."""


@part
def _resized(limbs: Any, count: Any) -> Any:
    """Turn signed limbs into the digits of a size, in place; returns the sign and the count."""
    carry = np.int64(0)
    for i in range(count):
        limb = limbs[i] + carry
        carry = limb >> 32
        limbs[i] = limb & _DIGIT
    sign = np.int64(1)
    if carry < 0:
        sign = np.int64(-1)
        borrow = np.int64(1)
        for i in range(count):
            digit = (limbs[i] ^ _DIGIT) + borrow
            borrow = digit >> 32
            limbs[i] = digit & _DIGIT
    while count > 0 and limbs[count - 1] == 0:
        count -= 1
    return sign, count


@part
def _unpacked(begin: Any, end: Any, words: Any, digits: Any) -> Any:
    """Write the digits of a kept sum to `digits`; returns sign, count, base and flags."""
    if begin == end:
        return np.int64(1), np.int64(0), np.int64(0), np.int64(0)
    head = np.int64(words[begin >> 2])
    count = ((end - begin) >> 2) - 1
    for i in range(count):
        word = np.int64(words[(begin >> 2) + 1 + i])
        digits[i] = word if i == count - 1 else word & _DIGIT
    sign, count = _resized(digits, count)
    return sign, count, head >> 3, head & 7


@part
def _top(digits: Any, count: Any) -> Any:
    """The top 64 bits of a number that is not zero, shifted so that the first bit is set.

    Also `place` and `more`: the size is top * 2**(32 * base + place), plus less than one unit of
    that, which is not zero where `more` is true.
    """
    d0 = digits[count - 1]
    d1 = digits[count - 2] if count > 1 else np.int64(0)
    d2 = digits[count - 3] if count > 2 else np.int64(0)
    zeros = np.int64(0)
    for bits in (16, 8, 4, 2, 1):
        if (d0 << zeros) >> (32 - bits) == 0:
            zeros += bits
    up = np.uint64(zeros)
    top = (np.uint64(d0) << np.uint64(32)) | np.uint64(d1)
    top = (top << up) | (np.uint64(d2) >> np.uint64(32 - zeros))
    more = (d2 << zeros) & _DIGIT != 0
    for i in range(count - 3):
        more |= digits[i] != 0
    return top, 32 * (count - 2) - zeros, more


@part
def _double(top: Any, place: Any, more: Any) -> Any:
    """The bits of the double nearest to `top * 2**place`, half to even.

    `more` says that the number is a little larger: then an apparent half rounds up.
    """
    field = place + 63 + 1023
    if field >= 0x7FF:
        return np.int64(_INFINITE)
    # A double has 53 bits of the 64; a subnormal one has fewer, the smaller it is.
    drop = 11 if field >= 1 else 12 - field
    if drop > 64:
        return np.int64(0)
    half = np.uint64(1) << np.uint64(drop - 1)
    rest = top & (half | (half - np.uint64(1)))
    kept = np.int64(top >> np.uint64(drop)) if drop < 64 else np.int64(0)
    if rest > half or (rest == half and (more or kept & 1)):
        kept += 1
    # A carry out of the mantissa goes into the exponent field, which is just what rounding up to
    # the next power of two, or to infinity, has to do.
    return kept if field < 1 else ((field - 1) << 52) + kept


@part
def _signed(bits: Any, sign: Any) -> Any:
    return bits | (np.int64(-1) << 63) if sign < 0 and bits != 0 else bits


@part
def _centred(a: Any, b: Any, ab: Any, n: Any, limbs: Any) -> Any:
    """Write the digits of n * sum(a * b) - sum(a) * sum(b) to `limbs`: sign, count and base.

    `a`, `b` and `ab` are what `_read` returned. Products of two 32-bit digits are added in halves,
    so that a limb of int64 has room for all of them before carries are made.
    """
    a_sign, a_count, a_base, a_digits, _ = a
    b_sign, b_count, b_base, b_digits, _ = b
    ab_sign, ab_count, ab_base, ab_digits, _ = ab
    base = a_base + b_base
    if ab_count > 0:
        base = min(base, ab_base) if a_count > 0 and b_count > 0 else ab_base
    size = max(a_base + b_base - base + a_count + b_count, ab_base - base + ab_count + 2) + 2
    for i in range(size):
        limbs[i] = 0
    mask, half = np.uint64(_DIGIT), np.uint64(32)
    minus = -a_sign * b_sign
    for i in range(a_count):
        for j in range(b_count):
            product = np.uint64(a_digits[i]) * np.uint64(b_digits[j])
            at = a_base + b_base - base + i + j
            limbs[at] += minus * np.int64(product & mask)
            limbs[at + 1] += minus * np.int64(product >> half)
    for j in range(2):
        factor = np.uint64(n >> (32 * j)) & mask
        if factor != 0:
            for i in range(ab_count):
                product = np.uint64(ab_digits[i]) * factor
                at = ab_base - base + i + j
                limbs[at] += ab_sign * np.int64(product & mask)
                limbs[at + 1] += ab_sign * np.int64(product >> half)
    sign, count = _resized(limbs, size)
    return sign, count, base


@part
def _quotient(digits: Any, count: Any, base: Any, one: Any, two: Any, work: Any) -> Any:
    """The bits of the double nearest to the number / (one * two), for divisors below 2**32.

    floor(floor(x / one) / two) is floor(x / (one * two)), so two short divisions are enough. Their
    remainders, and the digits that are not divided, only decide whether `more` is left: on which
    side of a half the quotient is.
    """
    if count == 0:
        return np.int64(0)
    more = False
    for i in range(_QUOTIENT_DIGITS):
        at = count - _QUOTIENT_DIGITS + i
        work[i] = digits[at] if at >= 0 else np.int64(0)
    for i in range(count - _QUOTIENT_DIGITS):
        more |= digits[i] != 0
    for divisor in (np.uint64(one), np.uint64(two)):
        rest = np.uint64(0)
        for i in range(_QUOTIENT_DIGITS - 1, -1, -1):
            rest = (rest << np.uint64(32)) | np.uint64(work[i])
            work[i] = np.int64(rest // divisor)
            rest = rest % divisor
        more |= rest != 0
    length = np.int64(_QUOTIENT_DIGITS)
    while work[length - 1] == 0:
        length -= 1
    top, place, beyond = _top(work, length)
    return _double(top, place + 32 * (base + count - _QUOTIENT_DIGITS), more or beyond)


@part
def _read(offsets: Any, words: Any, r: Any, digits: Any) -> Any:
    """The number in row r of a column: sign, count, base, digits (written to `digits`), flags."""
    sign, count, base, flags = _unpacked(offsets[r], offsets[r + 1], words, digits)
    return sign, count, base, digits, flags


def _covariances(
    counts: Any, less: Any, x: Any, x_words: Any, y: Any, y_words: Any, xy: Any, xy_words: Any
) -> Any:
    """The bits of (n * sum(xy) - sum(x) * sum(y)) / (n * (n - less)) per group; 0 where n <= less.

    NaN where a number was not finite. `x`, `y` and `xy` are the offsets (bytes, one more than
    groups) of columns of kept sums, each followed by its words.
    """
    results, rows = np.zeros(len(counts), np.int64), np.zeros((5, _ROOM), np.int64)
    for r in range(len(counts)):
        n = counts[r]
        if n <= less:
            continue
        a, b = _read(x, x_words, r, rows[0]), _read(y, y_words, r, rows[1])
        if a[4] | b[4]:
            results[r] = _NOT_A_NUMBER
            continue
        sign, count, base = _centred(a, b, _read(xy, xy_words, r, rows[2]), n, rows[3])
        results[r] = _signed(_quotient(rows[3], count, base, n, n - less, rows[4]), sign)
    return results


@part
def _spread(a: Any, b: Any, ab: Any, n: Any, limbs: Any) -> Any:
    """n * sum(a * b) - sum(a) * sum(b) as a double and a power of two, so that none overflows."""
    sign, count, base = _centred(a, b, ab, n, limbs)
    if count == 0:
        return 0.0, np.int64(0)
    top, place, more = _top(limbs, count)
    return sign * float(top | np.uint64(more)), place + 32 * base


def _correlations(
    counts: Any,
    x: Any,
    x_words: Any,
    y: Any,
    y_words: Any,
    xy: Any,
    xy_words: Any,
    xx: Any,
    xx_words: Any,
    yy: Any,
    yy_words: Any,
) -> Any:
    """Pearson's correlations per group; infinite stands for none, where a column does not vary."""
    results, rows = np.full(len(counts), np.inf), np.zeros((4, _ROOM), np.int64)
    for r in range(len(counts)):
        n = counts[r]
        a, b = _read(x, x_words, r, rows[0]), _read(y, y_words, r, rows[1])
        if a[4] | b[4]:
            results[r] = np.nan
            continue
        both, e = _spread(a, b, _read(xy, xy_words, r, rows[2]), n, rows[3])
        one, f = _spread(a, a, _read(xx, xx_words, r, rows[2]), n, rows[3])
        two, g = _spread(b, b, _read(yy, yy_words, r, rows[2]), n, rows[3])
        if one > 0 and two > 0:
            # The root of a power of two is exact for an even exponent only.
            if (f + g) & 1:
                one, f = one * 2.0, f - 1
            found = ldexp(both / sqrt(one * two), e - ((f + g) >> 1))
            results[r] = min(max(found, -1.0), 1.0)
    return results


_COLUMN = (given(types.int64), given(types.int32))
_COUNTS = given(types.int64)
_BITS = made(types.int64)
_LOOPS: dict[str, tuple[Callable[..., Any], Any]] = {
    "covariances": (_covariances, _BITS(_COUNTS, types.int64, *_COLUMN * 3)),
    "correlations": (_correlations, made(types.float64)(_COUNTS, *_COLUMN * 5)),
}


@cache
def loop(name: str) -> Callable[..., Any]:
    """A loop by its name; compiled, or read from disk, when first asked for."""
    function, signature = _LOOPS[name]
    return compiled(signature, function)
