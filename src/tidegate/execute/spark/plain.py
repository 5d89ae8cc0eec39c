"""Tasks as jobs of Spark, one job for each round of them.

What a task is asked is in a file: a job's function is built once, and a property of the job tells
its tasks which file is meant. That saves half of the calls to the JVM.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import RDD, SparkContext, TaskContext
from pyspark.errors import PySparkException

from tidegate.errors import TidegateError
from tidegate.execute.exchange import leave, make
from tidegate.execute.job import Job
from tidegate.execute.spark.failure import tasks_failed
from tidegate.execute.task_runner import Task, TaskRunner
from tidegate.execute.work import TaskWork, work_of

_WORK = "tidegate.work"


class PlainJobs(TaskRunner):
    """Runs functions of (what was left for them, number) as tasks, one job at a time."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self._jobs: dict[tuple[Task, int], RDD[Any]] = {}

    def groups(self, instances: int) -> int:
        return instances

    def leave(self, job: Job, name: str, data: bytes) -> TaskWork:
        make(job)
        return leave(job, name, data)

    def each(self, job: Job, count: int, task: Task, work: TaskWork) -> list[Any]:
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

    def abort(self) -> None:
        """Its jobs are cancelled with their group."""

    def close(self) -> None:
        """A job ends by itself."""


def _tried(task: Task) -> Callable[[int, Iterable[int]], Iterator[Any]]:
    def run(partition: int, _: Iterable[int]) -> Iterator[Any]:
        context = TaskContext.get()
        assert context is not None
        work = context.getLocalProperty(_WORK)
        assert work is not None
        try:
            yield task(work_of(work), partition)
        except TidegateError as error:
            yield error

    return run
