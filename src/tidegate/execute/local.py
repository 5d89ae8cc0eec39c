"""Runs jobs in this process, without a JVM: the same tasks, one after another."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from threading import Event

from tidegate.cancellation import breakable
from tidegate.execute.job import Job, Outcome
from tidegate.execute.large_output import PART_ROWS, cuts_of, write_part, written
from tidegate.execute.runner import JobRunner, TaskCounts
from tidegate.execute.task import map_here, run_instance, start_parcels
from tidegate.route.partitioner import EVERY_INSTANCE


class LocalRunner(JobRunner):
    """Runs every task of a batch in the calling thread; for tests and small jobs.

    An output of many rows is merged and written part by part, where the sink takes parts.
    """

    _tasks = TaskCounts(0, 0)

    @cached_property
    def _aborted(self) -> Event:
        return Event()

    def tasks(self) -> TaskCounts:
        return self._tasks

    def run(self, job: Job) -> list[Outcome]:
        self._tasks = TaskCounts(0, len(job.splits) + job.mapping.running)
        try:
            with breakable(self._aborted):
                return self._run(job)
        finally:
            self._tasks = TaskCounts(0, 0)

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
        """End the batch at the next call of `between_pieces`, for example in a large join."""
        self._aborted.set()
        return True


def run_here(job: Job, done: Callable[[], None] = lambda: None) -> list[Outcome]:
    """Run all tasks of a job one after another; calls `done` after each."""
    parcels = [*start_parcels(job), *map_here(job, done)]
    outcomes = []
    for i in range(job.mapping.running):
        mine = [p for p in parcels if p.instance in (i, EVERY_INSTANCE)]
        outcomes.append(run_instance(job, i, mine))
        done()
    return outcomes
