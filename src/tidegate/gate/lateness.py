"""Decides which tuples are late: one by one in the source's own sequence, so for any batch cut."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.batch import MIN_US
from tidegate.connector import Source

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]


def running_newest(times_us: Int64s, valid: Bools, floor_us: int) -> Int64s:
    """The newest event time up to and including each position, at least `floor_us`.

    A position without a readable time repeats the value before it. The result never decreases. It
    is `times_us` itself, not a copy, where that is in order.
    """
    if in_order(times_us, valid, floor_us):
        return times_us
    seen = np.where(valid, times_us, MIN_US)
    seen[0] = max(int(seen[0]), floor_us)
    return np.maximum.accumulate(seen)


def in_order(times_us: Int64s, valid: Bools, floor_us: int) -> bool:
    """Whether all times are readable, ascend, and begin at or after `floor_us`."""
    if not len(times_us):
        return True
    return bool(times_us[0] >= floor_us and valid.all() and (times_us[1:] >= times_us[:-1]).all())


def needed_disorder_us(
    times_us: Int64s, late: Bools, before_us: Int64s, disorder_us: int, consumed_us: int
) -> int:
    """The least disorder with which none of the `late` tuples would have been late; 0 without any.

    `before_us` is the newest time before each tuple in its source. Tuples below `consumed_us` came
    after the frontier had passed; a larger disorder would have held it back by as much.
    """
    times, before = times_us[late], before_us[late]
    if not len(times):
        return 0
    behind = np.maximum(before, times) - times
    behind = np.where(
        times < consumed_us, np.maximum(behind, consumed_us + disorder_us - times), behind
    )
    return int(behind.max())


def late_mask(
    times_us: Int64s, valid: Bools, floor_us: int, disorder_us: int, consumed_us: int
) -> Bools:
    """Which tuples are late: those below the newest time before them minus the allowed disorder.

    Tuples below `consumed_us`, the frontier that readers have passed, are late too. Only a source
    that joined or woke up after that can have some: a source that was there all the time has held
    the frontier back.
    """
    if in_order(times_us, valid, max(floor_us, consumed_us)):
        return np.zeros(len(times_us), np.bool_)
    newest = running_newest(times_us, valid, floor_us)
    before = np.empty_like(newest)
    before[0] = floor_us
    before[1:] = newest[:-1]
    limit = np.where(before < MIN_US + disorder_us, MIN_US, before - disorder_us)
    return np.asarray(valid & (times_us < np.maximum(limit, consumed_us)))


@dataclass(frozen=True)
class Times:
    """Event times of consecutive positions, flags of the valid ones, and their merge keys.

    The key of a position is the newest event time up to it. So keys never decrease, and a source
    that is out of order keeps its own sequence in the merge.
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
