"""The loop that searches for values, in any order, among sorted ones.

The range of the sorted values is divided into as many cells as there are values, and the number of
values before each cell is known. A search looks only at the values of one cell: one or two where
they are spread evenly, and at worst all of them, by bisection.

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


@part
def _cell(value: Any, low: Any, scale: Any, cells: Any) -> Any:
    """The cell of a value that is not NaN; it never decreases with the value."""
    at = (np.float64(value) - low) * scale
    # Infinity times a scale of 0 is NaN, which is not above 0 either.
    return np.int64(min(at, cells - 1)) if at > 0 else 0


def _starts(values: Any, low: Any, scale: Any) -> Any:
    """How many values are before each cell, and how many in all as the last entry."""
    cells = len(values)
    starts = np.zeros(cells + 1, np.int64)
    for value in values:
        starts[_cell(value, low, scale, cells) + 1] += 1
    for cell in range(cells):
        starts[cell + 1] += starts[cell]
    return starts


def _places(values: Any, starts: Any, low: Any, scale: Any, wanted: Any, after: Any) -> Any:
    """How many values are below each wanted one; with `after`, how many are not above it."""
    found = np.empty(len(wanted), np.int64)
    for i in range(len(wanted)):
        one = wanted[i]
        if one != one:  # noqa: PLR0124 - NaN is greatest
            found[i] = len(values)
            continue
        cell = _cell(one, low, scale, len(values))
        first, last = starts[cell], starts[cell + 1]
        while first < last:
            middle = (first + last) >> 1
            if values[middle] < one or (after and values[middle] == one):
                first = middle + 1
            else:
                last = middle
        found[i] = first
    return found


def _named(function: Any, number: str) -> FunctionType:
    name = f"{function.__name__}_{number}"
    made_of = FunctionType(function.__code__, globals(), name)
    made_of.__module__, made_of.__qualname__ = __name__, name
    return made_of


@cache
def starts(number: str) -> Callable[..., Any]:
    """`_starts` for sorted values of "int64" or "float64"."""
    of = given(getattr(types, number))
    signature = made(types.int64)(of, types.float64, types.float64)
    return compiled(signature, _named(_starts, number))


@cache
def places(number: str) -> Callable[..., Any]:
    """`_places` for values of "int64" or "float64"."""
    of, ints = given(getattr(types, number)), given(types.int64)
    given_types = of, ints, types.float64, types.float64, of, types.boolean
    return compiled(made(types.int64)(*given_types), _named(_places, number))
