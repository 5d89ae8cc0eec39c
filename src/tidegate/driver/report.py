"""What one batch did, between the manifests around it and those who watch a run."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.batch import MIN_US
from tidegate.driver.metrics import BatchReport, imbalance
from tidegate.execute.executor import Outcomes
from tidegate.spans import Spans, added
from tidegate.state.manifest import Manifest


def report_of(
    previous: Manifest,
    manifest: Manifest,
    names: Sequence[str],
    outcomes: Outcomes,
    seconds: float,
    spans: Spans,
) -> BatchReport:
    """The report of a committed batch; `names` are those of its subqueries."""

    def more(name: str) -> int:
        return manifest.counters[name] - previous.counters.get(name, 0)

    segments = manifest.segments()
    every = [outcome for found in outcomes for outcome in found]
    return BatchReport(
        batch=manifest.batch,
        rows_in=more("rows_in"),
        rows_out=more("rows_out"),
        rows_late=more("rows_late"),
        rows_rejected=more("rows_rejected"),
        instances=manifest.instances,
        epoch=manifest.epoch,
        frontier_us=manifest.frontier_us,
        seconds=seconds,
        spans_ms=spans.spans_ms,
        imbalance=max(imbalance([o.tuples for o in found]) for found in outcomes),
        state_rows=sum(s.rows for s in segments),
        state_bytes=sum(s.bytes for s in segments),
        tasks_ms=added(o.spans_ms for o in every),
        newest_us=max((s["floor_us"] for s in manifest.sources), default=MIN_US),
        instance_counts=tuple(o.counts for o in every),
        subqueries=tuple(n for n, found in zip(names, outcomes, strict=True) for _ in found),
    )
