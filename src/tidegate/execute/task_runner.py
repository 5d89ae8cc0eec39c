"""Who runs the tasks of the shared exchange, behind one protocol: jobs of Spark, or a crew."""

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
"""From so many rows on, the output of a subquery is merged and written by tasks."""

Task = Callable[[Any, int], Any]
"""A function of what was left for it, and its number."""


class TaskRunner(Protocol):
    """Runs functions as tasks on one host, and brings them what they need."""

    def groups(self, instances: int) -> int:
        """How many tasks the instances of a small batch are divided among."""

    def leave(self, job: Job, name: str, data: bytes) -> TaskWork:
        """Leave bytes for the tasks of a job."""

    def each(self, job: Job, count: int, task: Task, work: TaskWork) -> list[Any]:
        """Run one task per number below `count`, and give their answers in that order."""

    def tasks(self) -> TaskCounts | None:
        """How far the round is that runs; None where Spark knows."""
        return None

    def start(self) -> bool:
        """Have tasks ready; false where none stays, and nothing had to be started."""
        return False

    def until_at_work(self) -> None:
        """Block for a moment, until some task is at work."""
        return None

    def abort(self) -> None:
        """Give up the tasks that run; whoever waits for them gets an error."""

    def close(self) -> None:
        """Let go of what serves the tasks."""

    def settled(self, job: Job, left: TaskWork, outcomes: list[Outcome]) -> list[Outcome]:
        """The outcomes of instances; where their rows are many, tasks have written them.

        `left` is the job.
        """
        if not is_large(job, outcomes):
            return outcomes
        cuts = _large_cuts(job, outcomes)
        stored = [store_rows(job, outcome, least_bytes=0) for outcome in outcomes]
        work = self.leave(job, "merge", merge_work(left, stored, cuts))
        parts: list[Outcome] = self.each(job, len(cuts) + 1, merge_task, work)
        return written(job, outcomes, parts)


class StayingTasks(TaskRunner, Protocol):
    """Runs tasks on workers that stay from batch to batch: one more round of them costs little.

    They hold what was sent to them before, and take tasks while a round runs.
    """

    def begin(self, job: Job, count: int, task: Task, work: TaskWork) -> list[Future[Any]]:
        """Have tasks run when nothing else is to be run. May be asked by any thread.

        What they answer, or raise, is in the futures.
        """

    def drop(self, jobs: Sequence[str]) -> None:
        """Let go of what workers hold of jobs that are done, by name, if they hold anything."""


def is_large(job: Job, outcomes: Sequence[Outcome]) -> bool:
    """Whether the output of a job is merged and written by tasks."""
    return job.parts is not None and sum(o.rows for o in outcomes) >= LARGE_ROWS


def written_apart(
    job: Job, outcomes: Sequence[Outcome], run: Callable[[PartTask, int], Sequence[Outcome]]
) -> list[Outcome]:
    """Outcomes whose many rows tasks have written that share no files.

    `run` has a task called with each number below the one given, and gives the answers in order.
    """
    cuts = _large_cuts(job, outcomes)
    task = PartTask(job, [Outcome(o.instance, o.pieces) for o in outcomes], cuts)
    return written(job, outcomes, run(task, len(cuts) + 1))


def _large_cuts(job: Job, outcomes: Sequence[Outcome]) -> list[int]:
    """The event times at which a large output is divided among tasks: a part for each at least."""
    rows = sum(o.rows for o in outcomes)
    return cuts_of(job, outcomes, max(job.mapping.instances, -(-rows // PART_ROWS)))
