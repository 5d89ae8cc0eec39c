"""Frames of OVER: the tuples of its key that a tuple looks at, as ranges of places."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tidegate.operate.kernels.join.bisect import bisect
from tidegate.operate.kernels.order import Ints
from tidegate.operate.over.run import KeyRuns


class Frame(Protocol):
    """A frame that ends with the tuple itself, or with the tuples of its time.

    It is `running` if it begins with the first tuple of the key.
    """

    @property
    def rows(self) -> int:
        """It begins at most so many tuples before, whatever their times."""

    @property
    def reach_us(self) -> int:
        """It begins at most so long before; 0 where `rows` is the limit."""

    @property
    def running(self) -> bool: ...

    def bounds(self, runs: KeyRuns) -> tuple[Ints, Ints]:
        """For each new tuple, in the order of places: the first place, and the one after the last.

        In a running frame the newest stored tuple replaces all stored ones.
        """


@dataclass(frozen=True)
class RowsFrame:
    """ROWS: the tuple and the `preceding` ones before it in the total order; None for all."""

    preceding: int | None
    reach_us = 0

    @property
    def rows(self) -> int:
        return self.preceding or 0

    @property
    def running(self) -> bool:
        return self.preceding is None

    def bounds(self, runs: KeyRuns) -> tuple[Ints, Ints]:
        at = runs.at
        if self.preceding is None:
            return _since(runs), at + 1
        return np.maximum(runs.starts[at], at - self.preceding), at + 1


@dataclass(frozen=True)
class RangeFrame:
    """RANGE: all tuples of the same time, and those at most `preceding_us` before."""

    preceding_us: int | None
    rows = 0

    @property
    def reach_us(self) -> int:
        return self.preceding_us or 0

    @property
    def running(self) -> bool:
        return self.preceding_us is None

    def bounds(self, runs: KeyRuns) -> tuple[Ints, Ints]:
        at, now = runs.at, runs.ts[runs.at]
        last = bisect(runs.ts, now + 1, at, runs.ends[at])
        if self.preceding_us is None:
            return _since(runs), last
        return bisect(runs.ts, now - self.preceding_us, runs.starts[at], at), last


def _since(runs: KeyRuns) -> Ints:
    fresh = runs.fresh[runs.at]
    return np.where(fresh > runs.starts[runs.at], fresh - 1, fresh)
