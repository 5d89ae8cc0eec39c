"""Draws numbers that are a function of a seed, a stream and a position.

Uses only raw bits, IEEE arithmetic and tables made with `math`, so every machine draws the same
numbers. A 64-bit word feeds several columns: each takes a field of its bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from tidegate.connector import Int64s

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]

_STEP = 0x9E3779B97F4A7C15
_SEED_STEP = 0xD1342543DE82EF95
_ROUNDS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
_LAST_SHIFT = 31


def stream(seed: int, number: int, start: int = 0) -> np.random.Generator:
    """Stream `number` of a seed from position `start` on; one step per position."""
    bits = np.random.PCG64(np.random.SeedSequence([seed, number]))
    return np.random.Generator(bits.advance(start))


def words(seed: int, number: int, start: int, stop: int) -> Words:
    """The raw 64 bits of positions [start, stop)."""
    bits = np.random.PCG64(np.random.SeedSequence([seed, number])).advance(start)
    raw: Words = bits.random_raw(stop - start)
    return raw


def field(of: Words, shift: int, bits: int) -> Int64s:
    """`bits` (at most 63) of each word, from bit `shift` on, as whole numbers."""
    part = (of >> np.uint64(shift)) & np.uint64((1 << bits) - 1)
    return part.view(np.int64)


def below(of: Words, shift: int, bits: int, count: int) -> Int64s:
    """Whole numbers in [0, count) from a field; `bits` and those of `count` are at most 63."""
    return (field(of, shift, bits) * count) >> bits


def mixed(numbers: Int64s, seed: int) -> Words:
    """A fixed, well spread word for each number: attributes of a key, whatever the position."""
    word = numbers.astype(np.uint64) * np.uint64(_STEP)
    word += np.uint64((seed + 1) * _SEED_STEP % 2**64)
    for shift, factor in _ROUNDS:
        word ^= word >> np.uint64(shift)
        word *= np.uint64(factor)
    word ^= word >> np.uint64(_LAST_SHIFT)
    return word


def quantiles(bits: int, at: Callable[[float], float]) -> Int64s:
    """A table for a field of `bits`: `at` of the middle of each of 2**bits steps of [0, 1)."""
    steps = 1 << bits
    return np.array([round(at((i + 0.5) / steps)) for i in range(steps)], np.int64)


def shares(bits: int, of: Sequence[float]) -> Int64s:
    """A table for a field that gives number i with the probability `of[i]`; these sum to 1."""
    bounds = np.cumsum(np.array(of, np.float64))
    steps = (np.arange(1 << bits, dtype=np.float64) + 0.5) / (1 << bits)
    found: Int64s = np.searchsorted(bounds, steps, "right").astype(np.int64)
    return np.minimum(found, len(of) - 1)


@lru_cache(maxsize=8)
def bells(count: int) -> Floats:
    """The normal distribution as its `count` quantiles, ascending."""
    bell = NormalDist()
    return np.array([bell.inv_cdf((i + 0.5) / count) for i in range(count)])
