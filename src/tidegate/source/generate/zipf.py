"""Turns uniform numbers into ranks that follow the law of Zipf."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tidegate.connector import Int64s
from tidegate.source.generate.draw import Floats

_LEAST_CELLS = 2**18
_MOST_CELLS = 2**22


@dataclass(frozen=True)
class Zipf:
    """A Zipf law as a table. `shares[k]` is the probability of the first k + 1 ranks, ascending.

    `guide` divides [0, 1) into even cells. A cell holds the rank of all numbers in it. Where these
    are several, it holds ~r, which is negative, for the first rank r.
    """

    shares: Floats
    guide: NDArray[np.int32]


@lru_cache(maxsize=16)
def zipf(keys: int, skew: float) -> Zipf:
    """Rank r (from 0) has a share proportional to (r + 1) ** -skew; 0 makes all alike."""
    weights = np.array([math.pow(rank, -skew) for rank in range(1, keys + 1)])
    shares = np.cumsum(weights) / weights.sum()
    shares[-1] = 1.0
    cells = min(max(_LEAST_CELLS, 1 << (4 * keys - 1).bit_length()), _MOST_CELLS)
    edges = np.arange(cells + 1, dtype=np.float64) / cells
    first = np.searchsorted(shares, edges, "right")
    guide = np.where(first[1:] == first[:-1], first[:-1], ~first[:-1])
    return Zipf(shares, guide.astype(np.int32))


def ranks(law: Zipf, draw: Floats) -> Int64s:
    """For each number in [0, 1) the first rank whose share exceeds it; costs O(1) on average.

    The search starts at the guide, which is at or just before the answer. The guide changes only
    the cost, never the answer.
    """
    found = law.guide[(draw * len(law.guide)).astype(np.int64)].astype(np.int64)
    unsure = np.flatnonzero(found < 0)
    found[unsure] = ~found[unsure]
    # All numbers whose rank is not yet found move on by one rank in each round.
    while len(unsure):
        unsure = unsure[law.shares[found[unsure]] <= draw[unsure]]
        found[unsure] += 1
    return found
