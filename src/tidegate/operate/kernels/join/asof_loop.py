"""Compiles the loops of `asof`. Importing this module imports Numba; see `machine_code`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from numba import types

from tidegate.machine_code import compiled, given, made
from tidegate.operate.kernels.join.asof import PLAIN

_INTS = given(types.int64)
_MADE = made(types.int64)
_ARGUMENTS = (_INTS, _INTS, _INTS, _INTS, types.int64, types.boolean)
LOOPS = {"backward": types.UniTuple(_MADE, 2)(*_ARGUMENTS), "forward": _MADE(*_ARGUMENTS)}


@cache
def loop(name: str) -> Callable[..., Any]:
    """The loop of this name as machine code."""
    return compiled(LOOPS[name], PLAIN[name])
