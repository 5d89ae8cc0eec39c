"""Batches on Spark on one host: small jobs of plain tasks, with files that every task can map.

No row passes through the JVM. A job of plain tasks starts in a fraction of the time that a planned
query with a shuffle needs (docs/performance.md has the numbers).
"""

from __future__ import annotations

import pickle

from pyspark import cloudpickle
from pyspark.sql import SparkSession

from tidegate.clock import SystemClock
from tidegate.runtime.exchange import Shipment, begin, leave
from tidegate.runtime.job import Job, Outcome
from tidegate.runtime.metrics import Spans, added
from tidegate.runtime.shared_task import instance_task, map_task, whole_task
from tidegate.runtime.spark_plain import PlainJobs

SMALL_ROWS = 131_072
"""Up to so many rows, counted once per instance, every instance reads the whole batch by itself:
that costs less than a job of map tasks before it."""


class SharedExecutor:
    """Runs each batch as a job of map tasks and a job of instances, over files between them."""

    def __init__(self, session: SparkSession) -> None:
        self._jobs = PlainJobs(session.sparkContext)

    def run(self, job: Job) -> list[Outcome]:
        spans = Spans(SystemClock())
        begin(job)
        path = leave(job, "job", cloudpickle.dumps(job))  # may hold classes of a script
        spans.mark("spark prepare")
        shipments: list[Shipment] = []
        if job.rows * job.mapping.instances <= SMALL_ROWS:
            answers = self._jobs.each(job, job.mapping.instances, whole_task, path)
        else:
            shipments = self._jobs.each(job, len(job.splits), map_task, path)
            spans.mark("spark map job")
            work = leave(job, "shipments", pickle.dumps((path, shipments)))
            answers = self._jobs.each(job, job.mapping.instances, instance_task, work)
        spans.mark("spark instance job")
        outcomes = self._jobs.settled(job, path, answers)
        spans.mark("spark finish")
        first = outcomes[0]
        spent = added([first.spans_ms, *(s.spans_ms for s in shipments), spans.spans_ms])
        return [first.with_spans(spent), *outcomes[1:]]
