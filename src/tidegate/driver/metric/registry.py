"""The table of metrics: whoever reports, sums up, shows or exports a run iterates over it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tidegate.driver.metric import progress, rows, state, time, work
from tidegate.driver.metric.metric import RunMetric, Where

METRICS: tuple[RunMetric, ...] = (
    progress.BATCH,
    progress.INSTANCES,
    progress.EPOCH,
    progress.FRONTIER,
    progress.NEWEST,
    progress.EXTENT,
    progress.HELD,
    rows.ROWS_IN,
    rows.ROWS_OUT,
    rows.LATE,
    rows.REJECTED,
    rows.SHED,
    rows.BATCHES,
    rows.OUTPUT_ROWS,
    time.START_S,
    time.SECONDS,
    time.LATENCY,
    time.RECENT_LATENCY,
    time.BACKLOG,
    time.SPANS,
    time.TASKS,
    work.COMPARISONS,
    work.COMPARED,
    work.OUTPUTS,
    work.CPU,
    work.GROUPS_MERGED,
    work.PARTS_MERGED,
    work.GROUPS_SPLIT,
    work.SUBQUERIES,
    work.INSTANCE_COUNTS,
    work.UTILISATION,
    work.IMBALANCE,
    state.STATE_ROWS,
    state.STATE_BYTES,
    state.STATE_BY,
)

PLACES = {metric.name: place for place, metric in enumerate(METRICS)}
"""Where the report of a batch has each of them."""

COUNTERS = tuple(metric for metric in METRICS if metric.count is not None)
EACH = tuple(metric.name for metric in METRICS if metric.each)


def shown_at(where: Where, found: Mapping[str, Any]) -> Iterable[RunMetric]:
    """Those that people see at a place, of a summary or status as JSON."""
    return (m for m in METRICS if m.is_at(where, found.get(m.name, 0)))


def rows_text(found: Mapping[str, Any]) -> str:
    """The line of rows: 1,300 rows in, 10 out, 2 late, 0 rejected."""
    first, *others = shown_at(Where.ROWS, found)
    told = [f"{found.get(m.name, 0):,} {m.label.removeprefix('rows ')}" for m in others]
    return ", ".join([f"{found.get(first.name, 0):,} {first.label}", *told])


def lines_at(where: Where, found: Mapping[str, Any]) -> list[str]:
    """The lines of metrics that have one of their own there."""
    return [metric.text(found) for metric in shown_at(where, found)]
