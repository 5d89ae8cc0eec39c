"""Says how far a query is: its batch, its watermark, its instances, its input and its state."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from tidegate.batch import MIN_US
from tidegate.driver.metric.fold import PeakFold
from tidegate.driver.metric.metric import CommittedBatch, RunMetric, level


@dataclass(frozen=True)
class SlowestSource:
    """The source that the frontier waits for, and its newest event time; -inf before it has one."""

    stream: str
    source: str
    newest_us: int


def _newest_us(batch: CommittedBatch) -> int:
    """The newest event time that any source has brought so far; -inf before there is one."""
    return max((source["floor_us"] for source in batch.manifest.sources), default=MIN_US)


def _slowest(batch: CommittedBatch) -> SlowestSource | None:
    """None when all sources have ended."""
    holder = batch.holder
    if holder is None:
        return None
    name = batch.plan.streams[holder.stream].name
    return SlowestSource(name, holder.source, holder.newest_us)


def _state_by_subquery(batch: CommittedBatch) -> dict[str, int]:
    """Rows of state, where there are several subqueries."""
    rows: Counter[str] = Counter()
    if len(batch.plan.subqueries) > 1:
        for key, segments in batch.manifest.operators.items():
            rows[batch.plan.names[key.split("/")[0]]] += sum(s.rows for s in segments)
    return dict(rows)


METRICS = (
    RunMetric("batch", lambda batch: batch.manifest.batch, "batch"),
    RunMetric("instances", lambda batch: batch.manifest.instances, "instances"),
    RunMetric("epoch", lambda batch: batch.manifest.epoch, "epoch"),
    RunMetric(
        "frontier_us", lambda batch: batch.manifest.frontier_us, "watermark (frontier)", "us"
    ),
    RunMetric("newest_us", _newest_us, "newest event", "us"),
    # How much of the input is read, where it has an end that is known.
    RunMetric("extent", lambda batch: batch.extent, "read"),
    RunMetric("held", _slowest),
    level("state_rows", "state", lambda state: sum(s.rows for s in state), over=PeakFold),
    level(
        "state_bytes", "state", lambda state: sum(s.bytes for s in state), "bytes", over=PeakFold
    ),
    RunMetric("state_by", _state_by_subquery),
)
