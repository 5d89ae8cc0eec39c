"""Numbers of rows that have no place in a source: between the results of subqueries and priorities.

The rows of another subquery come in order of time, all of one instant in one batch and one split.
So the place of a row in its instant is the same however the stream was cut; its place in a batch is
not. What is computed here is part of what a checkpoint means, as priorities are.
"""

from __future__ import annotations

import numpy as np

from tidegate.approx.array import Ints

_BITS = np.uint64(2**62 - 1)
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def numbers_in_instants(times: Ints) -> Ints:
    """A number for each row, from its instant and its place there; `times` ascend.

    Within an instant they ascend; rows of different instants have next to never the same.
    """
    if not len(times):
        return np.empty(0, np.int64)
    new = np.ones(len(times), np.bool_)
    new[1:] = times[1:] != times[:-1]
    starts = np.flatnonzero(new)
    words = times[starts].astype(np.int64).view(np.uint64) + _STEP
    words = (words ^ (words >> np.uint64(30))) * _FIRST
    words = (words ^ (words >> np.uint64(27))) * _SECOND
    bases = ((words ^ (words >> np.uint64(31))) & _BITS).view(np.int64)
    numbers: Ints = np.arange(len(times)) + (bases - starts)[np.cumsum(new) - 1]
    return numbers
