"""Defines a metric, and the committed batch from which its value is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Flag, auto
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

from tidegate.driver.metric.family import MetricFamily, peaks, total
from tidegate.driver.metric.fold import Fold, PeakFold
from tidegate.driver.metric.text import number_text

if TYPE_CHECKING:  # the commit counts what the table declares
    from tidegate.driver.checkpoint.commit import BatchWork
    from tidegate.driver.report.latency import Quantiles
    from tidegate.driver.report.metrics import BatchReport
    from tidegate.execute.job import Outcome
    from tidegate.gate.backlog import Backlog
    from tidegate.gate.extent import Extent, Holder
    from tidegate.plan.physical import Plan
    from tidegate.spans import Spans
    from tidegate.state.manifest import Manifest
    from tidegate.state.segment.segment import Segment

START = "start"
"""The span in which the runner gets ready; it does not count as time of the batch."""

BOOKS = "books"
"""The span of the work after a commit: dropping input and state, and starting compactions."""

BETWEEN = "between"
"""The span of the driver's work since the previous batch: reports, forecasts, a policy. It is no
part of the batch's time, and absent if the loop waited for input in between."""


@dataclass
class CommittedBatch:
    """A committed and published batch, which passes through the observers of a run.

    Observers fill in the fields that have a default, for the observers after them. Metrics may read
    all fields, because the report is made last.

    - `sync_s` is how long the commit waited for the disk; None if there was nothing to sync.
    - `replaced` is the batch's earlier manifest if it ran again.
    - `took_s` is its time, including the start of the runner.
    - `latency` is that of the tuples that it answers, `recent_latency` that of recent batches; both
      and `backlog` are None if no source is live.
    - `utilisation` is the share of time that each instance was busy in recent batches.
    """

    previous: Manifest
    manifest: Manifest
    plan: Plan
    work: BatchWork
    spans: Spans
    committed_at: float
    sync_s: float | None = None
    replaced: Manifest | None = None
    took_s: float = 0.0
    extent: Extent | None = None
    holder: Holder | None = None
    backlog: Backlog | None = None
    latency: Quantiles | None = None
    recent_latency: Quantiles | None = None
    utilisation: tuple[float, ...] = ()
    report: BatchReport | None = None

    @property
    def reported(self) -> BatchReport:
        """The report; only for observers that come after the one that makes it."""
        assert self.report is not None, "the report is made by the last observer"
        return self.report

    @property
    def started(self) -> float:
        """The clock's time when the batch started."""
        return self.spans.started

    @property
    def ended(self) -> float:
        """The clock's time when the batch ended."""
        return self.started + self.took_s

    @property
    def start_s(self) -> float:
        """The seconds that the runner took to get ready, for example to start Spark."""
        return self.spans.spans_ms.get(START, 0.0) / 1e3

    @property
    def seconds(self) -> float:
        """The seconds that the batch took, without `start_s`."""
        return max(self.took_s - self.start_s, 0.0)

    @cached_property
    def segments(self) -> Sequence[Segment]:
        """The segments of the state after the batch."""
        return self.manifest.segments()

    def added(self, counter: str) -> int:
        """How much the batch added to a counter of the checkpoint."""
        before, after = self.previous.counters, self.manifest.counters
        return after.get(counter, 0) - before.get(counter, 0)


class Where(Flag):
    """The places where people see a metric. JSON has every metric that folds over batches."""

    NOWHERE = 0
    ROWS = auto()
    """The line of rows in summary and status: "1,300 rows in, 10 out, 2 late"."""
    SUMMARY = auto()
    """A line of its own in the summary."""
    STATUS = auto()
    """A line of its own in `tidegate ctl status`."""
    VIEW = auto()
    """The live view."""


@dataclass(frozen=True)
class RunMetric:
    """One metric. Everything about it is declared here, except its text in docs/figures.md.

    - `of` returns its value in a batch, over all instances. A counter has `count` instead: how much
      a batch adds; the checkpoint holds the sum over all runs.
    - `over` makes an empty `Fold` of its values over a run; without it, only reports have the
      metric. `kept` reads it from the state, so that it is known before the first batch of a run.
    - `where` are the places that show it if it is not zero; those in `zero` always do. `line`
      writes its line from the JSON of the summary if label and number are not enough. `part_of` is
      the metric of which it is shown as a share.
    - With `each` the summary has its sum for every instance.
    - `exports` are its families in /metrics.
    """

    name: str
    of: Callable[[CommittedBatch], Any]
    label: str = ""
    unit: str = ""
    over: Callable[[], Fold] | None = None
    count: Callable[[BatchWork], int | None] | None = None
    kept: Callable[[Sequence[Segment]], int] | None = None
    where: Where = Where.NOWHERE
    zero: Where = Where.NOWHERE
    line: Callable[[Mapping[str, Any]], str] | None = None
    style: str = ""
    part_of: str | None = None
    each: bool = False
    exports: tuple[MetricFamily, ...] = ()

    def __post_init__(self) -> None:
        if self.where & ~Where.VIEW and self.over is None and self.count is None:
            raise ValueError(
                f"metric {self.name}: what a summary or status shows must fold over batches; "
                "got neither `over` nor `count`. Choose a fold, or show it in the live view only."
            )

    def is_at(self, where: Where, value: float | None) -> bool:
        """Whether a value is shown at a place."""
        return bool(where & (self.where if value else self.zero))

    def text(self, found: Mapping[str, Any]) -> str:
        """The line of the metric, from the JSON of a summary or status."""
        return self.line(found) if self.line else f"{self.label} {self.number(found[self.name])}"

    def number(self, value: float) -> str:
        """A value with its unit."""
        return number_text(value, self.unit)


def counter(
    name: str,
    label: str,
    count: Callable[[BatchWork], int | None],
    told: str = "",
    absent: int | None = None,
    **more: Any,
) -> RunMetric:
    """A metric that adds up since the checkpoint began; `count` returns None if nothing counts it.

    It is also in /metrics, with the help text `told` or the label. `absent` is its value there
    while the checkpoint has no count of it; None leaves it out.
    """
    help_ = told or f"{label.capitalize()}, since the checkpoint began."
    more = {"exports": (total(name, help_, absent), *more.pop("exports", ()))} | more
    return RunMetric(name, lambda batch: batch.added(name), label, count=count, **more)


def level(
    name: str, label: str, kept: Callable[[Sequence[Segment]], int], unit: str = "", **more: Any
) -> RunMetric:
    """A metric that is read from the segments of the state after a batch, and its peak."""
    more = {"exports": peaks(name, f"{name.replace('_', ' ').capitalize()}")} | more
    return RunMetric(
        name, lambda batch: kept(batch.segments), label, unit, PeakFold, kept=kept, **more
    )


def counted(name: str) -> Callable[[BatchWork], int | None]:
    """Returns the sum of a count over all instances; None if no instance has it."""

    def total(work: BatchWork) -> int | None:
        found = [o.counts[name] for o in outcomes(work) if name in o.counts]
        return sum(found) if found else None

    return total


def over_instances(
    name: str, fold: Callable[[Iterable[int]], int] = sum
) -> Callable[[CommittedBatch], int]:
    """Returns a count of a batch as one number: the sum or the maximum over instances."""
    return lambda batch: fold(o.counts.get(name, 0) for o in outcomes(batch.work))


def outcomes(work: BatchWork) -> Iterator[Outcome]:
    """The outcomes of all instances of all subqueries, in the order of the plan."""
    return chain.from_iterable(work.outcomes)
