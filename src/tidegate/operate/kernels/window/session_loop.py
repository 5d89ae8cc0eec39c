"""The compiled loop that puts pieces of sessions together.

Importing this module imports Numba; see `machine_code`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types

from tidegate.machine_code import compiled, given, made


def _sessions(
    keys: Any, first: Any, last: Any, count: np.int64, gap: np.int64, longest: np.int64
) -> Any:
    """The session of each piece, and the start and the last time of each session.

    A piece has a key in [0, count) and times from `first` to `last`; pieces ascend by `first`. Two
    neighbours of a key are in one session if they are at most `gap` apart and the later one begins
    at most `longest` after the session. Sessions are numbered in the order of their starts.
    """
    numbers = np.empty(len(keys), np.int64)
    starts, ends = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
    newest = np.full(count, -1, np.int64)
    found = np.int64(0)
    for i in range(len(keys)):
        number = newest[keys[i]]
        if number < 0 or first[i] - ends[number] > gap or first[i] - starts[number] > longest:
            number, newest[keys[i]] = found, found
            starts[found], ends[found] = first[i], last[i]
            found += 1
        elif last[i] > ends[number]:
            ends[number] = last[i]
        numbers[i] = number
    return numbers, starts[:found].copy(), ends[:found].copy()


@cache
def sessions() -> Callable[..., Any]:
    """The loop."""
    ints, result = given(types.int64), types.UniTuple(made(types.int64), 3)
    return compiled(result(ints, ints, ints, types.int64, types.int64, types.int64), _sessions)
