"""Holds what map tasks of the next batch have shipped while the instances of this one run.

A job is known by its name, which stands for the rows that it reads, its owners and its bounds. The
parcels are those that its map tasks would make later: they need nothing that the batch before
leaves (`Traits.deals_ahead`). A job that turns out otherwise, after a switch or with a smaller
batch, has another name or another mapping, and finds nothing here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Lock

from tidegate import schedule
from tidegate.execute.exchange import Shipment, clear
from tidegate.execute.job import Job

Begin = Callable[[Job], Sequence["Future[Shipment]"]]
"""Starts the map tasks of a job, each with its future."""


@dataclass(frozen=True)
class _Mapping:
    job: Job
    shipments: Sequence[Future[Shipment]]


class MapsAhead:
    """The map tasks of the next batch; grows with its jobs.

    `begin` is called in a thread beside the batch, all else by those that run it.
    """

    def __init__(self, begin: Begin) -> None:
        self._begin = begin
        self._begun: dict[str, _Mapping] = {}
        self._lock = Lock()
        self.used, self.unused = 0, 0
        """How many jobs have found here what they need, and how many were mapped for nothing."""

    def begin(self, jobs: Sequence[Job]) -> None:
        """Start the map tasks of these jobs."""
        for job in jobs:
            with schedule.current().hold(self._lock):
                self._begun[job.name] = _Mapping(job, self._begin(job))

    def clear(self, job: Job) -> None:
        """Remove what the jobs of a batch left, one of which is this; not what is still wanted."""
        with schedule.current().hold(self._lock):
            clear(job, tuple(self._begun))

    def take(self, job: Job) -> list[Shipment] | None:
        """What the map tasks of a job have shipped, when they are done; None where it has none.

        Nor where one has failed: it fails again when it is needed, and is told then.
        """
        found = self._begun.pop(job.name, None)
        if found is None:
            return None
        schedule.wait(found.shipments)
        if found.job.mapping != job.mapping or any(map(_failed, found.shipments)):
            self.unused += 1
            return None
        self.used += 1
        return [s.result() for s in found.shipments]

    def drop(self, batch: int | None = None) -> None:
        """Let go of what was made for a batch and those before it, and was not taken; or of all."""
        for name, found in tuple(self._begun.items()):
            if batch is None or found.job.batch <= batch:
                del self._begun[name]
                self.unused += 1
                schedule.wait(found.shipments)


def _failed(shipment: Future[Shipment]) -> bool:
    return shipment.exception() is not None
