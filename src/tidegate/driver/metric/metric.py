"""Says what can be declared of a metric, and what its value in a batch may be read from."""

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
    from tidegate.driver.commit import BatchWork
    from tidegate.driver.latency import Quantiles
    from tidegate.driver.metrics import BatchReport
    from tidegate.execute.job import Outcome
    from tidegate.gate.backlog import Backlog
    from tidegate.gate.extent import Extent, Holder
    from tidegate.plan.physical import Plan
    from tidegate.spans import Spans
    from tidegate.state.manifest import Manifest
    from tidegate.state.segment import Segment

START = "start"
"""The span of getting the runner ready; it is not counted as time of the batch."""

BOOKS = "books"
"""The span of what follows a commit: letting go of input and state, and starting compactions."""

BETWEEN = "between"
"""The span of the driver's work since the batch before: reports, forecasts, a policy. No part of
the batch's time. None where the loop waited for input in the meantime."""


@dataclass
class CommittedBatch:
    """A batch that is committed and published, on its way through the observers of a run.

    The fields with a default are filled in by observers, for those that stand behind them; metrics
    read all of them, because the report is made last. `sync_s` is how long its commit waited for
    the disk, None where it had nothing to sync. `replaced` is the manifest that the batch had
    before it ran again. `took_s` is its time with that of starting the runner. `latency` is that of
    the tuples which it is the first to answer, `recent_latency` that of recent batches; both, and
    `backlog`, are None where no source is live. `utilisation` is the share of the time that each
    instance was busy in recent batches.
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
        """The report, for whoever comes after the observer that makes it."""
        assert self.report is not None, "the report is made by the last observer"
        return self.report

    @property
    def started(self) -> float:
        """When the batch started, on the clock."""
        return self.spans.started

    @property
    def ended(self) -> float:
        """When the batch ended, on the clock."""
        return self.started + self.took_s

    @property
    def start_s(self) -> float:
        """What getting ready took before it, as starting Spark."""
        return self.spans.spans_ms.get(START, 0.0) / 1e3

    @property
    def seconds(self) -> float:
        """What it took, without getting ready."""
        return max(self.took_s - self.start_s, 0.0)

    @cached_property
    def segments(self) -> Sequence[Segment]:
        """The files that the state is in after it."""
        return self.manifest.segments()

    def added(self, counter: str) -> int:
        """How much it has added to a counter of the checkpoint."""
        before, after = self.previous.counters, self.manifest.counters
        return after.get(counter, 0) - before.get(counter, 0)


class Where(Flag):
    """The places at which people see a metric; JSON has every one that folds over batches."""

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
    """One metric. All that is said of it anywhere is said here, but for docs/operations.md.

    `of` gives its value in a batch, over all instances. How the batches of a run fold is `over`,
    which makes an empty `Fold`; without one only the report of a batch has it. A counter has
    `count` instead, which gives how much a batch adds: the checkpoint holds the sum over all runs.
    `kept` is for what is read off the state, and so known before the first batch of a run.

    It is shown at `where`, if it is not zero; at `zero` also then. `line` writes its line from the
    JSON of the summary, where a label and a number are not enough. `part_of` names the metric that
    it is shown as a share of. Of those `each`, the summary has the sum of each instance. `exports`
    are the families that /metrics has of it.
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
        """Whether a value is shown there."""
        return bool(where & (self.where if value else self.zero))

    def text(self, found: Mapping[str, Any]) -> str:
        """Its line, from the JSON of a summary or status."""
        return self.line(found) if self.line else f"{self.label} {self.number(found[self.name])}"

    def number(self, value: float) -> str:
        """A value in its unit."""
        return number_text(value, self.unit)


def counter(
    name: str,
    label: str,
    count: Callable[[BatchWork], int | None],
    told: str = "",
    absent: int | None = None,
    **more: Any,
) -> RunMetric:
    """A metric that adds up since the checkpoint began; `count` gives None where none counts it.

    /metrics has it too, with the help text `told`, or the label. `absent` is what it has there
    while the checkpoint has no count of it, None for nothing.
    """
    help_ = told or f"{label.capitalize()}, since the checkpoint began."
    more = {"exports": (total(name, help_, absent), *more.pop("exports", ()))} | more
    return RunMetric(name, lambda batch: batch.added(name), label, count=count, **more)


def level(
    name: str, label: str, kept: Callable[[Sequence[Segment]], int], unit: str = "", **more: Any
) -> RunMetric:
    """A metric that is read off the segments of the state after a batch, and its peak."""
    more = {"exports": peaks(name, f"{name.replace('_', ' ').capitalize()}")} | more
    return RunMetric(
        name, lambda batch: kept(batch.segments), label, unit, PeakFold, kept=kept, **more
    )


def counted(name: str) -> Callable[[BatchWork], int | None]:
    """What all instances counted under a name, added up; None where none of them did."""

    def total(work: BatchWork) -> int | None:
        found = [o.counts[name] for o in outcomes(work) if name in o.counts]
        return sum(found) if found else None

    return total


def over_instances(
    name: str, fold: Callable[[Iterable[int]], int] = sum
) -> Callable[[CommittedBatch], int]:
    """What instances counted under a name in a batch, as one number: their sum, or their max."""
    return lambda batch: fold(o.counts.get(name, 0) for o in outcomes(batch.work))


def outcomes(work: BatchWork) -> Iterator[Outcome]:
    """What the instances of all subqueries report, in the order of the plan."""
    return chain.from_iterable(work.outcomes)
