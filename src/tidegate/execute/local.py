"""Batches in this process, without a JVM: the same tasks, one after the other."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.execute.executor import Executor
from tidegate.execute.job import Job, Outcome, Parcel
from tidegate.execute.task import map_split, run_instance, start_parcels
from tidegate.route.partitioner import EVERY_INSTANCE


class LocalExecutor(Executor):
    """Runs every task of a batch in the calling thread; for tests and small jobs."""

    def run(self, job: Job) -> list[Outcome]:
        parcels: list[Parcel] = start_parcels(job)
        for split in job.splits:
            parcels += map_split(job, split)
        return [
            run_instance(job, i, [p for p in parcels if p.instance in (i, EVERY_INSTANCE)])
            for i in range(job.mapping.instances)
        ]

    def release(self, jobs: Sequence[Job]) -> None:
        """Nothing was left."""

    def close(self) -> None:
        """Nothing is held open."""
