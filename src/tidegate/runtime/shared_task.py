"""The tasks of the shared exchange; a module of their own, because workers import it.

What they are given is what the driver left for the batch in a file (`exchange.leave`).
"""

from __future__ import annotations

import pickle

from tidegate.runtime.exchange import Shipment, Stored, receive, ship, store_rows, taken
from tidegate.runtime.job import Job, Outcome
from tidegate.runtime.task import map_split, run_instance


def map_task(job: Job, number: int) -> Shipment:
    """Read one split and leave its parcels."""
    return ship(job, f"split-{number}", map_split(job, job.splits[number]))


def instance_task(work: tuple[str, list[Shipment]], number: int) -> Outcome | Stored:
    """Run one instance over the parcels left for it."""
    path, shipments = work
    job: Job = pickle.loads(taken(path))
    return store_rows(job, run_instance(job, number, receive(shipments, number)))


def whole_task(job: Job, number: int) -> Outcome | Stored:
    """Read all splits of a small batch and run one instance over its part of them."""
    parcels = [p for split in job.splits for p in map_split(job, split) if p.instance == number]
    return store_rows(job, run_instance(job, number, parcels))
