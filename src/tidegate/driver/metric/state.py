"""Measures the state that a query keeps in its checkpoint."""

from __future__ import annotations

from collections import Counter

from tidegate.driver.metric.fold import PeakFold
from tidegate.driver.metric.metric import CommittedBatch, RunMetric, level


def _by_subquery(batch: CommittedBatch) -> dict[str, int]:
    rows: Counter[str] = Counter()
    if len(batch.plan.subqueries) > 1:
        for key, segments in batch.manifest.operators.items():
            rows[batch.plan.names[key.split("/")[0]]] += sum(s.rows for s in segments)
    return dict(rows)


STATE_ROWS = level(
    "state_rows", "state", lambda segments: sum(s.rows for s in segments), over=PeakFold
)
STATE_BYTES = level(
    "state_bytes",
    "state",
    lambda segments: sum(s.bytes for s in segments),
    unit="bytes",
    over=PeakFold,
)
STATE_BY = RunMetric("state_by", _by_subquery)
"""Rows of state by subquery, where there are several."""
