"""Numbers the keys of several tables, so that equal keys have equal numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from tidegate.operate.kernels.group import Groups, dense, pack, rank
from tidegate.operate.kernels.order import Ints, Mask, flat, valid
from tidegate.route.bucket import hash_of

Keys = Sequence[pa.Array | pa.ChunkedArray]


@dataclass(frozen=True)
class SharedKeyCodes:
    """The numbers of the keys of some tables; `groups` has their rows one after the other."""

    groups: Groups
    ends: Ints

    @staticmethod
    def of(tables: Sequence[Keys], rows: Sequence[int]) -> SharedKeyCodes:
        columns = zip(*tables, strict=True)
        ranks = [rank(pa.concat_arrays([flat(c) for c in parts])) for parts in columns]
        return SharedKeyCodes(dense(pack(ranks, sum(rows))), np.cumsum(rows))

    @property
    def count(self) -> int:
        return self.groups.n

    @cached_property
    def parts(self) -> list[Ints]:
        """The numbers of each table."""
        return np.split(self.groups.codes, self.ends[:-1])


def present(keys: Keys, rows: int) -> Mask:
    """Which rows have a key: NULL is none."""
    mask = np.ones(rows, np.bool_)
    for column in keys:
        known = valid(flat(column))
        if known is not None:
            mask &= known
    return mask


def hashed(keys: Keys, rows: int) -> Ints:
    """62 bits for every row, equal where the keys are: a tuple is found by them, not known."""
    if not keys:
        return np.zeros(rows, np.int64)
    return (hash_of([flat(k) for k in keys]) >> np.uint64(2)).astype(np.int64)
