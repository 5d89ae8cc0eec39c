"""The tasks of the shared exchange; a module of their own, because workers import it.

What they are given is what the driver left for the batch in a file (`exchange.leave`).
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace

from tidegate import disk
from tidegate.clock import SystemClock
from tidegate.execute.exchange import Shipment, receive, ship, store_rows
from tidegate.execute.executor import Draft, Outcomes, in_turn
from tidegate.execute.job import SPANS, Job, Outcome, Piece
from tidegate.execute.large_output import write_part
from tidegate.execute.local import run_here
from tidegate.execute.task import map_split, run_instance
from tidegate.route.partitioner import EVERY_INSTANCE
from tidegate.spans import Spans, added


def map_task(job: Job, number: int) -> Shipment:
    """Read one split and leave its parcels."""
    parcels = map_split(job, job.splits[number])
    spans = Spans(SystemClock())
    shipment = ship(job, f"split-{number}", parcels)
    spans.mark("map ship")
    return replace(shipment, spans_ms=spans.spans_ms)


def instance_task(work: tuple[str, list[Shipment]], number: int) -> Outcome:
    """Run one instance over the parcels left for it."""
    path, shipments = work
    job: Job = pickle.loads(disk.current().map(path))
    return _stored(job, run_instance(job, number, receive(shipments, number)))


def merge_task(work: tuple[str, list[Outcome], list[int]], number: int) -> Outcome:
    """Write one part of a large output."""
    path, outcomes, cuts = work
    return write_part(pickle.loads(disk.current().map(path)), outcomes, cuts, number)


def whole_task(job: Job, number: int) -> Outcome:
    """Read all splits of a small batch and run one instance over its part of them."""
    parcels = [p for split in job.splits for p in map_split(job, split)]
    parcels = [p for p in parcels if p.instance in (number, EVERY_INSTANCE) or p.kind == SPANS]
    return _stored(job, run_instance(job, number, parcels))


def batch_task(drafts: Sequence[Draft], number: int) -> tuple[Outcomes, float]:
    """Run all instances of all subqueries of a small batch; with the seconds that took.

    Only the rows that go out are kept.
    """
    clock = SystemClock()
    started = clock.now()
    jobs, outcomes = in_turn(drafts, run_here)
    kept = [[_kept(job, o) for o in found] for job, found in zip(jobs, outcomes, strict=True)]
    return kept, clock.now() - started


def _kept(job: Job, outcome: Outcome) -> Outcome:
    """An outcome with the rows of the ports that outputs take."""
    pieces = tuple(
        piece if i in job.outputs else Piece.of(port, piece.load().slice(0, 0))
        for i, (port, piece) in enumerate(zip(job.subquery.ports, outcome.pieces, strict=True))
    )
    return _stored(job, replace(outcome, pieces=pieces))


def _stored(job: Job, outcome: Outcome) -> Outcome:
    spans = Spans(SystemClock())
    outcome = store_rows(job, outcome)
    spans.mark("instance ship")
    return outcome.with_spans(added([outcome.spans_ms, spans.spans_ms]))
