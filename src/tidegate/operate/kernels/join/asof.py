"""Finds for each left row the right row of its key that is nearest in time, looking one way.

The loops are one merge by time of both sides, with the newest right row of each key in an array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tidegate.operate.kernels.order import Ints

_FEW = 1_024
"""Up to so many rows the loop runs uncompiled: loading the machine code would take longer."""


def latest(
    left: tuple[Ints, Ints], right: tuple[Ints, Ints], keys: int, equal: bool
) -> tuple[Ints, Ints]:
    """For each left row the last right row of its key that is earlier (with `equal`: not later).

    A side is int64 times, ascending, and int64 keys. Keys of the right are in [0, keys); a left row
    with the key `keys` finds nothing. The second result has the last right row of each key. -1
    means none. Costs O(rows + keys).
    """
    found: tuple[Ints, Ints] = _loop("backward", left, right)(*left, *right, keys, equal)
    return found


def earliest(left: tuple[Ints, Ints], right: tuple[Ints, Ints], keys: int, equal: bool) -> Ints:
    """For each left row the first right row of its key that is later (with `equal`: not earlier).

    Arguments as in `latest`. Of right rows of one key and one time the last counts.
    """
    found: Ints = _loop("forward", left, right)(*left, *right, keys, equal)
    return found


def _loop(name: str, left: tuple[Ints, Ints], right: tuple[Ints, Ints]) -> Callable[..., Any]:
    if len(left[0]) + len(right[0]) <= _FEW:
        return PLAIN[name]
    from tidegate.operate.kernels.join import asof_loop

    loop = asof_loop.loop(name)
    return lambda *arrays_and_more: loop(
        *map(np.ascontiguousarray, arrays_and_more[:4]), *arrays_and_more[4:]
    )


def _backward(
    left_ts: Any, left_key: Any, right_ts: Any, right_key: Any, keys: Any, equal: Any
) -> Any:
    last = np.full(keys + 1, -1, np.int64)
    found = np.empty(len(left_ts), np.int64)
    j = 0
    for i in range(len(left_ts)):
        at = left_ts[i]
        while j < len(right_ts) and (right_ts[j] < at or (equal and right_ts[j] == at)):
            last[right_key[j]] = j
            j += 1
        found[i] = last[left_key[i]]
    while j < len(right_ts):
        last[right_key[j]] = j
        j += 1
    return found, last[:keys]


def _forward(
    left_ts: Any, left_key: Any, right_ts: Any, right_key: Any, keys: Any, equal: Any
) -> Any:
    first = np.full(keys + 1, -1, np.int64)
    found = np.empty(len(left_ts), np.int64)
    j = len(right_ts) - 1
    for i in range(len(left_ts) - 1, -1, -1):
        at = left_ts[i]
        while j >= 0 and (right_ts[j] > at or (equal and right_ts[j] == at)):
            known = first[right_key[j]]
            # Going back in time, the first one met at a time is the last in the order: it stays.
            if known < 0 or right_ts[known] != right_ts[j]:
                first[right_key[j]] = j
            j -= 1
        found[i] = first[left_key[i]]
    return found


PLAIN: dict[str, Callable[..., Any]] = {"backward": _backward, "forward": _forward}
"""The loops by name; `asof_loop` compiles the same functions."""
