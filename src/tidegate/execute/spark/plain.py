"""Jobs of plain tasks on Spark, and a large output merged and written by them.

What a task is asked is in a file: a job's function is built once, and a property of the job tells
its tasks which file is meant. That saves half of the calls to the JVM.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import RDD, SparkContext, TaskContext
from pyspark.errors import PySparkException

from tidegate.errors import TidegateError
from tidegate.execute.exchange import Left, leave, store_rows
from tidegate.execute.job import Job, Outcome
from tidegate.execute.large_output import PART_ROWS, cuts_of, written
from tidegate.execute.shared_task import merge_task, merge_work
from tidegate.execute.spark.failure import tasks_failed

LARGE_ROWS = 262_144
"""From so many rows on, the output of a subquery is merged and written by tasks."""

_WORK = "tidegate.work"

Task = Callable[[Left, int], Any]


class PlainJobs:
    """Runs functions of (what was left for them, number) as tasks, one job at a time."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self._jobs: dict[tuple[Task, int], RDD[Any]] = {}

    def each(self, job: Job, count: int, task: Task, work: Left) -> list[Any]:
        """Run one task per number below `count`, and give their answers in that order."""
        if (task, count) not in self._jobs:
            numbers = self._context.parallelize(range(count), count)
            self._jobs[task, count] = numbers.mapPartitionsWithIndex(_tried(task))
        self._context.setLocalProperty(_WORK, str(work))
        try:
            answers: list[Any] = self._jobs[task, count].collect()
        except (PySparkException, Py4JJavaError) as error:
            raise tasks_failed(job, error) from error
        for answer in answers:
            if isinstance(answer, TidegateError):
                raise answer
        return answers

    def settled(self, job: Job, left: Left, outcomes: list[Outcome]) -> list[Outcome]:
        """The outcomes of instances; where their rows are many, tasks have written them.

        `left` is the job.
        """
        if not is_large(job, outcomes):
            return outcomes
        rows = sum(o.rows for o in outcomes)
        cuts = cuts_of(job, outcomes, max(job.mapping.instances, -(-rows // PART_ROWS)))
        stored = [store_rows(job, outcome, least_bytes=0) for outcome in outcomes]
        work = leave(job, "merge", merge_work(left, stored, cuts))
        parts: list[Outcome] = self.each(job, len(cuts) + 1, merge_task, work)
        return written(job, outcomes, parts)


def is_large(job: Job, outcomes: Sequence[Outcome]) -> bool:
    """Whether the output of a job is merged and written by tasks."""
    return job.parts is not None and sum(o.rows for o in outcomes) >= LARGE_ROWS


def _tried(task: Task) -> Callable[[int, Iterable[int]], Iterator[Any]]:
    def run(partition: int, _: Iterable[int]) -> Iterator[Any]:
        context = TaskContext.get()
        assert context is not None
        work = context.getLocalProperty(_WORK)
        assert work is not None
        try:
            yield task(Left.of(work), partition)
        except TidegateError as error:
            yield error

    return run
