"""Ranks under the law of Zipf, between uniform numbers and keys."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tidegate.source.generate.draw import Floats

_LEAST_GUIDE = 2**18
_MOST_GUIDE = 2**22


@dataclass(frozen=True)
class Zipf:
    """`shares[k]`: of the first k + 1 ranks; `guide[i]`: the rank at the i-th of even steps."""

    shares: Floats
    guide: NDArray[np.int32]


@lru_cache(maxsize=16)
def zipf(keys: int, skew: float) -> Zipf:
    """Rank r (from 0) has a share proportional to (r + 1) ** -skew; 0 makes all alike."""
    weights = np.array([math.pow(rank, -skew) for rank in range(1, keys + 1)])
    shares = np.cumsum(weights) / weights.sum()
    shares[-1] = 1.0
    size = min(max(_LEAST_GUIDE, 1 << (4 * keys - 1).bit_length()), _MOST_GUIDE)
    steps = np.arange(size, dtype=np.float64) / size
    return Zipf(shares, np.searchsorted(shares, steps, "right").astype(np.int32))


def ranks(law: Zipf, draw: Floats) -> NDArray[np.int32]:
    """The first rank whose share exceeds each number: a search that starts next to its answer.

    The guide changes only the cost, never the answer.
    """
    found = law.guide[(draw * len(law.guide)).astype(np.int32)]
    short = np.flatnonzero(law.shares[found] <= draw)
    while len(short):
        found[short] += 1
        short = short[law.shares[found[short]] <= draw[short]]
    return found
