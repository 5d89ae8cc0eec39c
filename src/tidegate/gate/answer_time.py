"""Samples when the tuples arrived that a batch is the first to answer, to measure latency."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidegate.arrival import ArrivalTimes, Floats, Int64s

MOST_POSITIONS = 4096
"""Of more tuples than this, so many stand for those that follow them: the share of tuples below a
latency is then told with an error of 1/4096 at most, and the largest latency as it is."""


@dataclass(frozen=True)
class AnsweredTuples:
    """When the tuples of one source arrived that a batch answers, in their order.

    `counts` says for how many tuples each time stands, from its own on. It is looked up when the
    batch is cut: later a source may have forgotten it.
    """

    arrived_at: Floats
    counts: Int64s

    @staticmethod
    def of(arrivals: ArrivalTimes, positions: Int64s) -> AnsweredTuples:
        """All of some positions, which are ascending."""
        edges = _edges(len(positions))
        return _of(arrivals, positions[edges[:-1]], edges)

    @staticmethod
    def of_range(arrivals: ArrivalTimes, start: int, stop: int) -> AnsweredTuples:
        """All positions [start, stop); costs no more than MOST_POSITIONS of them."""
        edges = _edges(max(stop - start, 0))
        return _of(arrivals, start + edges[:-1], edges)


def _of(arrivals: ArrivalTimes, positions: Int64s, edges: Int64s) -> AnsweredTuples:
    return AnsweredTuples(arrivals.at(positions) if len(positions) else np.empty(0), np.diff(edges))


def _edges(rows: int) -> Int64s:
    """Where groups of rows begin and end, as even as can be and no more than MOST_POSITIONS."""
    groups = min(rows, MOST_POSITIONS)
    return np.arange(groups + 1, dtype=np.int64) * rows // max(groups, 1)
