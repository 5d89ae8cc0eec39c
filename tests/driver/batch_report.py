"""Reports of batches that never ran, with the values of some metrics."""

from __future__ import annotations

from typing import Any

from tidegate.batch import MIN_US
from tidegate.driver.metric.registry import METRICS
from tidegate.driver.report.metrics import BatchReport

NOTHING: dict[str, Any] = {
    **{name: {} for name in ("spans_ms", "tasks_ms", "output_rows", "state_by")},
    **{name: {} for name in ("speed_up", "exchanges")},
    **dict.fromkeys(("instance_counts", "subqueries", "utilisation"), ()),
    **dict.fromkeys(("extent", "held", "latency", "recent_latency", "backlog")),
    "newest_us": MIN_US,
}
"""What metrics are that are no numbers, where nothing was measured."""


def reported(**values: Any) -> BatchReport:
    """A report with these values; of other metrics it has none."""
    return changed(BatchReport(tuple(NOTHING.get(m.name, 0) for m in METRICS)), **values)


def changed(report: BatchReport, **values: Any) -> BatchReport:
    """A report with some values replaced."""
    assert set(values) <= {m.name for m in METRICS}
    pairs = zip(METRICS, report.values, strict=True)
    return BatchReport(tuple(values.get(m.name, value) for m, value in pairs))
