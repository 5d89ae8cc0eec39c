"""Measures where the time of a batch goes, and how long its tuples waited."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from tidegate.driver.metric.fold import BacklogFold, StepFold, SumFold, TimeFold
from tidegate.driver.metric.metric import BETWEEN, BOOKS, CommittedBatch, RunMetric, outcomes
from tidegate.spans import added

SERIAL = ("gate", "draft", "collect", "manifest", "commit", "publish", BOOKS, BETWEEN)
"""The steps of the driver that more instances do not shorten: cores wait while one of them runs."""

OPERATE = "operate"
"""The step in which tasks run."""

ROUNDS = ("spark map job", "spark instance job", "spark batch job", "spark finish")
"""Wall time of the rounds of tasks in `OPERATE`, told among the times of tasks. Tasks of a round
run side by side."""

_START = partial(SumFold, "start_seconds")


def _tasks(batch: CommittedBatch) -> dict[str, float]:
    """The time of all tasks by what they did; they run side by side inside `operate`."""
    return added(outcome.spans_ms for outcome in outcomes(batch.work))


def serial_ms(spans_ms: Mapping[str, float], tasks_ms: Mapping[str, float]) -> float:
    """The part of a batch's period in which no task can run, of its spans and those of its tasks.

    It is the steps in `SERIAL`, and what `OPERATE` has beside its rounds of tasks: packing jobs and
    completing them. Where no rounds are told (without Spark, or with a shuffle) all of `OPERATE`
    counts as work of tasks. The period is `period_ms`.
    """
    rounds = sum(tasks_ms.get(name, 0.0) for name in ROUNDS)
    apart = max(spans_ms.get(OPERATE, 0.0) - rounds, 0.0) if rounds else 0.0
    return sum(spans_ms.get(name, 0.0) for name in SERIAL) + apart


def period_ms(spans_ms: Mapping[str, float]) -> float:
    """From the end of the batch before to the end of this one, but for waiting and starting."""
    return sum(spans_ms.get(name, 0.0) for name in (*SERIAL, OPERATE))


METRICS = (
    RunMetric("start_s", lambda batch: batch.start_s, "started in", "s", over=_START),
    RunMetric("seconds", lambda batch: batch.seconds, "batch time", "s", over=TimeFold),
    RunMetric("latency", lambda batch: batch.latency, "latency", "ms"),
    RunMetric("recent_latency", lambda batch: batch.recent_latency, "latency", "ms"),
    RunMetric("backlog", lambda batch: batch.backlog, "backlog", over=BacklogFold),
    RunMetric("spans_ms", lambda batch: batch.spans.spans_ms, unit="ms", over=StepFold),
    RunMetric("tasks_ms", _tasks, unit="ms", over=StepFold),
)
