"""Merges the states of spans of neighbours, any length each, by doubling."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tidegate.operate.kernels.family import Family, States
from tidegate.operate.kernels.group import Groups
from tidegate.operate.kernels.order import Ints


def merge_spans(family: Family, states: States, starts: Ints, first: Ints, last: Ints) -> States:
    """The states of [first, last), one for each span; none is empty.

    `starts` says by state where its run begins, which no span crosses. A level has the merges of
    1, 2, 4, ... neighbours up to each place, and a span is made of those of the bits of its length:
    O((states + spans) * log(longest span)) merges.
    """
    length, end = last - first, last.copy()
    level, size = states, 1
    made = _take(states, np.zeros(0, np.int64))
    at = np.full(len(first), -1, np.int64)
    places = np.arange(len(starts))
    while size <= length.max(initial=0):
        asked = np.flatnonzero(length & size)
        new, more = asked[at[asked] < 0], asked[at[asked] >= 0]
        merged = _pairs(family, level, end[more] - 1, made, at[more])
        rows = len(made[0])
        made = _joined(made, _take(level, end[new] - 1), merged)
        at[new] = rows + np.arange(len(new))
        at[more] = rows + len(new) + np.arange(len(more))
        end[asked] -= size
        wide = np.flatnonzero(places - 2 * size + 1 >= starts)
        doubled = _pairs(family, level, wide - size, level, wide)
        at_level = places.copy()
        at_level[wide] = len(places) + np.arange(len(wide))
        level, size = _take(_joined(level, doubled), at_level), 2 * size
    return _take(made, at)


def _pairs(family: Family, earlier: States, one: Ints, later: States, other: Ints) -> States:
    if not len(one):
        return _take(earlier, one)
    both = _joined(_take(earlier, one), _take(later, other))
    return family.merge(Groups(np.tile(np.arange(len(one)), 2), len(one)), both)


def _take(states: States, rows: Ints) -> States:
    picked = pa.array(rows)
    return [column.take(picked) for column in states]


def _joined(*parts: States) -> States:
    return [pa.concat_arrays(columns) for columns in zip(*parts, strict=True)]
