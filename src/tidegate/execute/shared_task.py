"""The tasks of the shared exchange; a module of their own, because workers import it.

What they are given is what the driver left for the batch in a file or sent (`work`): a job, which
may hold classes of the user's and is pickled, or JSON that names one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace

from tidegate import schedule
from tidegate.durable import gathering
from tidegate.execute.exchange import Shipment, receive, ship, store_apart, store_rows
from tidegate.execute.job import SPANS, Job, Outcome, Parcel, Piece
from tidegate.execute.large_output import PartTask, write_part
from tidegate.execute.local import run_here
from tidegate.execute.plan_part import load
from tidegate.execute.resident import depot
from tidegate.execute.runner import Draft, Outcomes, in_turn
from tidegate.execute.task import map_here, map_split, run_instance
from tidegate.execute.work import TaskWork, work_of
from tidegate.route.partitioner import EVERY_INSTANCE
from tidegate.spans import Spans, added


def map_task(left: TaskWork, number: int) -> Shipment:
    """Read one split and leave its parcels."""
    spans = Spans(schedule.current().clock)
    job = _job(left)
    spans.mark("map load")
    parcels = map_split(job, job.splits[number])
    spans.skip()
    own = depot.current()
    shipment = (ship if own is None else own.ship)(job, f"split-{number}", parcels)
    spans.mark("map ship")
    return replace(shipment, spans_ms=spans.spans_ms)


def instance_work(job: TaskWork, shipments: Sequence[Shipment]) -> bytes:
    """What to leave for instance tasks."""
    return json.dumps({"job": str(job), "shipments": [asdict(s) for s in shipments]}).encode()


def instance_task(left: TaskWork, number: int) -> Outcome:
    """Run one instance over the parcels left for it."""
    spans = Spans(schedule.current().clock)
    work = json.loads(left.open().to_pybytes())
    job = _job(work_of(work["job"]))
    shipments = [Shipment.of(fields) for fields in work["shipments"]]
    own = depot.current()
    parcels = (receive if own is None else own.receive)(shipments, number)
    spans.mark("instance load" if own is None else "instance fetch")
    return _run(job, number, parcels, spans)


def merge_work(job: TaskWork, outcomes: Sequence[Outcome], cuts: Sequence[int]) -> bytes:
    """What to leave for merge tasks, of outcomes whose rows are in files."""
    pieces = [asdict(outcome.pieces[0]) for outcome in outcomes]
    return json.dumps({"job": str(job), "pieces": pieces, "cuts": list(cuts)}).encode()


def merge_task(left: TaskWork, number: int) -> Outcome:
    """Write one part of a large output."""
    spans = Spans(schedule.current().clock)
    work = json.loads(left.open().to_pybytes())
    outcomes = [Outcome(i, (Piece(**fields),)) for i, fields in enumerate(work["pieces"])]
    job = _job(work_of(work["job"]))
    spans.mark("merge load")
    part = write_part(job, outcomes, work["cuts"], number)
    spans.mark("merge write")
    return part.with_spans(spans.spans_ms)


def part_task(left: TaskWork, number: int) -> Outcome:
    """Write one part of a large output, of rows in a remote checkpoint."""
    write: PartTask = load(left.open())
    return write(number)


def whole_work(job: TaskWork, groups: int) -> bytes:
    """What to leave for tasks that run the instances of a small batch in so many groups."""
    return json.dumps({"job": str(job), "groups": groups}).encode()


def by_instance(groups: Iterable[Sequence[Outcome]]) -> list[Outcome]:
    """What the groups of a small batch answered, in the order of the instances."""
    return sorted((o for found in groups for o in found), key=lambda o: o.instance)


def whole_task(left: TaskWork, number: int) -> list[Outcome]:
    """Read all splits of a small batch and run every so many-th instance over its part of them."""
    work = json.loads(left.open().to_pybytes())
    job = _job(work_of(work["job"]))
    parcels = map_here(job)
    outcomes = []
    for instance in range(number, job.mapping.running, work["groups"]):
        takes = {instance, EVERY_INSTANCE}
        told = instance == number  # what the reading took is told once
        mine = [p for p in parcels if (told if p.kind == SPANS else p.instance in takes)]
        outcomes.append(_run(job, instance, mine))
    return outcomes


KEEPING = (instance_task, whole_task)
"""The tasks that find in their own worker what they kept of the batch before."""


def batch_task(left: TaskWork, number: int) -> tuple[Outcomes, float]:
    """Run all instances of all subqueries of a small batch; with the seconds that took.

    Only the rows that go out are kept.
    """
    clock = schedule.current().clock
    started = clock.now()
    drafts: Sequence[Draft] = load(left.open())
    with gathering() as due:
        jobs, outcomes = in_turn(drafts, run_here)
    outcomes[0][0] = replace(outcomes[0][0], due=due.files)
    kept = [[_kept(job, o) for o in found] for job, found in zip(jobs, outcomes, strict=True)]
    return kept, clock.now() - started


def _job(left: TaskWork) -> Job:
    job: Job = load(left.open())
    return job


def _run(job: Job, number: int, parcels: Sequence[Parcel], spans: Spans | None = None) -> Outcome:
    """Run an instance. On the driver's host the syncs of what it writes are left to the driver.

    A worker with a depot shares the checkpoint with the driver, and no more: it answers with its
    rows unless they are very many, and what it writes is on the disk then.
    """
    if depot.current() is not None:
        outcome = store_apart(job, run_instance(job, number, parcels))
        return (
            outcome
            if spans is None
            else outcome.with_spans(added([outcome.spans_ms, spans.spans_ms]))
        )
    with gathering() as due:
        outcome = run_instance(job, number, parcels)
    return _stored(job, replace(outcome, due=due.files), spans)


def _kept(job: Job, outcome: Outcome) -> Outcome:
    """An outcome with the rows of the ports that outputs take."""
    pieces = tuple(
        piece if i in job.outputs else Piece.of(port, piece.load().slice(0, 0))
        for i, (port, piece) in enumerate(zip(job.subquery.ports, outcome.pieces, strict=True))
    )
    return _stored(job, replace(outcome, pieces=pieces))


def _stored(job: Job, outcome: Outcome, spans: Spans | None = None) -> Outcome:
    """An outcome whose rows are in files where they are many; `spans` go on with that."""
    spans = spans or Spans(schedule.current().clock)
    spans.skip()
    outcome = store_rows(job, outcome)
    spans.mark("instance ship")
    return outcome.with_spans(added([outcome.spans_ms, spans.spans_ms]))
