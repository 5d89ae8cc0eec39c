"""Batches on Spark on one host: two small jobs, with files that every task can map between them.

No row passes through the JVM. A job of plain tasks starts in a fraction of the time that a planned
query with a shuffle needs (docs/performance.md has the numbers).
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from py4j.protocol import Py4JJavaError
from pyspark import RDD
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tidegate.errors import TidegateError
from tidegate.runtime.exchange import (
    Shipment,
    Stored,
    begin,
    end,
    load_rows,
    receive,
    ship,
    store_rows,
)
from tidegate.runtime.job import Job, Outcome
from tidegate.runtime.spark_failure import tasks_failed
from tidegate.runtime.task import map_split, run_instance

Answer = TypeVar("Answer")


class SharedExecutor:
    """Runs each batch as a job of map tasks and a job of instances, over files between them."""

    def __init__(self, session: SparkSession) -> None:
        self._context = session.sparkContext
        self._numbers: dict[int, RDD[int]] = {}

    def run(self, job: Job) -> list[Outcome]:
        begin(job)
        work = pickle.dumps(job)
        shipments = self._each(job, len(job.splits), _map_task(work))
        answers = self._each(job, job.mapping.instances, _instance_task(work, shipments))
        outcomes = [load_rows(a) for a in answers]
        end(job)
        return outcomes

    def close(self) -> None:
        """Nothing is held open; the Spark context is the caller's."""

    def _each(self, job: Job, count: int, task: Callable[[int], Answer]) -> list[Answer]:
        """Run one task per number below `count`, and give their answers in that order."""
        if not count:
            return []
        numbers = self._numbers.get(count)
        if numbers is None:
            numbers = self._numbers[count] = self._context.parallelize(range(count), count)

        def run(partition: int, _: Iterable[int]) -> Iterator[Answer | TidegateError]:
            try:
                yield task(partition)
            except TidegateError as error:
                yield error

        try:
            answers: list[Answer | TidegateError] = numbers.mapPartitionsWithIndex(run).collect()
        except (PySparkException, Py4JJavaError) as error:
            raise tasks_failed(job, error) from error
        good: list[Answer] = []
        for answer in answers:
            if isinstance(answer, TidegateError):
                raise answer
            good.append(answer)
        return good


def _map_task(work: bytes) -> Callable[[int], Shipment]:
    def run(number: int) -> Shipment:
        job: Job = pickle.loads(work)
        return ship(job, f"split-{number}", map_split(job, job.splits[number]))

    return run


def _instance_task(work: bytes, shipments: list[Shipment]) -> Callable[[int], Outcome | Stored]:
    def run(number: int) -> Outcome | Stored:
        job: Job = pickle.loads(work)
        return store_rows(job, run_instance(job, number, receive(shipments, number)))

    return run
