"""The numbers of a running query as a person wants them, from the reports of its batches."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from tidegate.batch import MAX_US, MIN_US
from tidegate.driver.metrics import BatchReport

_RATE_S = 5.0
"""The input rate is over the batches that ended in so many seconds, or the newest one."""

_QUIET_S = 2.0
_MEDIAN_BATCHES = 100
_KEPT_SWITCHES = 3


@dataclass(frozen=True)
class Sample:
    """One batch on the clock."""

    began_at: float
    ended_at: float
    rows: int


@dataclass(frozen=True)
class Switch:
    """A change of the number of instances, with the batch that was the first to run with it."""

    batch: int
    before: int
    after: int
    at: float


class Status:
    """What a view shows of a run; fed by one thread, read by another.

    Counts begin with those of the checkpoint, so that they agree with the summary at the end.
    """

    def __init__(self, begun_at: float, counters: Mapping[str, int] | None = None) -> None:
        self.begun_at = begun_at
        self.counters = Counter(counters or {})
        self.newest: BatchReport | None = None
        self.switches: deque[Switch] = deque(maxlen=_KEPT_SWITCHES)
        self._samples: deque[Sample] = deque(maxlen=1000)
        self._seconds: deque[float] = deque(maxlen=_MEDIAN_BATCHES)

    def add(self, report: BatchReport, now: float) -> None:
        """Take in a batch that was committed just now."""
        for name in ("rows_in", "rows_out", "rows_late", "rows_rejected"):
            self.counters[name] += getattr(report, name)
        before = self.newest
        if before is not None and before.instances != report.instances:
            self.switches.append(Switch(report.batch, before.instances, report.instances, now))
        self._samples.append(Sample(now - report.seconds, now, report.rows_in))
        self._seconds.append(report.seconds)
        self.newest = report

    def quiet(self, now: float) -> bool:
        """Whether no batch has ended for longer than one takes: the query waits for input."""
        if self.newest is None:
            return False
        return now - self._samples[-1].ended_at > max(_QUIET_S, 2 * self.newest.seconds)

    def rows_per_second(self, now: float) -> float:
        """Rows taken in per second of wall time, waiting included."""
        samples = list(self._samples)
        first = next((i for i, s in enumerate(samples) if s.ended_at > now - _RATE_S), None)
        quiet = self.quiet(now)
        if first is None:
            if quiet or not samples:
                return 0.0
            first = len(samples) - 1
        # From the end of the batch before, so that waiting between batches counts.
        since = samples[first - 1].ended_at if first else samples[0].began_at
        until = now if quiet else samples[-1].ended_at
        return sum(s.rows for s in samples[first:]) / (until - since) if until > since else 0.0

    @property
    def median_s(self) -> float:
        return median(list(self._seconds) or [0.0])

    @property
    def lag_us(self) -> int | None:
        """How far the frontier is behind the newest event; None before there is a frontier."""
        if self.newest is None or self.newest.frontier_us == MIN_US:
            return None
        if self.newest.frontier_us == MAX_US:
            return 0
        return max(self.newest.newest_us - self.newest.frontier_us, 0)
