"""What a batch leaves in the manifest, between its outcomes and the commit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tidegate.batch import EpochId
from tidegate.driver.outlet import Staged
from tidegate.driver.side import sides_after
from tidegate.driver.subquery import RunningSubquery
from tidegate.driver.timeline import completed
from tidegate.execute.executor import Outcomes
from tidegate.execute.job import Job
from tidegate.gate.intake import Cut
from tidegate.route.mapping import recorded
from tidegate.state.manifest import Manifest
from tidegate.state.segment import Segment


@dataclass(frozen=True)
class BatchWork:
    """One batch that was run and staged, and is not committed yet."""

    cut: Cut
    jobs: Sequence[Job]
    outcomes: Outcomes
    staged: Staged
    epochs: Sequence[Mapping[str, Any]]

    @property
    def rows_made(self) -> int:
        """The rows that all subqueries have given, to outputs and to each other."""
        return sum(o.counts["outputs"] for found in self.outcomes for o in found)


def next_manifest(
    previous: Manifest,
    work: BatchWork,
    subqueries: Iterable[RunningSubquery],
    sources: tuple[Mapping[str, Any], ...],
    files: tuple[str, ...],
    streams: Sequence[str],
    policy: Mapping[str, Any],
) -> Manifest:
    """The state after a batch; `policy` is what a policy remembers, of the batch before."""
    cut = work.cut
    counters = _counters(previous, work, subqueries)
    operators: dict[str, tuple[Segment, ...]] = {}
    finishing: dict[str, EpochId | None] = {}
    for subquery, job, found in zip(subqueries, work.jobs, work.outcomes, strict=True):
        operators |= subquery.operators(found, cut.frontier_us, counters)
        if not cut.exhausted:
            oldest = subquery.finishing(job.mapping, cut.frontier_us, counters)
            finishing[job.subquery.key] = oldest
    return replace(
        previous,
        batch=previous.batch + 1,
        mappings={job.subquery.key: recorded(job.mapping) for job in work.jobs},
        frontier_us=cut.frontier_us,
        sources=sources,
        files=files,
        operators=operators,
        counters=counters,
        sides=sides_after(previous.sides, cut, work.staged.outputs[0].rejected, streams),
        policy=policy,
        epochs=completed(work.epochs, finishing),
        finished=cut.exhausted,
        outputs=work.staged.receipts,
        written=_written(previous, work.staged.receipts),
        places=work.staged.places,
    )


def _written(
    previous: Manifest, receipts: Mapping[str, Sequence[Mapping[str, Any]]]
) -> dict[str, list[int]]:
    """By output the newest two batches that have parts; most of a quiet stream have none."""
    return {
        name: [previous.batch + 1, *previous.written_of(name)][:2]
        if parts
        else previous.written_of(name)
        for name, parts in receipts.items()
    }


def _counters(
    previous: Manifest, work: BatchWork, subqueries: Iterable[RunningSubquery]
) -> dict[str, int]:
    """The sums over all batches, with those of this one."""
    first, *_ = outputs = work.staged.outputs
    counters = Counter(previous.counters)
    counters.update(
        {
            "rows_in": work.cut.rows,
            "rows_out": sum(o.count for o in outputs),
            "rows_late": sum(t.num_rows for t in first.late.values()),
            "rows_rejected": first.rejected.num_rows if first.rejected is not None else 0,
            "batches": 1,
        }
    )
    shed = sum(o.counts.get("shed", 0) for found in work.outcomes for o in found)
    counters.update({"rows_shed": shed} if shed else {})
    for subquery, found in zip(subqueries, work.outcomes, strict=True):
        counters.update(subquery.counted(found))
    return dict(counters)
