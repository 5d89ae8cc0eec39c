"""The compiled loop that rounds kept exact sums to doubles."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import ldexp
from typing import Any

import numpy as np
from numba import types

from tidegate.machine_code import compiled, given, made, part
from tidegate.operate.kernels.sum.exact_sum_loop import MINUS, NAN, PLUS

_DIGIT = 2**32 - 1


@part
def _zeros(number: Any) -> Any:
    """The number of leading zeros, of 64 bits, of a number that is not negative."""
    zeros = np.int64(0)
    for bits in (32, 16, 8, 4, 2, 1):
        if (number << zeros) >> (63 - bits) == 0:
            zeros += bits
    return zeros + 1


@part
def _nearest(begin: Any, end: Any, words: Any, base: Any) -> Any:
    """The double nearest to the digits in words [begin, end), at least one, half to even.

    The first 62 bits or more become one integer. Its last bit is set where lower digits are not
    zero ("sticky"), so the processor's conversion to double rounds as the whole number would. Near
    zero doubles have fewer bits, but a sum of doubles is a multiple of the least of them: there it
    needs no rounding, and the power of two is exact.
    """
    high, low, more = np.int64(words[end - 1]) << 32, np.int64(0), np.int64(0)
    if end - begin > 1:
        high |= np.int64(words[end - 2]) & _DIGIT
    if end - begin > 2:
        low = np.int64(words[end - 3]) & _DIGIT
    for at in range(begin, end - 3):
        more |= np.int64(words[at])
    # Digits are the fewest that hold the sum: the last one has more than the sign bit, or the one
    # before it begins with the other sign. So 64 bits of two digits, with a third, have 62 to use.
    up = _zeros(high ^ (high >> 63)) - 1
    more |= (low << up) & _DIGIT
    number = (high << up) | (low >> (32 - up)) | np.int64(more != 0)
    return ldexp(float(number), 32 * (base + end - begin - 2) - up)


def _rounded(offsets: Any, words: Any) -> Any:
    """The doubles nearest to kept sums; see `exact_sum.round_sums`."""
    results = np.zeros(len(offsets) - 1)
    for r in range(len(results)):
        begin, end = offsets[r] >> 2, offsets[r + 1] >> 2
        if begin == end:
            continue
        head = np.int64(words[begin])
        flags = head & 7
        if flags & NAN or flags & (PLUS | MINUS) == PLUS | MINUS:
            results[r] = np.nan
        elif flags:
            results[r] = -np.inf if flags == MINUS else np.inf
        else:
            results[r] = _nearest(begin + 1, end, words, head >> 3)
    return results


@cache
def rounded() -> Callable[..., Any]:
    """The loop, from offsets and words to doubles; compiled, or read from disk, when first used."""
    signature = made(types.float64)(given(types.int64), given(types.int32))
    return compiled(signature, _rounded)
