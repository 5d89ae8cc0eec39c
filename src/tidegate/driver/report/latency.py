"""Measures end-to-end latency: from the arrival of a tuple to the commit that answers it.

docs/figures.md and decision 0043 say what it includes.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tidegate.arrival import Floats, Int64s

if TYPE_CHECKING:
    from tidegate.gate.answer_time import AnsweredTuples

RELATIVE_ERROR = 0.01
"""The relative error of a quantile over a run."""

RECENT_BATCHES = 100
"""The status covers so many of the newest batches; Spark keeps the progress of as many."""

_LEAST_S, _MOST_S = 1e-6, 1e6
"""The range of the buckets, from a microsecond to 11 days; values outside go to the end buckets."""

_RATIO = (1 + RELATIVE_ERROR) / (1 - RELATIVE_ERROR)
_BUCKETS = math.ceil(math.log(_MOST_S / _LEAST_S) / math.log(_RATIO)) + 1


@dataclass(frozen=True)
class Quantiles:
    """Quantiles of the latencies of `tuples` tuples, in milliseconds."""

    tuples: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float

    @staticmethod
    def of(tuples: int, seconds: Sequence[float]) -> Quantiles:
        p50, p95, p99, most = (round(float(s) * 1e3, 3) for s in seconds)
        return Quantiles(tuples, p50, p95, p99, most)

    def percentiles(self) -> list[tuple[str, float]]:
        """The names and milliseconds as they are shown."""
        names = ("p50", "p95", "p99", "max")
        return list(zip(names, (self.p50_ms, self.p95_ms, self.p99_ms, self.max_ms), strict=True))

    def as_dict(self) -> dict[str, float]:
        """The form of summary and status."""
        return {**dict(self.percentiles()), "tuples": self.tuples}


_SHARES = (0.5, 0.95, 0.99, 1.0)


@dataclass(frozen=True)
class LatencyBins:
    """The latencies of one batch, counted in the buckets of a sketch."""

    buckets: Int64s
    counts: Int64s
    most_s: float

    @staticmethod
    def of(seconds: Floats, counts: Int64s) -> LatencyBins:
        """Count latencies, each `counts` times; both arrays have the same length."""
        logs = np.log(np.maximum(seconds, _LEAST_S) / _LEAST_S) / math.log(_RATIO)
        places = np.minimum(np.ceil(logs).astype(np.int64), _BUCKETS - 1)
        buckets, back = np.unique(places, return_inverse=True)
        sums = np.zeros(len(buckets), np.int64)
        np.add.at(sums, back, counts)
        return LatencyBins(buckets, sums, float(seconds.max(initial=0.0)))


class Sketch:
    """Counts latencies in buckets whose bounds grow by 2 percent: 11 kB for any number of tuples.

    A quantile is within RELATIVE_ERROR of the latency with its rank, down to a microsecond; the
    maximum is exact. `tests/driver/test_latency.py` checks both against a sorted list. With
    `newest`, only that many of the newest batches count; their bins are held as well.
    """

    def __init__(self, newest: int | None = None) -> None:
        self._counts = np.zeros(_BUCKETS, np.int64)
        self._most_s = 0.0
        self._newest: deque[LatencyBins] | None = None if newest is None else deque()
        self._length = newest or 0

    def add(self, batch: LatencyBins) -> None:
        """Add the latencies of a batch."""
        self._counts[batch.buckets] += batch.counts
        self._most_s = max(self._most_s, batch.most_s)
        if self._newest is not None:
            self._newest.append(batch)
            if len(self._newest) > self._length:
                oldest = self._newest.popleft()
                self._counts[oldest.buckets] -= oldest.counts
                self._most_s = max(one.most_s for one in self._newest)

    def upto(self, bounds_s: Sequence[float]) -> tuple[list[int], int]:
        """How many are at most each of these bounds, which count as within RELATIVE_ERROR of where
        they are, and how many there are."""
        upto = np.cumsum(self._counts)
        places = np.floor(np.log(np.array(bounds_s) / _LEAST_S) / math.log(_RATIO) + 0.5)
        return upto[places.astype(np.int64)].tolist(), int(upto[-1])

    def quantiles(self) -> Quantiles | None:
        """The quantiles of all counted latencies; None if there are none."""
        upto = np.cumsum(self._counts)
        total = int(upto[-1])
        if not total:
            return None
        ranks = [math.ceil(share * total) for share in _SHARES[:-1]]
        middles = _LEAST_S * 2 * _RATIO ** np.searchsorted(upto, ranks) / (_RATIO + 1)
        return Quantiles.of(total, [*np.minimum(middles, self._most_s), self._most_s])


class LatencyLog:
    """The latencies of one run: exact for each batch, in sketches over the run.

    Tuples that arrived before `ready` count from `ready` on: the run could not have answered input
    that was already there, or that came while Spark started. Costs some thousand numbers per batch
    and source, for any number of tuples.
    """

    def __init__(self, now: float) -> None:
        self._ready_at = now
        self._first: Quantiles | None = None
        self._run, self._later, self._recent = Sketch(), Sketch(), Sketch(RECENT_BATCHES)
        self._total_s = 0.0
        self.newest_sum: tuple[float, int] = 0.0, 0
        """The sum of the latencies of the newest batch in seconds, and its tuples."""

    def ready(self, now: float) -> None:
        """Note that the run can take input from now on; called before the first commit."""
        self._ready_at = now

    def committed(self, completed: Sequence[AnsweredTuples], at: float) -> Quantiles | None:
        """Add the latencies of a batch that was committed at `at`; None if it answers nothing."""
        arrived = [np.maximum(one.arrived_at, self._ready_at) for one in completed]
        seconds = np.maximum(at - np.concatenate([np.empty(0), *arrived]), 0.0)
        counts = np.concatenate([np.empty(0, np.int64), *(one.counts for one in completed)])
        self.newest_sum = float(seconds @ counts), int(counts.sum())
        self._total_s += self.newest_sum[0]
        found, binned = exact(seconds, counts), LatencyBins.of(seconds, counts)
        for sketch in (self._run, *([self._later, self._recent] if self._first else [])):
            sketch.add(binned)
        self._first = self._first or found
        return found

    def upto(self, bounds_s: Sequence[float]) -> tuple[list[int], int, float]:
        """The tuples of the run that took at most each of these times, all tuples, and the sum of
        their latencies in seconds; called by any thread."""
        return *self._run.upto(bounds_s), self._total_s

    def recent(self) -> Quantiles | None:
        """The latencies of recent batches; None if none were measured.

        The first batch counts only while there is no other: it pays for the start.
        """
        return self._recent.quantiles() or self._first

    def as_dict(self) -> dict[str, dict[str, float] | None]:
        """The form of summary and status; called by any thread.

        The first batch is separate: it often pays for loading and compiling.
        """
        named = {
            "latency_ms": self._run.quantiles(),
            "latency_first_batch_ms": self._first,
            "latency_later_batches_ms": self._later.quantiles(),
            "latency_recent_batches_ms": self.recent(),
        }
        return {name: None if one is None else one.as_dict() for name, one in named.items()}


def exact(seconds: Floats, counts: Int64s) -> Quantiles | None:
    """The exact quantiles of latencies with their counts; None if there are none."""
    if not len(seconds):
        return None
    order = np.argsort(seconds)
    upto = np.cumsum(counts[order])
    ranks = [math.ceil(share * int(upto[-1])) for share in _SHARES]
    return Quantiles.of(int(upto[-1]), list(seconds[order][np.searchsorted(upto, ranks)]))
