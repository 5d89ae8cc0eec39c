"""Samples the arrival times of the tuples that a batch is the first to answer, for latency."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidegate.arrival import ArrivalTimes, Floats, Int64s

MOST_POSITIONS = 4096
"""At most so many tuples are sampled; each stands for itself and those up to the next one. The
share of tuples below a latency then has an error of 1/4096 at most, and the largest is exact."""


@dataclass(frozen=True)
class AnsweredTuples:
    """The arrival times of the tuples of one source that a batch answers, in their order.

    `counts` has the number of tuples that each time stands for, from its own tuple on. Times are
    looked up when the batch is cut, because a source may have forgotten them later.
    """

    arrived_at: Floats
    counts: Int64s

    @staticmethod
    def of(arrivals: ArrivalTimes, positions: Int64s) -> AnsweredTuples:
        """The tuples at some positions, which ascend."""
        edges = _edges(len(positions))
        return _of(arrivals, positions[edges[:-1]], edges)

    @staticmethod
    def of_range(arrivals: ArrivalTimes, start: int, stop: int) -> AnsweredTuples:
        """The tuples at positions [start, stop); costs at most MOST_POSITIONS look-ups."""
        edges = _edges(max(stop - start, 0))
        return _of(arrivals, start + edges[:-1], edges)


def _of(arrivals: ArrivalTimes, positions: Int64s, edges: Int64s) -> AnsweredTuples:
    return AnsweredTuples(arrivals.at(positions) if len(positions) else np.empty(0), np.diff(edges))


def _edges(rows: int) -> Int64s:
    """Where groups of rows begin and end: at most MOST_POSITIONS, as even as possible."""
    groups = min(rows, MOST_POSITIONS)
    return np.arange(groups + 1, dtype=np.int64) * rows // max(groups, 1)
