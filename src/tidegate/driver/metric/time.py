"""Measures where the time of a batch goes, and how long its tuples waited."""

from __future__ import annotations

from functools import partial

from tidegate.driver.metric.fold import BacklogFold, StepFold, SumFold, TimeFold
from tidegate.driver.metric.metric import RunMetric, outcomes
from tidegate.spans import added

START_S = RunMetric(
    "start_s",
    lambda batch: batch.start_s,
    "started in",
    "s",
    over=partial(SumFold, "start_seconds"),
)
SECONDS = RunMetric("seconds", lambda batch: batch.seconds, "batch time", "s", over=TimeFold)
LATENCY = RunMetric("latency", lambda batch: batch.latency, "latency", "ms")
"""From arrival to commit, of the tuples that the batch is the first to answer."""
RECENT_LATENCY = RunMetric("recent_latency", lambda batch: batch.recent_latency, "latency", "ms")
"""The same over recent batches of this run."""
BACKLOG = RunMetric("backlog", lambda batch: batch.backlog, "backlog", over=BacklogFold)
"""What had arrived and was not taken when the batch ended."""
SPANS = RunMetric("spans_ms", lambda batch: batch.spans.spans_ms, unit="ms", over=StepFold)
TASKS = RunMetric(
    "tasks_ms",
    lambda batch: added(o.spans_ms for o in outcomes(batch.work)),
    unit="ms",
    over=StepFold,
)
"""Time of all tasks together, by what they did; they run side by side inside `operate`."""
