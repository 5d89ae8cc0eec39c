"""What is noted of one batch: where its time went, in the driver and in each instance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidegate.driver.metric.metric import CommittedBatch
from tidegate.driver.report.metrics import BatchReport

_TAKEN = ("rows_in", "rows_out", "rows_late", "rows_rejected", "rows_shed")
_LEVELS = ("instances", "epoch", "frontier_us", "newest_us", "state_rows", "state_bytes")


@dataclass(frozen=True, slots=True)
class InstanceRecord:
    """What one instance of a subquery did: steps and their milliseconds, in their order."""

    subquery: str
    instance: int
    spans_ms: Mapping[str, float]
    tuples: int
    outputs: int
    cpu_us: int

    def as_dict(self) -> dict[str, Any]:
        return {
            "subquery": self.subquery,
            "instance": self.instance,
            "tuples": self.tuples,
            "outputs": self.outputs,
            "cpu_ms": self.cpu_us / 1e3,
            "spans_ms": dict(self.spans_ms),
        }


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """One batch, as it was reported; it holds numbers and no rows.

    `at` is when it began, in seconds since 1970; `predicted_ms` the latency that was expected.
    """

    at: float
    report: BatchReport
    instances: Sequence[InstanceRecord]
    predicted_ms: float | None

    @staticmethod
    def of(batch: CommittedBatch, at: float, predicted_ms: float | None) -> BatchRecord:
        instances = [
            InstanceRecord(
                subquery.name,
                outcome.instance,
                outcome.spans_ms,
                outcome.tuples,
                outcome.counts.get("outputs", 0),
                outcome.counts.get("cpu_us", 0),
            )
            for subquery, outcomes in zip(batch.plan.subqueries, batch.work.outcomes, strict=True)
            for outcome in outcomes
        ]
        return BatchRecord(at, batch.reported, instances, predicted_ms)

    @property
    def batch(self) -> int:
        return int(self.report.batch)

    @property
    def size_bytes(self) -> int:
        """About how much memory it takes beside its report, which the summary holds."""
        steps = sum(len(one.spans_ms) for one in self.instances)
        return 100 + 300 * len(self.instances) + 100 * steps

    def as_dict(self) -> dict[str, Any]:
        """As the journal has it; docs/dashboard-data.md says what each name means."""
        report = self.report
        recent = report.recent_latency
        return {
            "batch": report.batch,
            "at": round(self.at, 3),
            "ms": round(report.seconds * 1e3, 3),
            **{name: getattr(report, name) for name in (*_TAKEN, *_LEVELS)},
            "backlog": None if report.backlog is None else dict(report.backlog.total),
            "latency_ms": None if report.latency is None else report.latency.as_dict(),
            "recent_latency_ms": None if recent is None else recent.as_dict(),
            "predicted_ms": self.predicted_ms,
            "imbalance": report.imbalance,
            "utilisation": [round(share, 4) for share in report.utilisation],
            "driver_ms": dict(report.spans_ms),
            "tasks": [one.as_dict() for one in self.instances],
        }
