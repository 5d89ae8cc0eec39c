"""The loop that keeps the first tuple of each key within a time.

Few tuples run through the plain function, so that Numba need not be imported.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np


def first_within(codes: Any, ts: Any, until: Any, within: Any) -> Any:
    """Which tuples are kept: those later than `until` of their key.

    `codes` (int64, in [0, len(until))) and `ts` are of tuples in the total order. `until` has a
    time for each key; a kept tuple sets it to its own time plus `within`, in place. O(tuples).
    """
    kept = np.zeros(len(codes), np.bool_)
    for i in range(len(codes)):
        if ts[i] > until[codes[i]]:
            kept[i] = True
            until[codes[i]] = ts[i] + within
    return kept


@cache
def compiled_first() -> Callable[..., Any]:
    """`first_within` as machine code; see `machine_code`."""
    from numba import types

    from tidegate.machine_code import compiled, given, made

    ints = given(types.int64)
    signature = made(types.boolean)(ints, ints, made(types.int64), types.int64)
    return compiled(signature, first_within)
