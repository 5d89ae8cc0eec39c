"""Records when tuples of a source arrived, to measure latency."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Int64s = NDArray[np.int64]
Floats = NDArray[np.float64]

BEFORE = -math.inf
"""The arrival time of tuples that were there before anybody looked."""

_MOST_LOOKS = 1024


class ArrivalTimes(Protocol):
    """Maps positions of one source to arrival times in seconds on the source's clock.

    Must not hold one object per tuple. Times never decrease with the position; they are BEFORE for
    tuples that were there from the start.
    """

    def at(self, positions: Int64s) -> Floats:
        """Arrival times of known positions; `positions` is ascending and not empty."""

    def drop(self, position: int) -> None:
        """Frees what is held before this position; nobody asks for it again."""


@dataclass(frozen=True)
class Together:
    """Tuples that arrived all at once, for example a file that appeared complete."""

    at_s: float

    def at(self, positions: Int64s) -> Floats:
        return np.full(len(positions), self.at_s)

    def drop(self, position: int) -> None:
        """Does nothing: there is only one number."""


class Growth:
    """When the parts of a growing input arrived, estimated from looks at its length.

    What came between two looks counts as having come evenly between them: it may have come at any
    time since the first look, and the second look is as late as a batch takes. Holds three numbers
    per look that found more, until dropped; at most 1024 looks, then neighbours are merged.
    """

    def __init__(self, length: int, at_s: float, looked_at: float) -> None:
        self._lengths = [length]
        self._begun = [at_s]
        self._ended = [at_s]
        self._looked_at = looked_at
        self._low = 0
        """The length up to which looks were dropped."""

    def __len__(self) -> int:
        """The number of looks held."""
        return len(self._lengths)

    def look(self, length: int, now: float) -> None:
        """Records the length now."""
        if length > self._lengths[-1]:
            if len(self) >= _MOST_LOOKS:
                self._join_neighbours()
            self._lengths.append(length)
            self._begun.append(self._looked_at)
            self._ended.append(now)
        self._looked_at = now

    def _join_neighbours(self) -> None:
        pairs = zip(self._begun[::2], self._begun[1::2], strict=True)
        self._begun = [one if one > BEFORE else other for one, other in pairs]
        self._lengths, self._ended = self._lengths[1::2], self._ended[1::2]

    def at(self, places: Floats | Int64s) -> Floats:
        """When the input had reached each of these lengths, all at least the oldest look's."""
        lengths = np.array(self._lengths, np.float64)
        begun, ended = np.array(self._begun), np.array(self._ended)
        which = np.minimum(np.searchsorted(lengths, places, "left"), len(lengths) - 1)
        low = np.concatenate([[self._low], lengths[:-1]])[which]
        share = np.clip((places - low) / np.maximum(lengths[which] - low, 1), 0.0, 1.0)
        span = np.subtract(ended, begun, where=ended > begun, out=np.zeros(len(ended)))
        found: Floats = begun[which] + share * span[which]
        return found

    def drop(self, length: int) -> None:
        """Drops the looks up to this length; the newest look is kept."""
        passed = 0
        while passed < len(self) - 1 and self._lengths[passed] <= length:
            passed += 1
        if passed:
            self._low = self._lengths[passed - 1]
            del self._lengths[:passed], self._begun[:passed], self._ended[:passed]
