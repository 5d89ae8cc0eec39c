"""Counts pairs of sorted numbers by adding up places, without making the pairs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

_FEW = 8192
"""Fewer numbers than this are searched for by numpy, without machine code."""


def sum_of_places(among: Ints, asked: Ints) -> int:
    """The number of pairs (a, b) with a of `among` below b of `asked`; both are int64 and ascend.

    One pass over both, where searches would cost some twenty steps for each of `asked`.
    """
    if len(asked) < _FEW:
        return int(np.searchsorted(among, asked).sum())
    return int(compiled_places()(among, asked))


def _places(among: Any, asked: Any) -> Any:
    total = place = 0
    for one in asked:
        while place < len(among) and among[place] < one:
            place += 1
        total += place
    return total


@cache
def compiled_places() -> Callable[..., Any]:
    """`_places` as machine code; see `machine_code`."""
    from numba import types

    from tidegate.machine_code import compiled, given

    ints = given(types.int64)
    return compiled(types.int64(ints, ints), _places)
