"""Says how far a query is: its batch, its watermark, its instances, what of its input is read."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.batch import MIN_US
from tidegate.driver.metric.metric import CommittedBatch, RunMetric


@dataclass(frozen=True)
class SlowestSource:
    """The source that the frontier waits for, and its newest event time; -inf before it has one."""

    stream: str
    source: str
    newest_us: int


def _slowest(batch: CommittedBatch) -> SlowestSource | None:
    holder = batch.holder
    if holder is None:
        return None
    name = batch.plan.streams[holder.stream].name
    return SlowestSource(name, holder.source, holder.newest_us)


BATCH = RunMetric("batch", lambda batch: batch.manifest.batch, "batch")
INSTANCES = RunMetric("instances", lambda batch: batch.manifest.instances, "instances")
EPOCH = RunMetric("epoch", lambda batch: batch.manifest.epoch, "epoch")
FRONTIER = RunMetric(
    "frontier_us", lambda batch: batch.manifest.frontier_us, "watermark (frontier)", "us"
)
NEWEST = RunMetric(
    "newest_us",
    lambda batch: max((s["floor_us"] for s in batch.manifest.sources), default=MIN_US),
    "newest event",
    "us",
)
"""The newest event time that any source has brought so far; -inf before there is one."""
EXTENT = RunMetric("extent", lambda batch: batch.extent, "read")
"""How much of the input is read, where it has an end that is known."""
HELD = RunMetric("held", _slowest)
"""Who holds the frontier back; None when all sources have ended."""
