"""The compiled loop of priorities: a 64-bit word for the place of each tuple.

With the mixing function m of splitmix64, the word of tuple number i is m(m(i + a) + b), where a and
b are made of the seed and the source. One m alone would give two sources the same words, a distance
apart, whenever their offsets happen to be near each other.

Importing this module imports Numba; see `machine_code`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types

from tidegate.machine_code import compiled, given, made, part

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)


@part
def _mixed(word: Any) -> Any:
    word = word + _STEP
    word = (word ^ (word >> _S30)) * _FIRST
    word = (word ^ (word >> _S27)) * _SECOND
    return word ^ (word >> _S31)


@part
def _fill(words: Any, seq: Any, before: Any, between: Any) -> Any:
    """Those of one source; nothing in the loop depends on the tuple before, so it is unrolled."""
    for i in range(len(seq)):
        words[i] = _mixed(_mixed(np.uint64(seq[i]) + before) + between)


def _priorities(seed: Any, src: Any, seq: Any) -> Any:
    words = np.empty(len(src), np.uint64)
    start = 0
    while start < len(src):
        source, stop = src[start], start + 1
        while stop < len(src) and src[stop] == source:
            stop += 1
        before = _mixed(_mixed(seed) ^ np.uint64(source))
        _fill(words[start:stop], seq[start:stop], before, _mixed(before))
        start = stop
    return words


@cache
def priorities_loop() -> Callable[..., Any]:
    """The loop: seed, sources, numbers; at least one tuple."""
    ints = given(types.int64)
    return compiled(made(types.uint64)(types.uint64, ints, ints), _priorities)
