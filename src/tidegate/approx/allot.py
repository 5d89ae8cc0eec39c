"""How a budget of rows is divided among the groups of a window, for their samples.

All sizes are whole numbers, at most as large as the groups, that add up to the budget or to all
tuples; what a small group cannot use goes to the others. Sizes depend on the counts and on the
order of the groups, which is that of their keys, and on nothing else.
"""

from __future__ import annotations

import numpy as np

from tidegate.approx.array import Floats, Ints


def congress(counts: Ints, budget: int) -> Ints:
    """Basic congress: the larger of a share by size (house) and an equal share (senate), scaled.

    After Acharya, Gibbons and Poosala, Congressional Samples for Approximate Answering of Group-By
    Queries (SIGMOD 2000): large groups are sampled well, and so are small ones.
    """
    if len(counts) == 0:
        return counts.astype(np.int64)
    house = counts / max(int(counts.sum()), 1)
    return _divided(np.maximum(house, 1 / len(counts)), counts, budget)


def _divided(weights: Floats, counts: Ints, budget: int) -> Ints:
    """Sizes in proportion to weights, none above its count; rounded by largest remainder.

    Every round fills at least one group up, or is the last.
    """
    sizes = np.zeros(len(counts), np.float64)
    open_ = counts > 0
    rest = float(min(budget, int(counts.sum())))
    while rest > 0 and open_.any():
        shares = np.where(open_, weights, 0.0)
        shares *= rest / shares.sum()
        full = open_ & (sizes + shares >= counts)
        if not full.any():
            sizes += shares
            break
        rest -= float((counts[full] - sizes[full]).sum())
        sizes[full] = counts[full]
        open_ = open_ & ~full
    whole = np.floor(sizes + 1e-9).astype(np.int64)
    left = min(budget, int(counts.sum())) - int(whole.sum())
    by_remainder = np.argsort(-(sizes - whole), kind="stable")
    room = by_remainder[(whole < counts)[by_remainder]]
    whole[room[:left]] += 1
    return whole
