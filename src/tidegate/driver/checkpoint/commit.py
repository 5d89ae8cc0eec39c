"""Makes the manifest that a batch commits, from the previous manifest and the tasks' outcomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tidegate.batch import EpochId
from tidegate.clock import utc_now
from tidegate.driver.metric.registry import COUNTERS
from tidegate.driver.outlet import StagedBatch
from tidegate.driver.report.side import sides_after
from tidegate.driver.subquery import RunningSubquery
from tidegate.driver.tables import Tables
from tidegate.elastic.handover import SHARED
from tidegate.elastic.switchboard import Taken
from tidegate.execute.job import Job
from tidegate.execute.runner import Outcomes
from tidegate.gate.cut import Cut
from tidegate.route.mapping import recorded
from tidegate.sink.digest.digest import Digest
from tidegate.state.epoch import time_of
from tidegate.state.manifest import Manifest
from tidegate.state.segment.segment import Segment


@dataclass(frozen=True)
class BatchWork:
    """A batch that was run and staged but is not committed yet."""

    cut: Cut
    jobs: Sequence[Job]
    outcomes: Outcomes
    staged: StagedBatch
    epochs: Sequence[Mapping[str, Any]]

    @property
    def rows_made(self) -> int:
        """The rows that all subqueries emitted, to outputs and to each other."""
        return sum(o.counts["outputs"] for found in self.outcomes for o in found)


def next_manifest(
    previous: Manifest,
    work: BatchWork,
    subqueries: Iterable[RunningSubquery],
    sources: tuple[Mapping[str, Any], ...],
    files: tuple[str, ...],
    streams: Sequence[str],
    policy: Mapping[str, Any],
    tables: Tables,
    shedding: Mapping[str, Any],
    at_us: int = 0,
) -> Manifest:
    """The state after a batch.

    `policy` is what the policy remembers; it was saved before this batch was observed. `at_us` is
    the wall time if the checkpoint keeps earlier states, else 0.
    """
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
        files=(*files, *tables.files),
        tables=tables.recorded(),
        shedding=shedding,
        operators=operators,
        counters=counters,
        sides=sides_after(previous.sides, cut, work.staged.outputs[0].rejected, streams),
        policy=policy,
        epochs=completed(work.epochs, finishing),
        finished=cut.exhausted,
        outputs=work.staged.receipts,
        written=_written(previous, work.staged.receipts),
        places=work.staged.places,
        digests=_digests(previous, work.staged.digests),
        at_us=at_us,
    )


def _written(
    previous: Manifest, receipts: Mapping[str, Sequence[Mapping[str, Any]]]
) -> dict[str, list[int]]:
    """By output, the newest two batches that wrote parts.

    Recorded because most batches of a quiet stream write none.
    """
    return {
        name: [previous.batch + 1, *previous.written_of(name)][:2]
        if parts
        else previous.written_of(name)
        for name, parts in receipts.items()
    }


def _digests(previous: Manifest, added: Mapping[str, Digest]) -> dict[str, Mapping[str, Any]]:
    """By output, the digest of all its rows.

    Absent if the output has rows from before digests were kept: they cannot be added later.
    """
    before = {name: Digest.from_dict(saved) for name, saved in previous.digests.items()}
    new = [name for name in added if previous.batch < 0 or name not in previous.outputs]
    before |= {name: Digest() for name in new}
    return {name: before[name].then(d).to_dict() for name, d in added.items() if name in before}


def _counters(
    previous: Manifest, work: BatchWork, subqueries: Iterable[RunningSubquery]
) -> dict[str, int]:
    """The counters over all batches, this one included."""
    counters = Counter(previous.counters)
    added = {metric.name: metric.count(work) for metric in COUNTERS if metric.count is not None}
    counters.update({name: count for name, count in added.items() if count is not None})
    for subquery, found in zip(subqueries, work.outcomes, strict=True):
        counters.update(subquery.counted(found))
    return dict(counters)


def epoch_of(
    subquery: str, batch: int, taken: Taken, switch_ms: float, now: float
) -> dict[str, Any]:
    """The history entry of an epoch that begins with a batch.

    `now` must come from the clock that stamped the request (`WaitingRequest.at`).
    """
    mapping, asked = taken.mapping, taken.asked
    entry: dict[str, Any] = {
        "subquery": subquery,
        "epoch": int(mapping.epoch),
        "batch": batch,
        "instances": mapping.instances,
        "switch_ms": switch_ms,
    }
    if asked is None:
        return entry
    return entry | {
        "by": asked.request.by,
        "why": asked.request.why,
        "asked": asked.time,
        "applied": time_of(utc_now()),
        "control_ms": round(max(now - asked.at, 0.0) * 1e3, 3),
        "before": taken.before.instances,
        "buckets_moved": taken.moved,
        "bytes_moved": 0,
        "handover": SHARED,
    }


def completed(
    epochs: Iterable[Mapping[str, Any]], finishing: Mapping[str, EpochId | None]
) -> tuple[Mapping[str, Any], ...]:
    """The epochs with a time in `completed` for each switch that is complete after this batch.

    `finishing` names, by subquery, the oldest epoch whose owners still have windows to finish. All
    switches after that epoch wait for those owners.
    """
    now = time_of(utc_now())

    def is_over(epoch: Mapping[str, Any]) -> bool:
        oldest = finishing.get(epoch["subquery"])
        return oldest is None or epoch["epoch"] <= oldest

    return tuple(
        {**e, "completed": now} if "applied" in e and "completed" not in e and is_over(e) else e
        for e in epochs
    )
