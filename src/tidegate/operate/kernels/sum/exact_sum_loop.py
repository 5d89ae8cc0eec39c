"""The compiled loops that add doubles, and kept sums, exactly.

A sum is first a row of **limbs**: int64 numbers, of which limb i counts 2**(32 * (low + i)). `low`
is the same for all groups of a call. A double adds less than 2**33 to three limbs, a product of two
doubles less than 2**34 to five, and a kept sum less than 2**32 to as many limbs as it has digits.
So no limb overflows below 2**29 rows, and carries are made once, at the end. They turn limbs into
digits, of which only those in use are kept: see `exact_sum`.

Indexes in hot loops are unsigned, because Numba tests signed ones for being negative. All memory
belongs to the caller: `limbs` and `flags` must be zero, `offsets` has one entry more than there are
groups, `words` has for each group two more than limbs. A loop returns the number of words it made.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types

from tidegate.machine_code import compiled, given, made, part

NAN, PLUS, MINUS = 1, 2, 4
"""Flags of a sum: a NaN, an infinity, a negative infinity was added."""

_DIGIT = 2**32 - 1
_HIDDEN = 2**52
_NONE = 2**20  # beyond every exponent


@part
def _fields(bits: Any) -> Any:
    """The mantissa and exponent of |x| = mantissa * 2**exponent; 972 where it is not finite."""
    field = (bits >> 52) & 0x7FF
    mantissa = bits & (_HIDDEN - 1)
    if field == 0:
        return mantissa, np.int64(-1074)
    return mantissa | _HIDDEN, field - 1075


@part
def _packed(limbs: Any, flags: Any, low: Any, offsets: Any, words: Any) -> Any:
    """Write every group's limbs as a kept sum; returns the number of words.

    The representation is canonical: the fewest digits in two's complement. Equal sums then have
    equal bytes, whatever was added in which order, which merging and comparing rely on.
    """
    n, width = limbs.shape
    offsets[0] = 0
    at = np.uint64(0)
    one, four = np.uint64(1), np.uint64(4)
    for g in range(n):
        row = limbs[g]
        carry = np.int64(0)
        for i in range(width):
            limb = row[np.uint64(i)] + carry
            carry = limb >> 32
            row[np.uint64(i)] = limb & _DIGIT
        # Beyond the width there is only the sign: 0, or -1 in all digits.
        fill = carry & _DIGIT
        first, last = np.uint64(0), np.uint64(width)
        while first < last and row[first] == 0:
            first += one
        while first + one < last and row[last - one] == fill:
            last -= one
        if first < last:
            words[at] = ((low + np.int64(first)) << 3) | flags[g]
            for i in range(first, last):
                at += one
                words[at] = row[np.uint64(i)]
            at += one
            # One word more where the last digit lacks the sign; else the next group has its place.
            words[at] = carry
            at += np.uint64((row[last - one] >> 31) != (fill >> 31))
        elif flags[g] != 0:
            words[at] = flags[g]
            at += one
        offsets[g + 1] = np.int64(four * at)
    return np.int64(at)


def _span_of_values(bits: Any) -> Any:
    """The least and the greatest exponent of the finite numbers that are not zero."""
    least, greatest = np.int64(_NONE), np.int64(-_NONE)
    for r in range(len(bits)):
        mantissa, exponent = _fields(bits[r])
        if mantissa != 0 and exponent < 972:
            least, greatest = min(least, exponent), max(greatest, exponent)
    return least, greatest


def _span_of_products(bits: Any, others: Any) -> Any:
    """The least and the greatest exponent of the products that are finite and not zero."""
    least, greatest = np.int64(_NONE), np.int64(-_NONE)
    for r in range(len(bits)):
        a, e = _fields(bits[r])
        b, f = _fields(others[r])
        if a != 0 and b != 0 and e < 972 and f < 972:
            least, greatest = min(least, e + f), max(greatest, e + f)
    return least, greatest


def _span_of_sums(begins: Any, ends: Any, words: Any) -> Any:
    """The exponents of the lowest and of the highest digit of all kept sums."""
    least, greatest = np.int64(_NONE), np.int64(-_NONE)
    for r in range(len(begins)):
        begin, digits = begins[r] >> 2, ((ends[r] - begins[r]) >> 2) - 1
        if digits > 0:
            base = np.int64(words[begin]) >> 3
            least, greatest = min(least, base), max(greatest, base + digits - 1)
    return least * 32, greatest * 32


def _values(
    codes: Any, bits: Any, low: Any, limbs: Any, flags: Any, offsets: Any, words: Any
) -> Any:
    """Kept sums of numbers, one per group."""
    for r in range(len(codes)):
        g, b = np.uint64(codes[r]), bits[r]
        mantissa, exponent = _fields(b)
        if exponent == 972:
            flags[g] |= NAN if mantissa != _HIDDEN else (MINUS if b < 0 else PLUS)
        elif mantissa != 0:
            # A mantissa of 53 bits, shifted by up to 31, lies in three limbs.
            place = exponent - 32 * low
            i, shift = np.uint64(place >> 5), place & 31
            lower = (mantissa & _DIGIT) << shift
            upper = (mantissa >> 32) << shift
            sign = np.int64(1) | (b >> 63)
            limbs[g, i] += sign * (lower & _DIGIT)
            limbs[g, i + np.uint64(1)] += sign * ((lower >> 32) + (upper & _DIGIT))
            limbs[g, i + np.uint64(2)] += sign * (upper >> 32)
    return _packed(limbs, flags, low, offsets, words)


def _products(
    codes: Any,
    bits: Any,
    others: Any,
    low: Any,
    limbs: Any,
    flags: Any,
    offsets: Any,
    words: Any,
) -> Any:
    """Kept sums of products, one per group; those with a number that is not finite are left out."""
    mask, half = np.uint64(_DIGIT), np.uint64(32)
    for r in range(len(codes)):
        a, e = _fields(bits[r])
        b, f = _fields(others[r])
        if a == 0 or b == 0 or e == 972 or f == 972:
            continue
        g, place = codes[r], e + f - 32 * low
        i, shift = place >> 5, np.uint64(place & 31)
        a0, a1 = np.uint64(a & _DIGIT), np.uint64(a >> 32)
        b0, b1 = np.uint64(b & _DIGIT), np.uint64(b >> 32)
        outer, inner, upper = a0 * b0, a0 * b1 + a1 * b0, a1 * b1
        # The digits of the product, of at most 33 bits each, moved up by less than a digit.
        d0 = (outer & mask) << shift
        d1 = ((outer >> half) + (inner & mask)) << shift
        d2 = ((inner >> half) + (upper & mask)) << shift
        d3 = (upper >> half) << shift
        sign = np.int64(1) | ((bits[r] ^ others[r]) >> 63)
        limbs[g, i] += sign * np.int64(d0 & mask)
        limbs[g, i + 1] += sign * np.int64((d0 >> half) + (d1 & mask))
        limbs[g, i + 2] += sign * np.int64((d1 >> half) + (d2 & mask))
        limbs[g, i + 3] += sign * np.int64((d2 >> half) + (d3 & mask))
        limbs[g, i + 4] += sign * np.int64(d3 >> half)
    return _packed(limbs, flags, low, offsets, words)


def _sums(
    codes: Any,
    begins: Any,
    ends: Any,
    kept: Any,
    low: Any,
    limbs: Any,
    flags: Any,
    offsets: Any,
    words: Any,
) -> Any:
    """Kept sums of kept sums, one per group."""
    for r in range(len(codes)):
        g, begin, end = np.uint64(codes[r]), np.uint64(begins[r] >> 2), np.uint64(ends[r] >> 2)
        if begin == end:
            continue
        head = np.int64(kept[begin])
        flags[g] |= head & 7
        i, last = np.uint64((head >> 3) - low), end - np.uint64(1)
        for at in range(begin + np.uint64(1), last):
            limbs[g, i] += np.int64(kept[np.uint64(at)]) & _DIGIT
            i += np.uint64(1)
        if begin < last:
            limbs[g, i] += kept[last]
    return _packed(limbs, flags, low, offsets, words)


@part
def _moved(limbs: Any, flags: Any, words: Any, begin: Any, end: Any, low: Any, step: Any) -> Any:
    """Add a kept sum to limbs and to the counts of each flag; with `step` -1 take it away."""
    if begin == end:
        return
    head = np.int64(words[begin])
    for i in range(3):
        flags[i] += step * ((head >> i) & 1)
    at = begin + 1
    for i in range((head >> 3) - low, (head >> 3) - low + end - at):
        word = np.int64(words[at])
        at += 1
        limbs[i] += step * (word if at == end else word & _DIGIT)


def _slid(
    begins: Any,
    ends: Any,
    kept: Any,
    first: Any,
    last: Any,
    low: Any,
    limbs: Any,
    flags: Any,
    offsets: Any,
    words: Any,
) -> Any:
    """Kept sums of the kept sums in [first, last), for each window; neither bound falls.

    What leaves a window is taken away again: the limbs are integers, so nothing remains of it.
    """
    total, often = np.zeros(limbs.shape[1], np.int64), np.zeros(3, np.int64)
    begin, end = np.int64(0), np.int64(0)
    for w in range(len(first)):
        if first[w] >= end:  # no sum of the window before is in this one
            total[:], often[:] = 0, 0
            begin = end = first[w]
        for r in range(end, last[w]):
            _moved(total, often, kept, begins[r] >> 2, ends[r] >> 2, low, 1)
        for r in range(begin, first[w]):
            _moved(total, often, kept, begins[r] >> 2, ends[r] >> 2, low, -1)
        begin, end = first[w], last[w]
        limbs[w] = total
        for i in range(3):
            flags[w] |= (often[i] > 0) << i
    return _packed(limbs, flags, low, offsets, words)


_INTS, _WORDS = given(types.int64), given(types.int32)
_SPAN = types.UniTuple(types.int64, 2)
_MADE = (made(types.int64, 2), made(types.uint8), made(types.int64), made(types.int32))
_COUNT = types.int64
_LOOPS: dict[str, tuple[Callable[..., Any], Any]] = {
    "span_of_values": (_span_of_values, _SPAN(_INTS)),
    "span_of_products": (_span_of_products, _SPAN(_INTS, _INTS)),
    "span_of_sums": (_span_of_sums, _SPAN(_INTS, _INTS, _WORDS)),
    "values": (_values, _COUNT(_INTS, _INTS, types.int64, *_MADE)),
    "products": (_products, _COUNT(_INTS, _INTS, _INTS, types.int64, *_MADE)),
    "sums": (_sums, _COUNT(_INTS, _INTS, _INTS, _WORDS, types.int64, *_MADE)),
    "slid": (_slid, _COUNT(_INTS, _INTS, _WORDS, _INTS, _INTS, types.int64, *_MADE)),
}


@cache
def loop(name: str) -> Callable[..., Any]:
    """A loop by its name; compiled, or read from disk, when first asked for."""
    function, signature = _LOOPS[name]
    return compiled(signature, function)
