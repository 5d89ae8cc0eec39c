"""Measures where the time of a batch goes, and how long its tuples waited."""

from __future__ import annotations

from functools import partial

from tidegate.driver.metric.fold import BacklogFold, StepFold, SumFold, TimeFold
from tidegate.driver.metric.metric import CommittedBatch, RunMetric, outcomes
from tidegate.spans import added

_START = partial(SumFold, "start_seconds")


def _tasks(batch: CommittedBatch) -> dict[str, float]:
    """The time of all tasks by what they did; they run side by side inside `operate`."""
    return added(outcome.spans_ms for outcome in outcomes(batch.work))


METRICS = (
    RunMetric("start_s", lambda batch: batch.start_s, "started in", "s", over=_START),
    RunMetric("seconds", lambda batch: batch.seconds, "batch time", "s", over=TimeFold),
    RunMetric("latency", lambda batch: batch.latency, "latency", "ms"),
    RunMetric("recent_latency", lambda batch: batch.recent_latency, "latency", "ms"),
    RunMetric("backlog", lambda batch: batch.backlog, "backlog", over=BacklogFold),
    RunMetric("spans_ms", lambda batch: batch.spans.spans_ms, unit="ms", over=StepFold),
    RunMetric("tasks_ms", _tasks, unit="ms", over=StepFold),
)
