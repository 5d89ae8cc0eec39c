"""Measures where the time of a batch goes, and how long its tuples waited."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from tidegate.driver.metric.family import (
    BOUNDS_S,
    HISTOGRAM,
    Labels,
    MetricFamily,
    MetricSample,
    RunView,
    Samples,
    by,
    gauge,
    histogram,
    summed,
    timed,
)
from tidegate.driver.metric.fold import BacklogFold, StepFold, SumFold, TimeFold
from tidegate.driver.metric.metric import CommittedBatch, RunMetric, outcomes
from tidegate.gate.backlog import UNITS
from tidegate.remote.scheme import shown
from tidegate.spans import added

if TYPE_CHECKING:
    from tidegate.driver.report.metrics import BatchReport
    from tidegate.model.live.expectation import Expectation

_START = partial(SumFold, "start_seconds")


def _tasks(batch: CommittedBatch) -> dict[str, float]:
    """The time of all tasks by what they did; they run side by side inside `operate`."""
    return added(outcome.spans_ms for outcome in outcomes(batch.work))


def _steps(
    spans_ms: Callable[[BatchReport], Mapping[str, float]],
) -> Callable[[BatchReport], Iterable[tuple[Labels, float]]]:
    return lambda report: [((("step", s),), ms / 1e3) for s, ms in spans_ms(report).items()]


def _latency(view: RunView) -> Samples:
    upto, count, sum_s = view.latency.upto(BOUNDS_S)
    return histogram(upto, count, sum_s) if count else ()


def _expected(name: str, help_: str, of: Callable[[Expectation], float | None]) -> MetricFamily:
    """What the model says of the newest second; nothing while it says nothing."""

    def read(view: RunView) -> Samples:
        expected = view.expected()
        value = None if expected is None else of(expected)
        return [] if value is None else [MetricSample((), value)]

    return gauge(name, help_, read)


def _waiting(unit: str, help_: str) -> MetricFamily:
    """Of each source that has a backlog in a unit."""

    def read(view: RunView) -> Samples:
        backlog = None if view.report is None else view.report.backlog
        sources = {} if backlog is None else backlog.sources
        return by("source", ((shown(s), of[unit]) for s, of in sources.items() if unit in of))

    return gauge(f"backlog_{unit}", help_, read, ["source"])


def _started(view: RunView) -> Samples:
    """Nothing while nothing had to be started."""
    seconds = view.summary.folds["start_s"].as_dict("", ())["start_seconds"]
    return [MetricSample((), seconds)] if seconds else []


def _committed(view: RunView) -> Samples:
    return [] if view.committed_at is None else [MetricSample((), view.committed_at)]


_BACKLOG = "of each source that have arrived and were not taken when the newest batch ended."

METRICS = (
    RunMetric(
        "start_s",
        lambda batch: batch.start_s,
        "started in",
        "s",
        over=_START,
        exports=(gauge("start_seconds", "Time to start or reach Spark in this run.", _started),),
    ),
    RunMetric(
        "seconds",
        lambda batch: batch.seconds,
        "batch time",
        "s",
        over=TimeFold,
        exports=(
            timed("batch_seconds", "Times of the batches of this run.", lambda r: r.seconds),
            gauge(
                "last_commit_timestamp_seconds",
                "When the newest batch of this run was committed, in seconds since 1970.",
                _committed,
            ),
        ),
    ),
    RunMetric(
        "latency",
        lambda batch: batch.latency,
        "latency",
        "ms",
        exports=(
            MetricFamily(
                "latency_seconds",
                HISTOGRAM,
                "Times from the arrival of tuples to the commit that answers them, in this run; "
                "bounds are kept within 1 percent.",
                _latency,
            ),
            _expected(
                "latency_predicted_seconds",
                "Mean latency that the model predicts for the newest second.",
                lambda expected: expected.latency_s,
            ),
            _expected(
                "latency_measured_seconds",
                "Mean latency of the newest second, beside the predicted one.",
                lambda expected: expected.measured_s,
            ),
            _expected(
                "load_predicted_ratio",
                "Seconds of work that a second of input makes, by the model; from 1 on the query "
                "falls behind.",
                lambda expected: expected.load,
            ),
        ),
    ),
    RunMetric("recent_latency", lambda batch: batch.recent_latency, "latency", "ms"),
    RunMetric(
        "backlog",
        lambda batch: batch.backlog,
        "backlog",
        over=BacklogFold,
        exports=tuple(_waiting(unit, f"{unit.capitalize()} {_BACKLOG}") for unit in UNITS),
    ),
    RunMetric(
        "spans_ms",
        lambda batch: batch.spans.spans_ms,
        unit="ms",
        over=StepFold,
        exports=(
            summed(
                "batch_step_seconds",
                "Time of the driver in this run by what it did; tasks run inside operate.",
                _steps(lambda report: report.spans_ms),
                ["step"],
            ),
            timed(
                "commit_seconds",
                "Times of the commits of this run, in which a batch comes to count.",
                lambda report: report.spans_ms["commit"] / 1e3,
            ),
        ),
    ),
    RunMetric(
        "sync_s",
        lambda batch: batch.sync_s,
        unit="s",
        exports=(
            timed(
                "fsync_seconds",
                "Times for which the commits of this run waited for the disk to sync.",
                lambda report: report.sync_s,
            ),
        ),
    ),
    RunMetric(
        "tasks_ms",
        _tasks,
        unit="ms",
        over=StepFold,
        exports=(
            summed(
                "task_step_seconds",
                "Time of all tasks in this run by what they did, added up; they run side by side.",
                _steps(lambda report: report.tasks_ms),
                ["step"],
            ),
        ),
    ),
)
