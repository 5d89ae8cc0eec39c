"""The tasks of the shared exchange; workers import this module.

Each task gets a `TaskWork`: bytes that the driver left in a file or sent. The bytes are a pickled
job (it may hold the user's classes), or JSON that names one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace

from tidegate import schedule
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
from tidegate.storage.durable import gathering


def map_task(left: TaskWork, number: int) -> Shipment:
    """Read one split and ship its parcels."""
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
    """The bytes for instance tasks: the job, and where its parcels are."""
    return json.dumps({"job": str(job), "shipments": [asdict(s) for s in shipments]}).encode()


def instance_task(left: TaskWork, number: int) -> Outcome:
    """Run one instance over the parcels shipped to it."""
    spans = Spans(schedule.current().clock)
    work = json.loads(left.open().to_pybytes())
    job = _job(work_of(work["job"]))
    shipments = [Shipment.of(fields) for fields in work["shipments"]]
    own = depot.current()
    parcels = (receive if own is None else own.receive)(shipments, number)
    spans.mark("instance load" if own is None else "instance fetch")
    return _run(job, number, parcels, spans)


def merge_work(job: TaskWork, outcomes: Sequence[Outcome], cuts: Sequence[int]) -> bytes:
    """The bytes for merge tasks; the rows of the outcomes must be in files."""
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
    """Write one part of a large output whose rows are in a remote checkpoint."""
    write: PartTask = load(left.open())
    return write(number)


def whole_work(job: TaskWork, groups: int) -> bytes:
    """The bytes for tasks that run the instances of a small batch in `groups` groups."""
    return json.dumps({"job": str(job), "groups": groups}).encode()


def by_instance(groups: Iterable[Sequence[Outcome]]) -> list[Outcome]:
    """The outcomes of all groups of a small batch, in the order of the instances."""
    return sorted((o for found in groups for o in found), key=lambda o: o.instance)


def whole_task(left: TaskWork, number: int) -> list[Outcome]:
    """Read all splits of a small batch, and run the instances of group `number`.

    Each group reads everything: for few rows that costs less than a round of map tasks.
    """
    work = json.loads(left.open().to_pybytes())
    job = _job(work_of(work["job"]))
    parcels = map_here(job)
    outcomes = []
    for instance in range(number, job.mapping.running, work["groups"]):
        takes = {instance, EVERY_INSTANCE}
        told = instance == number  # a group reads once, so only its first instance reports it
        mine = [p for p in parcels if (told if p.kind == SPANS else p.instance in takes)]
        outcomes.append(_run(job, instance, mine))
    return outcomes


KEEPING = (instance_task, whole_task)
"""The tasks that use state which the same worker kept in memory from the batch before."""


def batch_task(left: TaskWork, number: int) -> tuple[Outcomes, float]:
    """Run all instances of all subqueries of a tiny batch; return the outcomes and the seconds.

    Rows on edges between subqueries are dropped from the outcomes: nobody else needs them.
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
    """Run an instance, and store its rows where the driver can read them.

    On the driver's host the files to sync are named in `Outcome.due`, and the driver syncs them
    before the commit. A worker with a depot may be on another host: it syncs what it writes, and
    answers with its rows unless they are very many.
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
    """The outcome without the rows of ports that no output reads."""
    pieces = tuple(
        piece if i in job.outputs else Piece.of(port, piece.load().slice(0, 0))
        for i, (port, piece) in enumerate(zip(job.subquery.ports, outcome.pieces, strict=True))
    )
    return _stored(job, replace(outcome, pieces=pieces))


def _stored(job: Job, outcome: Outcome, spans: Spans | None = None) -> Outcome:
    """The outcome with many rows moved to files; the time that takes is added to its spans."""
    spans = spans or Spans(schedule.current().clock)
    spans.skip()
    outcome = store_rows(job, outcome)
    spans.mark("instance ship")
    return outcome.with_spans(added([outcome.spans_ms, spans.spans_ms]))
