"""Frames of OVER: which tuples of its key a tuple looks at, as ranges of places."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tidegate.operate.kernels.bisect import bisect
from tidegate.operate.kernels.order import Ints
from tidegate.operate.over.run import KeyRuns


class Frame(Protocol):
    """From some tuple up to the tuple itself; `running` where it begins with the key."""

    @property
    def rows(self) -> int:
        """How many tuples before one of a key it may look at, whatever their times."""

    @property
    def reach_us(self) -> int:
        """How far back it looks otherwise."""

    @property
    def running(self) -> bool: ...

    def bounds(self, runs: KeyRuns) -> tuple[Ints, Ints]:
        """By new tuple, in the order of places: the first place, and the one after the last.

        Where it is running, the newest stored tuple stands for all that were stored.
        """


@dataclass(frozen=True)
class RowsFrame:
    """The tuple and the `preceding` ones before it in the total order; None for all."""

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
    """The tuples of the same instant, also later ones, and those at most so long before."""

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
