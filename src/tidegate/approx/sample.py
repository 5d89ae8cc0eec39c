"""Takes samples of groups by depth: tuples of low priority, at least so many.

The **depth** of a tuple is the number of zeros that its priority begins with: one tuple in 2**d is
at depth d or below. The **sample** of a set of tuples, for a size k >= 1, is those at depth d or
below, for the greatest d that leaves at least k of them; it is the set where that has fewer.

- It is a uniform sample without replacement of the set, of a size that does not depend on values:
  at least k, seldom more than 2 k.
- The sample of a union is the sample of the union of samples: parts can be merged in any order.
- The j tuples of lowest priority of a sample are a uniform sample again, of size j.
- With a limit m >= k it is the m tuples of lowest priority of that, which merges likewise.
- Which tuples are at a depth is the same for every set, so that overlapping windows whose samples
  are of one depth differ by what enters and leaves, and by nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tidegate.approx.array import Ints, Mask, Words

_DEEPEST = 53
"""The greatest depth: so many bits of a priority are a whole number in a double."""

_LOW_BITS = np.uint64(64 - _DEEPEST)


def depths(priority: Words) -> Ints:
    """The depth of each tuple, from 0 to 53."""
    _, length = np.frexp((priority >> _LOW_BITS).astype(np.float64))
    return (_DEEPEST - length).astype(np.int64)


def sampled(
    codes: Ints, groups: int, priority: Words, k: int, most: int | None = None
) -> Mask | None:
    """Which tuples are in the samples of their groups; None for all of them.

    `codes` are the groups of tuples, in [0, groups). With `most`, which is at least k, a sample has
    no more of them. Takes O(tuples).
    """
    taken = _by_depth(codes, groups, priority, k)
    if most is None:
        return taken
    rows = np.arange(len(codes)) if taken is None else np.flatnonzero(taken)
    sizes = np.bincount(codes[rows], minlength=groups)
    if not (sizes > most).any():
        return taken
    rows = rows[np.lexsort((priority[rows], codes[rows]))]
    place = np.arange(len(rows)) - (np.cumsum(sizes) - sizes)[codes[rows]]
    lowest = np.zeros(len(codes), np.bool_)
    lowest[rows[place < most]] = True
    return lowest


def _by_depth(codes: Ints, groups: int, priority: Words, k: int) -> Mask | None:
    if groups == 1:
        return _sampled_of_one(priority, k)
    counts = np.bincount(codes, minlength=groups)
    large = counts > k
    if not large.any():
        return None
    inside = large[codes]
    number = np.cumsum(large) - 1
    depth = depths(priority[inside])
    least = np.zeros(groups, np.int64)
    least[large] = _sample_depths(number[codes[inside]], int(large.sum()), depth, k)
    taken = ~inside
    taken[inside] = depth >= least[codes[inside]]
    return taken


def _sampled_of_one(priority: Words, k: int) -> Mask | None:
    """The same for one group: most tuples are done with after one comparison."""
    if len(priority) <= k:
        return None
    least = max(int(np.log2(len(priority) / k)) - 1, 0)
    while True:
        taken: Mask = priority < np.uint64(2 ** (64 - least)) if least else priority >= 0
        few = depths(priority[taken])
        if len(few) >= k:
            deeper = int(_sample_depths(np.zeros(len(few), np.int64), 1, few, k)[0])
            return priority < np.uint64(2 ** (64 - deeper)) if deeper else None
        least = max(least - 2, 0)


def _sample_depths(codes: Ints, groups: int, depth: Ints, k: int) -> Ints:
    """The greatest depth of each group at or below which it has at least k tuples, or 0."""
    levels = _DEEPEST + 1
    at = np.bincount(codes * levels + depth, minlength=groups * levels).reshape(groups, levels)
    below = np.cumsum(at[:, ::-1], axis=1)[:, ::-1]
    found: Ints = np.maximum(np.count_nonzero(below >= k, axis=1) - 1, 0)
    return found


def window_depths(depth: Ints, first: Ints, last: Ints, k: int) -> Iterator[tuple[int, Ints, Mask]]:
    """The samples of windows [first, last) over tuples: one depth after the other that has some.

    Gives the depth, the windows whose samples are of it, and which tuples are at it or below. Takes
    O(tuples + windows) for each depth that windows are of, and half as much for each further one.
    """
    windows, level, taken = np.arange(len(first)), 0, np.ones(len(depth), np.bool_)
    while len(windows):
        deeper = depth > level
        before = np.append(0, np.cumsum(deeper))
        enough = before[last[windows]] - before[first[windows]] >= k
        if not enough.all():
            yield level, windows[~enough], taken
        windows, level, taken = windows[enough], level + 1, deeper
