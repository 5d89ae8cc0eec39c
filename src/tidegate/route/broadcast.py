"""Sends every tuple to all buckets: each object of a process without keys sees the whole stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tidegate.route.mapping import Mapping
from tidegate.route.partitioner import EVERY_BUCKET, Int32s, Partitioner, Units


@dataclass(frozen=True)
class Broadcast(Partitioner):
    """Every unit goes to every bucket. Total work grows with the buckets, by design."""

    name: ClassVar[str] = "broadcast"
    splits_keys: ClassVar[bool] = False

    def buckets(self, units: Units, mapping: Mapping) -> Int32s:
        return np.full(units.rows, EVERY_BUCKET, np.int32)
