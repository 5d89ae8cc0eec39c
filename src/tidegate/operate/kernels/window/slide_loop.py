"""The compiled loops that go from window to window over ranked values.

Windows are [first, last) over the values, and neither bound ever falls from one to the next. So
every value enters once and leaves once. A window that begins at or after the end of all windows
before it starts anew, as the first window of a key does.

Importing this module imports Numba; see `machine_code`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types

from tidegate.machine_code import compiled, given, made

_INTS = given(types.int64)
_MADE = made(types.int64)


def _select(slot: Any, base: Any, size: Any, first: Any, last: Any, k: Any) -> Any:
    """The slots of the k-th and the next smallest value of each window, -1 for an empty one.

    `slot` is the place of each value in sorted order, run after run; `base` and `size` are the
    begin and the length of the run of each window. The values of a window are counted in a Fenwick
    tree: counts[i] is the sum over the (i & -i) slots up to i. So adding a value, taking it away
    and finding the k-th all take log2(size) steps.
    """
    longest = 1
    for w in range(len(first)):
        longest = max(longest, size[w])
    counts = np.zeros(longest + 1, np.int64)
    low, high = np.empty(len(first), np.int64), np.empty(len(first), np.int64)
    begin, end = np.int64(0), np.int64(0)
    top = np.int64(1)
    for w in range(len(first)):
        n = size[w]
        if first[w] >= end:
            counts[: n + 1] = 0
            begin = end = first[w]
            top = np.int64(1)
            while 2 * top <= n:
                top *= 2
        while end < last[w]:
            i = slot[end] - base[w] + 1
            while i <= n:
                counts[i] += 1
                i += i & -i
            end += 1
        while begin < first[w]:
            i = slot[begin] - base[w] + 1
            while i <= n:
                counts[i] -= 1
                i += i & -i
            begin += 1
        low[w] = high[w] = -1
        held = end - begin
        for which in range(2):
            rest = min(k[w] + which, held - 1)
            if rest < 0:
                continue
            # Descend the tree by powers of two to the first slot with more than `rest` up to it.
            at, step = np.int64(0), top
            while step > 0:
                if at + step <= n and counts[at + step] <= rest:
                    at += step
                    rest -= counts[at]
                step //= 2
            if which == 0:
                low[w] = base[w] + at
            else:
                high[w] = base[w] + at
    return low, high


def _distinct(code: Any, codes: Any, first: Any, last: Any) -> Any:
    """How many different codes, of [0, codes), each window has."""
    counts = np.zeros(codes, np.int64)
    found = np.empty(len(first), np.int64)
    begin, end, different = np.int64(0), np.int64(0), np.int64(0)
    for w in range(len(first)):
        while begin < min(first[w], end):
            c = code[begin]
            counts[c] -= 1
            different -= counts[c] == 0
            begin += 1
        if first[w] > end:
            begin = end = first[w]
        while end < last[w]:
            c = code[end]
            different += counts[c] == 0
            counts[c] += 1
            end += 1
        found[w] = different
    return found


@cache
def select() -> Callable[..., Any]:
    """The loop over medians and other quantiles."""
    return compiled(types.UniTuple(_MADE, 2)(_INTS, _INTS, _INTS, _INTS, _INTS, _INTS), _select)


@cache
def distinct() -> Callable[..., Any]:
    """The loop over distinct counts."""
    return compiled(_MADE(_INTS, types.int64, _INTS, _INTS), _distinct)
