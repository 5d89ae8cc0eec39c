"""Buckets in turn, so that every instance stores the same share whatever the keys (ScaleJoin)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import pyarrow as pa

from tidegate.route.bucket import hash_of
from tidegate.route.mapping import Mapping
from tidegate.route.partitioner import Int32s, Partitioner, Units


@dataclass(frozen=True)
class RoundRobin(Partitioner):
    """In turn over the instances, and then over the buckets of each, in the order of the source.

    A split goes on where the split before it ended, because a tuple's number is its position.
    Behind a filter the number of tuples before a split is not known. A start by hash then prevents
    that a filter which passes every n-th tuple favours one instance. Total work does not depend on
    the instances.
    """

    name: ClassVar[str] = "round-robin"
    splits_keys: ClassVar[bool] = True

    def buckets(self, units: Units, mapping: Mapping) -> Int32s:
        first = _first(units.source, units.start if units.filtered else 0)
        number = np.arange(units.rows, dtype=np.int64) + first
        number += 0 if units.filtered else units.start
        bucket = np.empty(units.rows, np.int32)
        owners = np.unique(mapping.owner_array)  # an instance may own none
        for place, instance in enumerate(owners):
            mine = np.flatnonzero(mapping.owner_array == instance).astype(np.int32)
            chosen = number % len(owners) == place
            bucket[chosen] = mine[number[chosen] // len(owners) % len(mine)]
        return bucket


@lru_cache(maxsize=1_024)
def _first(source: str, start: int) -> int:
    """The number with which a source begins, or a split of it: a hash, the same in any process."""
    return int(hash_of([pa.array([source]), pa.array([start])])[0] >> np.uint64(32))
