"""Batches on Spark on one host: small jobs of plain tasks, with files that every task can map.

No row passes through the JVM. A job of plain tasks starts in a fraction of the time that a planned
query with a shuffle needs (docs/performance.md has the numbers). What a batch asks is in a file
too: the jobs are built once, and a task is told by a property of its job which file is meant.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from py4j.protocol import Py4JJavaError
from pyspark import RDD, TaskContext, cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tidegate.clock import SystemClock
from tidegate.collect.pair import LATER
from tidegate.errors import TidegateError
from tidegate.runtime.exchange import begin, end, leave, load_rows, taken
from tidegate.runtime.job import Job, Outcome
from tidegate.runtime.metrics import Spans, added
from tidegate.runtime.shared_task import instance_task, map_task, merge_task, whole_task
from tidegate.runtime.spark_failure import tasks_failed

SMALL_ROWS = 131_072
"""Up to so many rows, counted once per instance, every instance reads the whole batch by itself:
that costs less than a job of map tasks before it."""

LARGE_ROWS = 262_144
"""From so many rows on, the output of a join is merged and written by tasks."""

PART_ROWS = 1_000_000
"""About how many rows a part written by a task has."""

_WORK = "tidegate.work"


class SharedExecutor:
    """Runs each batch as a job of map tasks and a job of instances, over files between them."""

    def __init__(self, session: SparkSession) -> None:
        self._context = session.sparkContext
        self._jobs: dict[tuple[Callable[[Any, int], Any], int], RDD[Any]] = {}

    def run(self, job: Job) -> list[Outcome]:
        spans = Spans(SystemClock())
        begin(job)
        path = work = leave(job, "job", cloudpickle.dumps(job))  # may hold classes of a script
        spans.mark("spark prepare")
        if job.rows * job.mapping.instances <= SMALL_ROWS:
            answers = self._each(job, job.mapping.instances, whole_task, work)
        else:
            shipments = self._each(job, len(job.splits), map_task, work)
            spans.mark("spark map job")
            work = leave(job, "shipments", pickle.dumps((work, shipments)))
            answers = self._each(job, job.mapping.instances, instance_task, work)
        spans.mark("spark instance job")
        outcomes = [load_rows(a) for a in answers]
        cuts = _parts_of(job, outcomes)
        if cuts:
            work = leave(job, "merge", pickle.dumps((path, answers, cuts)))
            outcomes = _stood_for(outcomes, self._each(job, len(cuts) + 1, merge_task, work))
            spans.mark("spark merge job")
        end(job)
        spans.mark("spark finish")
        first = outcomes[0]
        return [first.with_spans(added([first.spans_ms, spans.spans_ms])), *outcomes[1:]]

    def close(self) -> None:
        """Nothing is held open; the Spark context is the caller's."""

    def _each(self, job: Job, count: int, task: Callable[[Any, int], Any], work: str) -> list[Any]:
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


def _parts_of(job: Job, outcomes: Sequence[Outcome]) -> list[int]:
    """The event times at which a large output is divided into parts; none where it is small."""
    total = sum(o.rows.num_rows for o in outcomes)
    if job.plan.join is None or job.parts is None or total < LARGE_ROWS:
        return []
    times = [o.rows.column(LATER[0]).to_numpy() for o in outcomes]
    some = np.sort(np.concatenate([t[:: max(len(t) // 1000, 1)] for t in times]))
    count = max(job.mapping.instances, -(-total // PART_ROWS))
    cuts = some[np.arange(1, count) * len(some) // count]
    return [int(c) for c in np.unique(cuts)]


def _stood_for(outcomes: Sequence[Outcome], parts: Sequence[Outcome]) -> list[Outcome]:
    """The outcomes of instances without rows, the first with the parts' number of rows."""
    bare = [replace(o.without_rows(), written=0) for o in outcomes]
    total = sum(p.written or 0 for p in parts)
    return [replace(bare[0], rows=parts[-1].rows, written=total), *bare[1:]]


def _tried(
    task: Callable[[Any, int], Any],
) -> Callable[[int, Iterable[int]], Iterator[Any]]:
    def run(partition: int, _: Iterable[int]) -> Iterator[Any]:
        context = TaskContext.get()
        assert context is not None
        path = context.getLocalProperty(_WORK)
        assert path is not None
        try:
            yield task(pickle.loads(taken(path)), partition)
        except TidegateError as error:
            yield error

    return run
