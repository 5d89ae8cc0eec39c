"""Batches on Spark on one host: small jobs of plain tasks, with files that every task can map.

No row passes through the JVM. A job of plain tasks starts in a fraction of the time that a planned
query with a shuffle needs (docs/performance.md has the numbers).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from tidegate.clock import SystemClock
from tidegate.execute.exchange import Shipment, begin
from tidegate.execute.executor import Draft, Outcomes, in_turn
from tidegate.execute.job import Job, Outcome
from tidegate.execute.pace import Pace
from tidegate.execute.shared_task import (
    batch_task,
    by_instance,
    instance_task,
    instance_work,
    map_task,
    whole_task,
    whole_work,
)
from tidegate.execute.spark.packing import Packing
from tidegate.execute.task_runner import TaskRunner, is_large
from tidegate.spans import Spans, added

SMALL_ROWS = 131_072
"""Up to so many rows, counted once per task, every task reads the whole batch by itself and runs
its instances: that costs less than a round of map tasks before it."""

TINY_ROWS = 16_384
"""Up to so many rows, if the work is short, one task runs all instances of all subqueries in turn:
that costs less than a second task, and much less than a second job. Among tasks that stay only
where there is one for all instances anyway."""


class SharedExecutor:
    """Runs each job as map tasks and then instances, over files between them.

    A small batch is one round of tasks for each subquery, a tiny one may be one task.
    """

    def __init__(self, runner: TaskRunner) -> None:
        self._runner = runner
        self._packing = Packing(runner)
        self._paces: defaultdict[str, Pace] = defaultdict(Pace)

    def start(self, drafts: Sequence[Draft]) -> bool:
        """As `Executor.start` says."""
        self._packing.know(drafts)
        return self._runner.start()

    def run_batch(self, drafts: Sequence[Draft]) -> tuple[list[Job], Outcomes]:
        first = drafts[0].job
        rows, pace = sum(d.job.rows for d in drafts), self._paces[first.subquery.fingerprint]
        if rows > min(TINY_ROWS, SMALL_ROWS) or not self._is_one(drafts, rows, pace):
            return in_turn(drafts, self.run)
        spans = Spans(SystemClock())
        left = self._packing.leave(first, "batch", tuple(drafts))
        spans.mark("spark prepare")
        ((outcomes, seconds),) = self._runner.each(first, 1, batch_task, left)
        pace.note(rows, seconds)
        spans.mark("spark batch job")
        jobs = [d.job for d in drafts]
        outcomes = [self._settled(j, found) for j, found in zip(jobs, outcomes, strict=True)]
        spans.mark("spark finish")
        (told, *others), *rest = outcomes
        spent = added([told.spans_ms, spans.spans_ms])
        return jobs, [[told.with_spans(spent), *others], *rest]

    def _is_one(self, drafts: Sequence[Draft], rows: int, pace: Pace) -> bool:
        """Whether one task is to run all of a batch."""
        if self._runner.stays:
            return all(self._runner.groups(d.job.mapping.running) == 1 for d in drafts)
        return pace.short(rows)

    def _settled(self, job: Job, outcomes: list[Outcome]) -> list[Outcome]:
        """The outcomes of a tiny batch; tasks have written what has become large in it."""
        if not is_large(job, outcomes):
            return outcomes
        left = self._packing.leave(job, "job", job)
        return self._runner.settled(job, left, outcomes)

    def run(self, job: Job) -> list[Outcome]:
        spans = Spans(SystemClock())
        shipments: list[Shipment] = []
        groups = self._runner.groups(job.mapping.running)
        small = job.rows * groups <= SMALL_ROWS
        if not small:
            begin(job)
        left = self._packing.leave(job, "job", job)
        spans.mark("spark prepare")
        if small:
            work = self._runner.leave(job, "groups", whole_work(left, groups))
            answers = by_instance(self._runner.each(job, groups, whole_task, work))
        else:
            shipments = self._runner.each(job, len(job.splits), map_task, left)
            spans.mark("spark map job")
            work = self._runner.leave(job, "shipments", instance_work(left, shipments))
            answers = self._runner.each(job, job.mapping.running, instance_task, work)
        spans.mark("spark instance job")
        outcomes = self._runner.settled(job, left, answers)
        spans.mark("spark finish")
        first = outcomes[0]
        spent = added([first.spans_ms, *(s.spans_ms for s in shipments), spans.spans_ms])
        return [first.with_spans(spent), *outcomes[1:]]
