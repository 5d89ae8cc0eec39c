"""The table of metrics: whoever reports, sums up, shows or exports a run iterates over it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

from tidegate.driver.metric.family import MetricFamily
from tidegate.driver.metric.metric import RunMetric, Where

FILES = (
    "exchange",
    "progress",
    "rows",
    "time",
    "serial",
    "work",
    "window",
)
"""The modules of this folder that declare metrics, each in a tuple `METRICS`; what is exported of a
run and is no figure of its batches is in a tuple `FAMILIES`."""

_MODULES = tuple(import_module(f"{__package__}.{name}") for name in FILES)

METRICS: tuple[RunMetric, ...] = tuple(metric for one in _MODULES for metric in one.METRICS)
FAMILIES: tuple[MetricFamily, ...] = (
    *(family for metric in METRICS for family in metric.exports),
    *(family for one in _MODULES for family in getattr(one, "FAMILIES", ())),
)
"""What /metrics has, in its order."""

PLACES = {metric.name: place for place, metric in enumerate(METRICS)}
"""Where the report of a batch has each of them."""

COUNTERS = tuple(metric for metric in METRICS if metric.count is not None)
LEVELS = tuple(metric for metric in METRICS if metric.kept is not None)
EACH = tuple(metric.name for metric in METRICS if metric.each)


def shown_at(where: Where, found: Mapping[str, Any]) -> Iterable[RunMetric]:
    """Those that people see at a place, of a summary or status as JSON."""
    return (m for m in METRICS if m.is_at(where, found.get(m.name, 0)))


def rows_line(found: Mapping[str, Any]) -> str:
    """The line of rows: 1,300 rows in, 10 out, 2 late, 0 rejected."""
    first, *others = shown_at(Where.ROWS, found)
    told = [f"{found.get(m.name, 0):,} {m.label.removeprefix('rows ')}" for m in others]
    return ", ".join([f"{found.get(first.name, 0):,} {first.label}", *told])


def lines_at(where: Where, found: Mapping[str, Any]) -> list[str]:
    """The lines of metrics that have one of their own there."""
    return [metric.text(found) for metric in shown_at(where, found)]
