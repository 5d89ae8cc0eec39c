"""Batches in this process, without a JVM: the same tasks, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from threading import Event

from tidegate.cancellation import breakable
from tidegate.execute.executor import Executor, Tasks
from tidegate.execute.job import Job, Outcome
from tidegate.execute.large_output import PART_ROWS, cuts_of, write_part, written
from tidegate.execute.task import map_here, run_instance, start_parcels
from tidegate.route.partitioner import EVERY_INSTANCE


class LocalExecutor(Executor):
    """Runs every task of a batch in the calling thread; for tests and small jobs.

    An output of many rows is merged and written part by part, where the sink takes parts.
    """

    _tasks = Tasks(0, 0)

    @cached_property
    def _aborted(self) -> Event:
        return Event()

    def tasks(self) -> Tasks:
        return self._tasks

    def run(self, job: Job) -> list[Outcome]:
        self._tasks = Tasks(0, len(job.splits) + job.mapping.running)
        try:
            with breakable(self._aborted):
                return self._run(job)
        finally:
            self._tasks = Tasks(0, 0)

    def _done(self) -> None:
        self._tasks = self._tasks._replace(done=self._tasks.done + 1)

    def _run(self, job: Job) -> list[Outcome]:
        outcomes = run_here(job, self._done)
        rows = sum(o.rows for o in outcomes)
        if job.parts is None or rows <= PART_ROWS:
            return outcomes
        cuts = cuts_of(job, outcomes, -(-rows // PART_ROWS))
        parts = [write_part(job, outcomes, cuts, number) for number in range(len(cuts) + 1)]
        return written(job, outcomes, parts)

    def abort(self) -> bool:
        """Have the batch end after the piece at hand: some million pairs of a join, a part."""
        self._aborted.set()
        return True

    def release(self, jobs: Sequence[Job]) -> None:
        """Nothing was left."""

    def close(self) -> None:
        """Nothing is held open."""


def run_here(job: Job, done: Callable[[], None] = lambda: None) -> list[Outcome]:
    """All instances of a job, one after the other; `done` is called after each task."""
    parcels = [*start_parcels(job), *map_here(job, done)]
    outcomes = []
    for i in range(job.mapping.running):
        mine = [p for p in parcels if p.instance in (i, EVERY_INSTANCE)]
        outcomes.append(run_instance(job, i, mine))
        done()
    return outcomes
