"""Lateness, decided tuple by tuple in the source's own sequence, so that no batch cut matters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tidegate.batch import MIN_US

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]


def running_newest(times_us: Int64s, valid: Bools, floor_us: int) -> Int64s:
    """The newest event time up to and including each position, starting from `floor_us`.

    Positions without a readable time repeat the value before them. Non-decreasing. Times that are
    in order already come back as they are, not copied.
    """
    if in_order(times_us, valid, floor_us):
        return times_us
    seen = np.where(valid, times_us, MIN_US)
    seen[0] = max(int(seen[0]), floor_us)
    return np.maximum.accumulate(seen)


def in_order(times_us: Int64s, valid: Bools, floor_us: int) -> bool:
    """Whether all times are readable, never go back, and begin at or after `floor_us`."""
    if not len(times_us):
        return True
    return bool(times_us[0] >= floor_us and valid.all() and (times_us[1:] >= times_us[:-1]).all())


def needed_disorder_us(
    times_us: Int64s, late: Bools, before_us: Int64s, disorder_us: int, consumed_us: int
) -> int:
    """The least disorder with which none of these tuples would have been late; 0 for none.

    `before_us` is the newest time before each of them in its source. What is below `consumed_us`
    came after the frontier, which a larger disorder would have held back by as much.
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
    """Which tuples are late: below the newest before them minus the allowed disorder.

    Also late is what lies below `consumed_us`, the frontier that readers have already passed;
    that can only happen to a source that joined or woke up after it (a source that was there all
    the time cannot have held such a tuple back).
    """
    if in_order(times_us, valid, max(floor_us, consumed_us)):
        return np.zeros(len(times_us), np.bool_)
    newest = running_newest(times_us, valid, floor_us)
    before = np.empty_like(newest)
    before[0] = floor_us
    before[1:] = newest[:-1]
    limit = np.where(before < MIN_US + disorder_us, MIN_US, before - disorder_us)
    return np.asarray(valid & (times_us < np.maximum(limit, consumed_us)))


class HasTimes(Protocol):
    """Where event times are read from."""

    def times(self, start: int, stop: int) -> tuple[Int64s, Bools]: ...


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
    def read(source: HasTimes, start: int, stop: int, floor_us: int) -> Times:
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
