"""Runs map tasks of the next batch while the instances of this one run, and holds their shipments.

That is safe because these map tasks need nothing that the current batch writes
(`Traits.deals_ahead`): they would ship the same parcels later. A job is found by its name, which is
a digest of the rows that it reads, its owners and its bounds. If the next batch turns out different
(after a switch, or cut smaller), its job has another name or mapping and finds nothing here.
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
"""Starts the map tasks of a job; returns a future for each."""


@dataclass(frozen=True)
class _Mapping:
    job: Job
    shipments: Sequence[Future[Shipment]]


class MapsAhead:
    """The map tasks of the next batch; grows with the jobs of that batch.

    A background thread calls `begin`; the threads that run the batch call all other methods.
    """

    def __init__(self, begin: Begin) -> None:
        self._begin = begin
        self._begun: dict[str, _Mapping] = {}
        self._lock = Lock()
        self.used, self.unused = 0, 0
        """How many jobs used their shipments, and how many were mapped for nothing."""

    def begin(self, jobs: Sequence[Job]) -> None:
        """Start the map tasks of these jobs."""
        for job in jobs:
            with schedule.current().hold(self._lock):
                self._begun[job.name] = _Mapping(job, self._begin(job))

    def clear(self, job: Job) -> None:
        """Remove the exchange files of a finished batch, but not those of jobs mapped ahead.

        `job` is any job of that batch.
        """
        with schedule.current().hold(self._lock):
            clear(job, tuple(self._begun))

    def take(self, job: Job) -> list[Shipment] | None:
        """Wait for the map tasks of a job and return their shipments; None if there are none.

        Also None if one failed: the map task then runs again, and its error is raised there.
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
        """Forget unused shipments of batches up to `batch`, or all; waits for their map tasks."""
        for name, found in tuple(self._begun.items()):
            if batch is None or found.job.batch <= batch:
                del self._begun[name]
                self.unused += 1
                schedule.wait(found.shipments)


def _failed(shipment: Future[Shipment]) -> bool:
    return shipment.exception() is not None
