"""Jobs of plain tasks on Spark, and a large output merged and written by them.

What a task is asked is in a file: a job's function is built once, and a property of the job tells
its tasks which file is meant. That saves half of the calls to the JVM.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import RDD, SparkContext, TaskContext
from pyspark.errors import PySparkException

from tidegate import disk
from tidegate.errors import TidegateError
from tidegate.execute.exchange import leave
from tidegate.execute.job import Job, Outcome
from tidegate.execute.large_output import PART_ROWS, cuts_of, written
from tidegate.execute.shared_task import merge_task
from tidegate.execute.spark.failure import tasks_failed

LARGE_ROWS = 262_144
"""From so many rows on, the output of a subquery is merged and written by tasks."""

_WORK = "tidegate.work"

Task = Callable[[Any, int], Any]


class PlainJobs:
    """Runs functions of (work, number) as tasks, one job at a time."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self._jobs: dict[tuple[Task, int], RDD[Any]] = {}

    def each(self, job: Job, count: int, task: Task, work: str) -> list[Any]:
        """Run one task per number below `count`, and give their answers in that order."""
        if (task, count) not in self._jobs:
            numbers = self._context.parallelize(range(count), count)
            self._jobs[task, count] = numbers.mapPartitionsWithIndex(_tried(task))
        self._context.setLocalProperty(_WORK, work)
        try:
            answers: list[Any] = self._jobs[task, count].collect()
        except (PySparkException, Py4JJavaError) as error:
            raise tasks_failed(job, error) from error
        for answer in answers:
            if isinstance(answer, TidegateError):
                raise answer
        return answers

    def settled(self, job: Job, path: str, outcomes: list[Outcome]) -> list[Outcome]:
        """The outcomes of instances; where their rows are many, tasks have written them.

        `path` is where the job was left.
        """
        if not is_large(job, outcomes):
            return outcomes
        rows = sum(o.rows for o in outcomes)
        cuts = cuts_of(job, outcomes, max(job.mapping.instances, -(-rows // PART_ROWS)))
        work = leave(job, "merge", pickle.dumps((path, outcomes, cuts)))
        parts: list[Outcome] = self.each(job, len(cuts) + 1, merge_task, work)
        return written(job, outcomes, parts)


def is_large(job: Job, outcomes: Sequence[Outcome]) -> bool:
    """Whether the output of a job is merged and written by tasks."""
    return job.parts is not None and sum(o.rows for o in outcomes) >= LARGE_ROWS


def _tried(task: Task) -> Callable[[int, Iterable[int]], Iterator[Any]]:
    def run(partition: int, _: Iterable[int]) -> Iterator[Any]:
        context = TaskContext.get()
        assert context is not None
        path = context.getLocalProperty(_WORK)
        assert path is not None
        try:
            yield task(pickle.loads(disk.current().map(path)), partition)
        except TidegateError as error:
            yield error

    return run
