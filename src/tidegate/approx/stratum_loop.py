"""Selects, in a compiled loop, the rows to keep from each stratum; tuples come in order of panes.

Pane after pane: a tuple that is below the limit, or lower than the few lowest of its group so far,
is a candidate. Of a large group few are, about k ln(n / k) of n. At the end of the pane it is known
how far each group reaches, and the candidates beyond are dropped. What is known of a group stands
in one place, for it is looked up for each tuple: how many tuples it has, how far it reaches, and
its k lowest priorities that are not below the limit.

Importing this module imports Numba; see `machine_code`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types

from tidegate.machine_code import compiled, given, made, part

_ANY, _NONE, _ONE = np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(0), np.uint64(1)


@part
def _admit(known: Any, lowest: Any, highest: Any, word: Any) -> Any:
    """Put a word among those from one place to another, ascending; the highest falls out."""
    at = highest
    while at > lowest and known[at - 1] > word:
        known[at] = known[at - 1]
        at -= 1
    known[at] = word


def _strata(
    codes: Any, groups: Any, times: Any, length: Any, priority: Any, k: Any, limit: Any
) -> Any:
    """Positions, priorities and numbers of tuples, and whether times were in order of panes.

    If not, nothing is found. A reach of 0 is that of a group with k tuples below the limit. A group
    begins anew when its tuples are 0: they are again as soon as one of it is kept for good, and of
    each that has tuples one is.
    """
    n, size = len(codes), k + 2
    known, below = np.zeros(groups * size, np.uint64), np.zeros(groups, np.int64)
    rows, words = np.empty(n, np.int64), np.empty(n, np.uint64)
    tuples = np.empty(n, np.int64)
    kept, i, last = 0, 0, np.int64(-(2**63))
    while i < n:
        first = times[i] // length * length
        if first < last:
            return rows[:0], words[:0], tuples[:0], False
        # Candidates of this pane come behind what is kept of those before.
        last, found = first, kept
        while i < n and 0 <= times[i] - first < length:
            g, word = codes[i], priority[i]
            at = g * size
            if known[at] == 0:
                for place in range(at + 1, at + size):
                    known[place] = _ANY
                below[g] = 0
            known[at] += _ONE
            if word < limit:
                below[g] += 1
                known[at + 1] = known[at + 1 + k - below[g]] if below[g] < k else _NONE
                rows[found], words[found] = i, word
                found += 1
            elif word <= known[at + 1]:
                _admit(known, at + 2, at + size - 1, word)
                known[at + 1] = known[at + 1 + k - below[g]]
                rows[found], words[found] = i, word
                found += 1
            i += 1
        for c in range(kept, found):
            at, word = codes[rows[c]] * size, words[c]
            if word < limit or word <= known[at + 1]:
                rows[kept], words[kept], tuples[kept] = rows[c], word, known[at]
                known[at] = 0
                kept += 1
    return rows[:kept].copy(), words[:kept].copy(), tuples[:kept].copy(), True


@cache
def strata_loop() -> Callable[..., Any]:
    """The loop: codes, groups, times, length of a pane, priorities, k, limit."""
    ints, words = given(types.int64), given(types.uint64)
    arguments = (ints, types.int64, ints, types.int64, words, types.int64, types.uint64)
    positions, found = made(types.int64), made(types.uint64)
    answer = types.Tuple((positions, found, positions, types.boolean))
    return compiled(answer(*arguments), _strata)


def _lacking(codes: Any, priority: Any, lacking: Any) -> Any:
    """Positions by group and ascending priority, as many as groups lack, and how many of each."""
    groups = len(lacking)
    starts, sizes = np.cumsum(lacking) - lacking, np.zeros(groups, np.int64)
    lowest = np.empty(lacking.sum(), np.int64)
    for i in range(len(codes)):
        g, word = codes[i], priority[i]
        room, first = lacking[g], starts[g]
        if room == 0:
            continue
        at = first + sizes[g]
        if sizes[g] < room:
            sizes[g] += 1
        elif word < priority[lowest[at - 1]]:
            at -= 1
        else:
            continue
        while at > first and priority[lowest[at - 1]] > word:
            lowest[at] = lowest[at - 1]
            at -= 1
        lowest[at] = i
    rows, n = np.empty(sizes.sum(), np.int64), 0
    for g in range(groups):
        for place in range(starts[g], starts[g] + sizes[g]):
            rows[n] = lowest[place]
            n += 1
    return rows, sizes


@cache
def lacking_loop() -> Callable[..., Any]:
    """The loop: codes, priorities, how many each group lacks."""
    ints, words = given(types.int64), given(types.uint64)
    positions = made(types.int64)
    return compiled(types.Tuple((positions, positions))(ints, words, ints), _lacking)
