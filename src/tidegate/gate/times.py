"""Event times of consecutive positions of one source, with the keys they are merged by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidegate.connector import Source
from tidegate.gate.lateness import Bools, Int64s, running_newest


@dataclass(frozen=True)
class Times:
    """Event times of consecutive positions, which of them are valid, and their merge keys.

    A position's key is the newest event time up to it, so keys never decrease and a source that is
    out of order keeps its own sequence in the merge.
    """

    times: Int64s
    valid: Bools
    keys: Int64s

    @staticmethod
    def empty() -> Times:
        return Times(np.empty(0, np.int64), np.empty(0, np.bool_), np.empty(0, np.int64))

    @staticmethod
    def read(source: Source, start: int, stop: int, floor_us: int) -> Times:
        times, valid = source.times(start, stop)
        return Times(times, valid, running_newest(times, valid, floor_us))

    def joined(self, other: Times) -> Times:
        if not len(self.keys):
            return other
        return Times(
            np.concatenate([self.times, other.times]),
            np.concatenate([self.valid, other.valid]),
            np.concatenate([self.keys, other.keys]),
        )

    def split(self, rows: int) -> tuple[Times, Times]:
        head = Times(self.times[:rows], self.valid[:rows], self.keys[:rows])
        return head, Times(self.times[rows:], self.valid[rows:], self.keys[rows:])
