"""Counts what one split sends to each instance, by pane, and the time that choosing took."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tidegate.clock import Clock
from tidegate.route.mapping import Mapping
from tidegate.route.partitioner import Int32s, Int64s

_SPARE = 1_024


@dataclass(frozen=True)
class PaneCounts:
    """Tuples by pane and instance, for pairs with any, and for the first instance of each pane."""

    panes: Int64s
    instances: Int64s
    tuples: Int64s


class Sent:
    """Counts the choices of a router; one object for each split, used by one thread."""

    def __init__(self, mapping: Mapping, clock: Clock) -> None:
        self._mapping = mapping
        self._clock = clock
        self.seconds = 0.0
        """The time that choosing took."""
        self.counts = PaneCounts(*(np.empty(0, np.int64) for _ in range(3)))

    @contextmanager
    def choosing(self) -> Iterator[None]:
        """Measures the time of the block, which is the work of the partitioner."""
        begun = self._clock.now()
        yield
        self.seconds += self._clock.now() - begun

    def count(self, panes: Int64s, buckets: Int32s, tuples: Int64s | None = None) -> None:
        """Count all units of the split; `tuples` is the number of tuples of each, None for one.

        Costs O(units) if panes lie close together.
        """
        if not len(panes):
            return
        instances = self._mapping.instances
        places, numbers = _numbered(panes)
        owners = self._mapping.owner_array[buckets]
        codes = numbers * instances + owners
        weights = None if tuples is None else tuples.astype(np.float64)  # exact up to 2 to the 53
        total = np.bincount(codes, weights, len(places) * instances).reshape(-1, instances)
        told = total > 0
        told[:, 0] |= told.any(axis=1)  # so that every pane that occurs has a row
        pane, instance = np.nonzero(told)
        self.counts = PaneCounts(places[pane], instance, total[told].astype(np.int64))


def _numbered(panes: Int64s) -> tuple[Int64s, npt.NDArray[np.int64]]:
    """The panes in order, some perhaps without a unit, and the index of each unit's pane."""
    low, high = int(panes.min()), int(panes.max())
    if high - low <= 2 * len(panes) + _SPARE:
        return np.arange(low, high + 1), panes - low
    places, numbers = np.unique(panes, return_inverse=True)
    return places, numbers.reshape(-1)
