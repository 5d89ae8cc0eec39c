"""Sorts values within groups."""

from __future__ import annotations

import numpy as np

from tidegate.operate.kernels.group import Groups, stable_order
from tidegate.operate.kernels.order import Floats, Ints

_FEW = 1_024
"""Up to so many values numpy sorts faster than the compiled loop is loaded."""

_TOGETHER = 4


def sorted_rows(groups: Groups, keys: Ints | Floats, stable: bool = False) -> Ints:
    """The rows by group, then by key, NaN last; equal keys in any order unless `stable`."""
    if len(keys) > _FEW:
        return _by_loop(groups, keys, stable)[0]
    by_key = np.argsort(keys, stable=stable)
    return by_key[stable_order(groups.codes[by_key], groups.n)]


def sorted_values(groups: Groups, values: Floats) -> Floats:
    """The values group after group, ascending in each; NaN is greatest.

    Costs O(values) where the values of each group ascend already, or are a few ascending lists.
    """
    if len(values) > _FEW:
        return _by_loop(groups, values)[1]
    return values[sorted_rows(groups, values)]


def order_of_hashes(codes: Floats, bits: int) -> Ints:
    """The stable order of whole numbers that are spread evenly over so many bits; NaN last.

    A bucket sort: O(codes), because an even spread leaves few codes in one bucket. It is right for
    any spread, and only slower.
    """
    count = max(len(codes) // _TOGETHER, 1)
    near = np.where(np.isnan(codes), count, codes * (count / 2.0**bits)).astype(np.int64)
    return sorted_rows(Groups(near, count + 1), codes, stable=True)


def _by_loop(groups: Groups, keys: Ints | Floats, stable: bool = False) -> tuple[Ints, Floats]:
    from tidegate.operate.kernels.sort_loop import loop

    given = map(np.ascontiguousarray, (groups.codes, groups.counts, keys))
    rows, ranked, left_out = loop(keys.dtype.name)(*given)
    for begin, end in left_out:
        some = slice(begin, end)
        order = np.argsort(ranked[some], stable=stable)
        rows[some], ranked[some] = rows[some][order], ranked[some][order]
    return rows, ranked
