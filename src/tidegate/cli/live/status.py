"""The numbers of a running query for people, computed from the reports of its batches."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from tidegate.batch import MAX_US, MIN_US
from tidegate.driver.metric.metric import RunMetric
from tidegate.driver.metric.progress import SlowestSource
from tidegate.driver.metric.registry import COUNTERS
from tidegate.driver.report.latency import RECENT_BATCHES, Quantiles
from tidegate.driver.report.metrics import BatchReport

_RATE_S = 5.0
"""The input rate covers the batches that ended in this many seconds, at least the newest."""

_QUIET_S = 2.0
_KEPT_SWITCHES = 3


@dataclass(frozen=True)
class SwitchNote:
    """A change of the number of instances, and the first batch that ran with it.

    `subquery` is None if all subqueries changed alike.
    """

    batch: int
    before: int
    after: int
    at: float
    subquery: str | None = None


class ViewStatus:
    """The state behind a view of a run; one thread writes it, another reads it.

    Counts continue those of the checkpoint, so that they match the summary at the end. Grows with
    the subqueries and outputs of a query.
    """

    def __init__(self, begun_at: float, counters: Mapping[str, int] | None = None) -> None:
        self.begun_at = begun_at
        self.counters = Counter(counters or {})
        self.newest: BatchReport | None = None
        self.start_s = 0.0
        self.latency: Quantiles | None = None
        """Of the newest batch that has answered live tuples."""
        self.state_peak = (0, 0)
        """The most rows of state that a batch of this run has left, and the most bytes."""
        self.switches: deque[SwitchNote] = deque(maxlen=_KEPT_SWITCHES)
        self.subqueries: dict[str, Counter[str]] = {}
        """By subquery, where there are several, the sums of what its instances counted in this run.

        And the `instances` and `state_rows` that it has now."""
        self.output_rows: Counter[str] = Counter()
        """By output, in this run; where outputs have names."""
        self._batches: deque[tuple[float, float, int]] = deque(maxlen=1000)
        """When each ended, what it took, and how many rows it had."""

    def add(self, report: BatchReport, now: float) -> None:
        """Adds a batch that was just committed."""
        for metric in COUNTERS:
            self.counters[metric.name] += getattr(report, metric.name)
        self.start_s += report.start_s
        self.latency = report.latency or self.latency
        self.output_rows.update(report.output_rows)
        if self.newest is not None:
            self.switches.extend(_switches(self.newest, report, now))
        rows, size = self.state_peak
        self.state_peak = max(rows, report.state_rows), max(size, report.state_bytes)
        self._add_subqueries(report)
        self._batches.append((now, report.seconds, report.rows_in))
        self.newest = report

    def _add_subqueries(self, report: BatchReport) -> None:
        instances = Counter(report.subqueries)
        if len(instances) < 2:
            return
        sums = {name: Counter(self.subqueries.get(name, {})) for name in instances}
        for name, counts in zip(report.subqueries, report.instance_counts, strict=True):
            sums[name].update(counts)
        for name, count in instances.items():
            sums[name].update(instances=count - sums[name]["instances"])
            sums[name]["state_rows"] = report.state_by.get(name, 0)
        self.subqueries = sums

    def value(self, metric: RunMetric) -> float:
        """The shown value of a metric: the sum of a counter, else the newest batch's."""
        if metric.count is not None:
            return self.counters[metric.name]
        return getattr(self.newest, metric.name) if self.newest is not None else 0

    def quiet(self, now: float) -> bool:
        """Whether no batch has ended for longer than one takes: the query waits for input."""
        if not self._batches:
            return False
        ended_at, seconds, _ = self._batches[-1]
        return now - ended_at > max(_QUIET_S, 2 * seconds)

    def rows_per_second(self, now: float) -> float:
        """Rows taken per second of wall time, including waits but not the start."""
        batches, quiet = list(self._batches), self.quiet(now)
        ended_at = [at for at, _, _ in batches]
        first = bisect_right(ended_at, now - _RATE_S)
        if first == len(batches):
            if quiet or not batches:
                return 0.0
            first -= 1
        # From the end of the batch before, so that waiting between batches counts.
        since = ended_at[first - 1] if first else ended_at[0] - batches[0][1]
        until = now if quiet else ended_at[-1]
        rows = sum(rows for _, _, rows in batches[first:])
        return rows / (until - since) if until > since else 0.0

    @property
    def median_s(self) -> float:
        """The median duration of recent batches."""
        recent = [seconds for _, seconds, _ in list(self._batches)[-RECENT_BATCHES:]]
        return median(recent or [0.0])

    @property
    def lag_us(self) -> int | None:
        """How far the watermark is behind the newest event; None before the first event."""
        if self.newest is None or self.newest.frontier_us == MIN_US:
            return None
        behind_us: int = self.newest.newest_us - self.newest.frontier_us
        return 0 if self.newest.frontier_us == MAX_US else max(behind_us, 0)

    @property
    def held(self) -> SlowestSource | None:
        """The source that holds back the watermark, if others are ahead of it."""
        held: SlowestSource | None = None if self.newest is None else self.newest.held
        return held if held and self.newest and held.newest_us < self.newest.newest_us else None


def _switches(before: BatchReport, after: BatchReport, now: float) -> list[SwitchNote]:
    """The changes between two batches; a single one if all subqueries changed alike."""
    was, now_has = Counter(before.subqueries), Counter(after.subqueries)
    changed = [(was[n], now_has[n], n) for n in now_has if was[n] != now_has[n]]
    alike = len({pair[:2] for pair in changed}) == 1 and len(changed) == len(now_has)
    if alike or not now_has:
        if before.instances == after.instances:
            return []
        return [SwitchNote(after.batch, before.instances, after.instances, now)]
    return [SwitchNote(after.batch, one, other, now, name) for one, other, name in changed]
