"""What one batch did, between the manifests around it and those who watch a run."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from tidegate.batch import MIN_US
from tidegate.driver.commit import BatchWork
from tidegate.driver.latency import Quantiles
from tidegate.driver.metrics import BatchReport, Held
from tidegate.elastic.load import imbalance
from tidegate.gate.backlog import Backlog
from tidegate.gate.standing import Extent, Holder
from tidegate.plan.physical import Plan
from tidegate.spans import Spans, added
from tidegate.state.manifest import Manifest

START = "start"
"""The span of getting the executor ready; it is not counted as time of the batch."""


def report_of(
    previous: Manifest,
    manifest: Manifest,
    plan: Plan,
    work: BatchWork,
    seconds: float,
    spans: Spans,
    extent: Extent | None = None,
    holder: Holder | None = None,
) -> BatchReport:
    """The report of a committed batch; `seconds` are all that it took."""

    def more(name: str) -> int:
        return manifest.counters.get(name, 0) - previous.counters.get(name, 0)

    segments = manifest.segments()
    every = [outcome for found in work.outcomes for outcome in found]
    names = [s.name for s in plan.subqueries]
    start_s = spans.spans_ms.get(START, 0.0) / 1e3
    return BatchReport(
        batch=manifest.batch,
        rows_in=more("rows_in"),
        rows_out=more("rows_out"),
        rows_late=more("rows_late"),
        rows_rejected=more("rows_rejected"),
        rows_shed=more("rows_shed"),
        instances=manifest.instances,
        epoch=manifest.epoch,
        frontier_us=manifest.frontier_us,
        seconds=max(seconds - start_s, 0.0),
        spans_ms=spans.spans_ms,
        imbalance=max(imbalance([o.tuples for o in found]) for found in work.outcomes),
        state_rows=sum(s.rows for s in segments),
        state_bytes=sum(s.bytes for s in segments),
        tasks_ms=added(o.spans_ms for o in every),
        newest_us=max((s["floor_us"] for s in manifest.sources), default=MIN_US),
        instance_counts=tuple(o.counts for o in every),
        subqueries=tuple(n for n, found in zip(names, work.outcomes, strict=True) for _ in found),
        start_s=start_s,
        output_rows=_output_rows(plan, work),
        state_by=_state_by(plan, manifest),
        extent=extent,
        held=None
        if holder is None
        else Held(plan.streams[holder.stream].name, holder.source, holder.newest_us),
    )


def with_measured(
    report: BatchReport,
    latency: Quantiles | None,
    recent: Quantiles | None,
    backlog: Backlog | None,
    utilisation: tuple[float, ...],
) -> BatchReport:
    """A report with what was measured of arrivals and of the load.

    The latency is that of the batch and that of recent ones, the backlog is what waits.
    """
    return replace(
        report, latency=latency, recent_latency=recent, backlog=backlog, utilisation=utilisation
    )


def _output_rows(plan: Plan, work: BatchWork) -> dict[str, int]:
    """The rows of each output, where they have names."""
    pairs = zip(plan.targets, work.staged.outputs, strict=True)
    return {target.name: output.count for target, output in pairs if target.name is not None}


def _state_by(plan: Plan, manifest: Manifest) -> dict[str, int]:
    """The rows that each subquery keeps, where there are several."""
    rows: Counter[str] = Counter()
    if len(plan.subqueries) > 1:
        for key, segments in manifest.operators.items():
            rows[plan.names[key.split("/")[0]]] += sum(s.rows for s in segments)
    return dict(rows)
