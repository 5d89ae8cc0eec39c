"""The interface of what runs the tasks of an exchange: Spark jobs, or a crew of workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Protocol

from tidegate.execute.exchange import store_rows
from tidegate.execute.job import Job, Outcome
from tidegate.execute.large_output import PART_ROWS, PartTask, cuts_of, written
from tidegate.execute.runner import TaskCounts
from tidegate.execute.shared_task import merge_task, merge_work
from tidegate.execute.work import TaskWork

LARGE_ROWS = 262_144
"""An output with at least so many rows is merged and written by tasks, not by the driver."""

Task = Callable[[Any, int], Any]
"""A function of its `TaskWork` and its number."""


class TaskRunner(Protocol):
    """Runs functions as tasks, and brings them the bytes that they need."""

    def groups(self, instances: int) -> int:
        """The number of tasks that share the instances of a small batch."""

    def leave(self, job: Job, name: str, data: bytes) -> TaskWork:
        """Make bytes available to the tasks of a job."""

    def each(self, job: Job, count: int, task: Task, work: TaskWork) -> list[Any]:
        """Run one task for each number below `count`; return their answers in that order."""

    def tasks(self) -> TaskCounts | None:
        """The progress of the current round; None if Spark knows it."""
        return None

    def start(self) -> bool:
        """Start workers that stay; return false if this runner has none."""
        return False

    def until_at_work(self) -> None:
        """Block briefly, until some task is at work."""
        return None

    def abort(self) -> None:
        """Break off the running tasks; whoever waits for them gets an error."""

    def close(self) -> None:
        """Release the workers."""

    def settled(self, job: Job, left: TaskWork, outcomes: list[Outcome]) -> list[Outcome]:
        """The outcomes of the instances; if their rows are many, let tasks merge and write them.

        `left` stands for the job.
        """
        if not is_large(job, outcomes):
            return outcomes
        cuts = _large_cuts(job, outcomes)
        stored = [store_rows(job, outcome, least_bytes=0) for outcome in outcomes]
        work = self.leave(job, "merge", merge_work(left, stored, cuts))
        parts: list[Outcome] = self.each(job, len(cuts) + 1, merge_task, work)
        return written(job, outcomes, parts)


class StayingTasks(TaskRunner, Protocol):
    """Runs tasks on workers that stay from batch to batch, so that a round of tasks costs little.

    The workers keep what they were sent, and can take tasks while a round runs.
    """

    def begin(self, job: Job, count: int, task: Task, work: TaskWork) -> list[Future[Any]]:
        """Run tasks when the workers have nothing else to do; called by any thread.

        The futures get the answers or the errors.
        """

    def drop(self, jobs: Sequence[str]) -> None:
        """Let the workers delete the parcels of finished jobs, given by name."""


def is_large(job: Job, outcomes: Sequence[Outcome]) -> bool:
    """Whether tasks merge and write the output of a job."""
    return job.parts is not None and sum(o.rows for o in outcomes) >= LARGE_ROWS


def written_apart(
    job: Job, outcomes: Sequence[Outcome], run: Callable[[PartTask, int], Sequence[Outcome]]
) -> list[Outcome]:
    """Let tasks that share no files write the many rows of these outcomes.

    `run` calls a task with each number below the given one, and returns the answers in order.
    """
    cuts = _large_cuts(job, outcomes)
    task = PartTask(job, [Outcome(o.instance, o.pieces) for o in outcomes], cuts)
    return written(job, outcomes, run(task, len(cuts) + 1))


def _large_cuts(job: Job, outcomes: Sequence[Outcome]) -> list[int]:
    """The event times that divide a large output: at least one part for each instance."""
    rows = sum(o.rows for o in outcomes)
    return cuts_of(job, outcomes, max(job.mapping.instances, -(-rows // PART_ROWS)))
