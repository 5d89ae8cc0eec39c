"""Merges the states of spans of neighbours, of any length, by doubling."""

from __future__ import annotations

import numpy as np

from tidegate.operate.kernels.family import (
    Family,
    States,
    join_states,
    merge_pairs,
    take_states,
)
from tidegate.operate.kernels.order import Ints


def merge_spans(family: Family, states: States, starts: Ints, first: Ints, last: Ints) -> States:
    """The merged state of [first, last) for each span; no span is empty.

    `starts` has for each state the begin of its run; no span crosses runs. Level l has at each
    place the merge of the 2**l states that end there. A span is made of one such merge for each bit
    of its length: O((states + spans) * log(longest span)) merges.
    """
    length, end = last - first, last.copy()
    level, size = states, 1
    made = take_states(states, np.zeros(0, np.int64))
    at = np.full(len(first), -1, np.int64)
    places = np.arange(len(starts))
    while size <= length.max(initial=0):
        # From the end backwards, so that the merges so far are always the later operand.
        asked = np.flatnonzero(length & size)
        new, more = asked[at[asked] < 0], asked[at[asked] >= 0]
        merged = merge_pairs(family, level, end[more] - 1, made, at[more])
        rows = len(made[0])
        made = join_states(made, take_states(level, end[new] - 1), merged)
        at[new] = rows + np.arange(len(new))
        at[more] = rows + len(new) + np.arange(len(more))
        end[asked] -= size
        wide = np.flatnonzero(places - 2 * size + 1 >= starts)
        doubled = merge_pairs(family, level, wide - size, level, wide)
        at_level = places.copy()
        at_level[wide] = len(places) + np.arange(len(wide))
        level, size = take_states(join_states(level, doubled), at_level), 2 * size
    return take_states(made, at)
