"""Divides the tuples that may be kept of a window among its groups: Algorithm 9 as a hard total.

What is due of a group is its tuples times the rate. Each group gets the whole part of that. What is
left goes to groups that have nothing yet, the largest first; then where most is still due. A group
never gets more than it has candidates, and the others then get more. So the window keeps exactly
what is due of it, rounded, as long as it has so many candidates.
"""

from __future__ import annotations

import numpy as np

from tidegate.approx.array import Ints, Words
from tidegate.approx.rate import NANO


def quotas(due: Ints, candidates: Ints, lowest: Words) -> Ints:
    """How many tuples each group of a window keeps; groups with 0 are dropped.

    `due` is in parts of NANO. Among groups with the same due the one goes first whose `lowest`
    priority is lower. O(groups log groups) for each tuple that a group is short of.
    """
    total = (int(due.sum()) + NANO // 2) // NANO
    given: Ints = np.minimum(due // NANO, candidates)
    left = total - int(given.sum())
    while left > 0:
        open_ = np.flatnonzero(given < candidates)
        if not len(open_):
            break
        rest = due[open_] - given[open_] * NANO
        order = np.lexsort((lowest[open_], -rest, given[open_] > 0))
        chosen = open_[order[:left]]
        given[chosen] += 1
        left -= len(chosen)
    return given
