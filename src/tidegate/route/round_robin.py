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
    """In the order of the source, over the instances and then over the buckets of each.

    A source goes on where its split before ended. Behind a filter that is not known; a place by
    hash then keeps a filter that lets every n-th tuple pass from favouring an instance.
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
    """Where a source begins, or a split of it."""
    return int(hash_of([pa.array([source]), pa.array([start])])[0] >> np.uint64(32))
