"""The numbers of a running query as a person wants them, from the reports of its batches."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from tidegate.batch import MAX_US, MIN_US
from tidegate.driver.latency import RECENT_BATCHES, Quantiles
from tidegate.driver.metrics import BatchReport, Held

_RATE_S = 5.0
"""The input rate is over the batches that ended in so many seconds, or the newest one."""

_QUIET_S = 2.0
_KEPT_SWITCHES = 3


@dataclass(frozen=True)
class Sample:
    """One batch on the clock."""

    began_at: float
    ended_at: float
    rows: int


@dataclass(frozen=True)
class Switch:
    """A change of the number of instances, with the batch that was the first to run with it.

    `subquery` is None where all changed in the same way.
    """

    batch: int
    before: int
    after: int
    at: float
    subquery: str | None = None


@dataclass
class Work:
    """What a subquery has done in this run, and how it stands after the newest batch."""

    instances: int = 0
    tuples: int = 0
    rows: int = 0
    cpu_us: int = 0
    state_rows: int = 0


class Status:
    """What a view shows of a run; fed by one thread, read by another.

    Counts begin with those of the checkpoint, so that they agree with the summary at the end.
    Grows with the subqueries and outputs of a query.
    """

    def __init__(self, begun_at: float, counters: Mapping[str, int] | None = None) -> None:
        self.begun_at = begun_at
        self.counters = Counter(counters or {})
        self.newest: BatchReport | None = None
        self.start_s = 0.0
        self.latency: Quantiles | None = None
        """Of the newest batch that has answered live tuples."""
        self.switches: deque[Switch] = deque(maxlen=_KEPT_SWITCHES)
        self.works: dict[str, Work] = {}
        """By subquery, where there are several."""
        self.output_rows: Counter[str] = Counter()
        """By output, in this run; where outputs have names."""
        self._samples: deque[Sample] = deque(maxlen=1000)
        self._seconds: deque[float] = deque(maxlen=RECENT_BATCHES)

    def add(self, report: BatchReport, now: float) -> None:
        """Take in a batch that was committed just now."""
        for name in ("rows_in", "rows_out", "rows_late", "rows_rejected", "rows_shed"):
            self.counters[name] += getattr(report, name)
        self.start_s += report.start_s
        self.latency = report.latency or self.latency
        self.output_rows.update(report.output_rows)
        if self.newest is not None:
            self.switches.extend(_switches(self.newest, report, now))
        self._count_works(report)
        self._samples.append(Sample(now - report.seconds, now, report.rows_in))
        self._seconds.append(report.seconds)
        self.newest = report

    def _count_works(self, report: BatchReport) -> None:
        instances = Counter(report.subqueries)
        if len(instances) < 2:
            return
        works = dict(self.works)
        for name, count in instances.items():
            work = works.setdefault(name, Work())
            work.instances, work.state_rows = count, report.state_by.get(name, 0)
        for name, counts in zip(report.subqueries, report.instance_counts, strict=True):
            works[name].tuples += counts.get("taken", 0)
            works[name].rows += counts.get("outputs", 0)
            works[name].cpu_us += counts.get("cpu_us", 0) + counts.get("map_cpu_us", 0)
        self.works = works

    def quiet(self, now: float) -> bool:
        """Whether no batch has ended for longer than one takes: the query waits for input."""
        if self.newest is None:
            return False
        return now - self._samples[-1].ended_at > max(_QUIET_S, 2 * self.newest.seconds)

    def rows_per_second(self, now: float) -> float:
        """Rows taken in per second of wall time, waiting included, starting not."""
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
        """How far the watermark is behind the newest event; None before there is one."""
        if self.newest is None or self.newest.frontier_us == MIN_US:
            return None
        if self.newest.frontier_us == MAX_US:
            return 0
        return max(self.newest.newest_us - self.newest.frontier_us, 0)

    @property
    def held(self) -> Held | None:
        """The source that the watermark waits for, where others are ahead of it."""
        if self.newest is None or self.newest.held is None:
            return None
        held = self.newest.held
        return held if held.newest_us < self.newest.newest_us else None


def _switches(before: BatchReport, after: BatchReport, now: float) -> list[Switch]:
    """What has changed from a batch to the next, as one where all subqueries changed alike."""
    was, now_has = Counter(before.subqueries), Counter(after.subqueries)
    changed = [(was[n], now_has[n], n) for n in now_has if was[n] != now_has[n]]
    alike = len({pair[:2] for pair in changed}) == 1 and len(changed) == len(now_has)
    if alike or not now_has:
        if before.instances == after.instances:
            return []
        return [Switch(after.batch, before.instances, after.instances, now)]
    return [Switch(after.batch, one, other, now, name) for one, other, name in changed]
