"""Samples of groups by priority, between all tuples and those that are looked at.

The **sample** of a set of tuples, for a rate and a size k, is the tuples with a priority below
rate * 2**64, and the k tuples of lowest priority; with them those that have the same priority as
the last, which next to never happens. Either is the beginning of the set in the order of
priorities, and so is the sample, the longer of the two.

- It is a uniform sample without replacement of the set, of a size that does not depend on values.
- The sample of a union is the sample of the union of samples: parts can be merged in any order.
- The lowest j of a sample are a uniform sample again, of size j.
"""

from __future__ import annotations

import numpy as np

from tidegate.approx.array import Ints, Words

EVERYTHING = 2**62
"""A size that no set has: a sample of it is the set."""


def lowest_of_one(priority: Words, k: int) -> Ints:
    """Positions of the sample of one group, by ascending priority: `lowest` in one pass.

    Takes O(tuples), and O(k log(tuples / k) log k) on average for those that enter the sample.
    """
    words = np.ascontiguousarray(priority, np.uint64)
    if 0 < k < len(words):
        from tidegate.approx.sample_loop import lowest_of_one_loop

        positions: Ints = lowest_of_one_loop()(words, k)
    else:
        positions = np.arange(len(words) if k else 0)
    return positions[np.argsort(words[positions], kind="stable")]


def lowest(codes: Ints, groups: int, priority: Words, k: int, rate: float = 0.0) -> Ints:
    """Positions of the samples of groups, those of a group together and by ascending priority.

    `codes` are the groups of tuples, in [0, groups). Takes O(tuples) and for each group with more
    than k tuples O(k log(tuples / k) log k) on average, in compiled loops; memory for the sample.
    """
    if len(codes) == 0:
        return np.empty(0, np.int64)
    from tidegate.approx.sample_loop import lowest_loop

    k, limit = (EVERYTHING, 0) if rate >= 1 else (k, int(rate * 2**64))
    words = np.ascontiguousarray(priority, np.uint64)
    numbers = np.ascontiguousarray(codes, np.int64)
    positions: Ints = lowest_loop()(numbers, groups, words, k, np.uint64(limit))
    return positions
