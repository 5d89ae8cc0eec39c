"""The tasks of the shared exchange; a module of their own, because workers import it.

What they are given is what the driver left for the batch in a file (`exchange.leave`).
"""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa

from tidegate.collect.pair import LATER, merged_pairs
from tidegate.runtime.exchange import (
    Shipment,
    Stored,
    load_rows,
    receive,
    ship,
    store_rows,
    taken,
)
from tidegate.runtime.job import EVERY, Job, Outcome
from tidegate.runtime.task import map_split, run_instance

SHOWN_ROWS = 20
"""How many rows of a part written by a task the driver is shown."""


def map_task(job: Job, number: int) -> Shipment:
    """Read one split and leave its parcels."""
    return ship(job, f"split-{number}", map_split(job, job.splits[number]))


def instance_task(work: tuple[str, list[Shipment]], number: int) -> Outcome | Stored:
    """Run one instance over the parcels left for it."""
    path, shipments = work
    job: Job = pickle.loads(taken(path))
    return store_rows(job, run_instance(job, number, receive(shipments, number)))


def merge_task(work: tuple[str, list[Outcome | Stored], list[int]], number: int) -> Outcome:
    """Write one part of a large output: what lies between two event times, of all instances."""
    path, answers, cuts = work
    job: Job = pickle.loads(taken(path))
    assert job.parts is not None
    pieces = []
    for answer in answers:
        rows = load_rows(answer).rows
        times = rows.column(LATER[0]).to_numpy()
        low = np.searchsorted(times, cuts[number - 1]) if number else 0
        high = np.searchsorted(times, cuts[number]) if number < len(cuts) else len(times)
        pieces.append(rows.slice(low, high - low))
    merged = merged_pairs(pieces).select(job.plan.schema.names).cast(job.plan.schema)
    job.parts.write(number, merged)
    last = merged.slice(max(merged.num_rows - SHOWN_ROWS, 0))
    return Outcome(number, pa.table(last.to_pydict(), schema=last.schema), written=merged.num_rows)


def whole_task(job: Job, number: int) -> Outcome | Stored:
    """Read all splits of a small batch and run one instance over its part of them."""
    parcels = [p for split in job.splits for p in map_split(job, split)]
    parcels = [p for p in parcels if p.instance in (number, EVERY)]
    return store_rows(job, run_instance(job, number, parcels))
