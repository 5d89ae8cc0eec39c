"""The compiled loop that sorts values within groups.

Groups are small compared with all rows, and merged lists are sorted already. So rows are counted
into their groups, and each group is sorted by a natural merge sort: O(n log(k)) for k ascending
runs. Short runs are extended to `_SHORT` values by insertion. A large group of many runs is left to
numpy, which sorts it with vector instructions.

Importing this module imports Numba; see `machine_code`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any

import numpy as np
from numba import types

from tidegate.machine_code import compiled, given, made, part

_SHORT = 12
_LARGE = 1024
_LONG = 64  # runs of so many values on average are merged, however large the group


@part
def _before(a: Any, b: Any) -> Any:
    """Whether a key comes before another; NaN is greatest."""
    return a < b or (b != b and a == a)  # noqa: PLR0124


@part
def _run(keys: Any, rows: Any, begin: Any, end: Any) -> Any:
    """The end of the ascending run from `begin` on; a short one is extended by insertion."""
    at = begin + 1
    while at < end and not _before(keys[at], keys[at - 1]):
        at += 1
    while at < min(begin + _SHORT, end):
        key, row, to = keys[at], rows[at], at
        while to > begin and _before(key, keys[to - 1]):
            keys[to], rows[to] = keys[to - 1], rows[to - 1]
            to -= 1
        keys[to], rows[to] = key, row
        at += 1
    return at


@part
def _merge(keys: Any, rows: Any, begin: Any, middle: Any, end: Any, key: Any, row: Any) -> Any:
    """Merge two neighbouring runs in place; stable. `key` and `row` have room for the first one."""
    first = middle - begin
    for i in range(first):
        key[i], row[i] = keys[begin + i], rows[begin + i]
    i, j, to = 0, middle, begin
    while i < first and j < end:
        if _before(keys[j], key[i]):
            keys[to], rows[to] = keys[j], rows[j]
            j += 1
        else:
            keys[to], rows[to] = key[i], row[i]
            i += 1
        to += 1
    while i < first:
        keys[to], rows[to] = key[i], row[i]
        i += 1
        to += 1


def _sorted(codes: Any, counts: Any, keys: Any) -> Any:
    """The rows by group and key, their keys, and [begin, end) of each stretch left unsorted.

    `codes` (int64) are the groups of the rows, `counts` their sizes. The caller sorts the stretches
    that are left, which are in the given order then.
    """
    to_rows, to_keys = np.empty(len(codes), np.int64), np.empty_like(keys)
    at, place, longest = np.empty(len(counts), np.int64), 0, 0
    for group in range(len(counts)):
        at[group] = place
        place += counts[group]
        longest = max(longest, counts[group])
    for i in range(len(codes)):
        place = at[codes[i]]
        at[codes[i]] = place + 1
        to_rows[place], to_keys[place] = i, keys[i]
    key, row = np.empty(longest, keys.dtype), np.empty(longest, np.int64)
    bounds = np.empty(longest // _SHORT + 3, np.int64)
    left_out, parts = np.empty((len(codes) // _LARGE + 1, 2), np.int64), 0
    for group in range(len(counts)):
        end = at[group]
        bounds[0] = end - counts[group]
        runs = 0
        while bounds[runs] < end:
            bounds[runs + 1] = _run(to_keys, to_rows, bounds[runs], end)
            runs += 1
            if counts[group] > _LARGE and runs * _LONG > max(bounds[runs] - bounds[0], _LARGE):
                left_out[parts, 0], left_out[parts, 1] = bounds[0], end
                parts, runs = parts + 1, 0
                break
        while runs > 1:
            left = 0
            for r in range(0, runs, 2):
                if r + 1 < runs:
                    _merge(to_keys, to_rows, bounds[r], bounds[r + 1], bounds[r + 2], key, row)
                left += 1
                bounds[left] = bounds[min(r + 2, runs)]
            runs = left
    return to_rows, to_keys, left_out[:parts]


@cache
def loop(number: str) -> Callable[..., Any]:
    """The loop for keys of "int64" or "float64", NaN greatest."""
    name = f"_sorted_{number}"
    function = FunctionType(_sorted.__code__, globals(), name)
    function.__module__, function.__qualname__ = __name__, name
    ints, kind = given(types.int64), getattr(types, number)
    result = types.Tuple((made(types.int64), made(kind), made(types.int64, 2)))
    return compiled(result(ints, ints, given(kind)), function)
