"""The compiled loop of hash joins: for each probe the stored tuples of its key in its window.

Importing this module imports Numba; see `machine_code`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types

from tidegate.machine_code import compiled, given, made, part


@part
def _seek(keys: Any, wanted: Any, at: Any, after: Any) -> Any:
    """The first place from `at` on whose key is not below the wanted one; with `after`, above it.

    A galloping search: it costs the logarithm of the distance. Both sides ascend, so the distances
    of all searches together are one pass.
    """
    step, high = np.int64(1), at
    while high < len(keys) and (keys[high] < wanted or (after and keys[high] == wanted)):
        at = high + 1
        high += step
        step *= 2
    high = min(high, len(keys))
    while at < high:
        middle = (at + high) >> 1
        if keys[middle] < wanted or (after and keys[middle] == wanted):
            at = middle + 1
        else:
            high = middle
    return at


def _ranges(wanted: Any, low: Any, before: Any, keys: Any, coordinate: Any, place: Any) -> Any:
    """The range [first, last) of `keys` that equal each wanted key and are in its window.

    `wanted` and `keys` are float64 and ascend; NaN is last and equals nothing. A window begins at
    coordinate `low` and ends before the place `before`. `low` and `before` ascend among equal
    wanted keys, `coordinate` and `place` among equal keys. An empty `place` means no upper end.
    """
    first, last = np.empty(len(wanted), np.int64), np.empty(len(wanted), np.int64)
    begin, end = np.int64(0), np.int64(0)
    until = np.int64(0)
    for p in range(len(wanted)):
        if p == 0 or wanted[p] != wanted[p - 1]:
            begin = until = _seek(keys, wanted[p], end, False)
            end = _seek(keys, wanted[p], begin, True)
        # Bounds only move forward while the key stays, so a key costs its tuples plus its probes.
        while begin < end and coordinate[begin] < low[p]:
            begin += 1
        if len(place) == 0:
            until = end
        while until < end and place[until] < before[p]:
            until += 1
        first[p], last[p] = begin, max(begin, until)
    return first, last


@cache
def ranges() -> Callable[..., Any]:
    """The loop over keys that are doubles."""
    ints, floats = given(types.int64), given(types.float64)
    result = types.UniTuple(made(types.int64), 2)
    return compiled(result(floats, ints, ints, floats, ints, ints), _ranges)
