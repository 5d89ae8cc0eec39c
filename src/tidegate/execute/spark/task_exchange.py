"""Runs jobs as rounds of plain tasks: over files of one host, or from worker to worker.

No row passes through the JVM. A job of plain tasks starts in a fraction of the time that a planned
query with a shuffle needs (docs/measured/engine.md has the numbers).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Event
from typing import Generic, TypeVar

from tidegate.clock import SystemClock
from tidegate.errors import LostParcelsError
from tidegate.execute.exchange import Shipment, begin, clear
from tidegate.execute.job import Job, Outcome
from tidegate.execute.large_output import PartTask
from tidegate.execute.map_ahead import MapsAhead
from tidegate.execute.runner import Draft, Outcomes, in_turn, side_by_side
from tidegate.execute.shared_task import (
    batch_task,
    by_instance,
    instance_task,
    instance_work,
    map_task,
    part_task,
    whole_task,
    whole_work,
)
from tidegate.execute.spark.packing import Packing
from tidegate.execute.spark.retry import retried
from tidegate.execute.task_runner import StayingTasks, TaskRunner, is_large, written_apart
from tidegate.execute.work import TaskWork
from tidegate.spans import Spans, added

Runner = TypeVar("Runner", bound=TaskRunner)

SMALL_ROWS = 131_072
"""Up to so many rows, counted once per task, every task reads the whole batch by itself and runs
its instances: that costs less than a round of map tasks before it."""

TINY_ROWS = 16_384
"""Up to so many rows, if the work is short, one task runs all instances of all subqueries in turn:
that costs less than a second task, and much less than a second job. Among tasks that stay only
where there is one for all instances anyway."""

SHORT_S = 0.1
"""Work of so many seconds is not worth another task, let alone another job."""

_FORGOTTEN = 16
"""After so many batches that were thought too long, one is tried again: the first ones compile."""


@dataclass
class WholeBatchPace:
    """What one task took for a whole batch, last time, and how many batches were not given to one.

    Before the first time a batch is thought to be short.
    """

    seconds: float = 0.0
    rows: int = 1
    passed: int = 0

    def short(self, rows: int) -> bool:
        """Whether so many rows are likely to be short work."""
        expected = self.seconds * max(1.0, rows / (2 * self.rows))
        if expected <= SHORT_S or self.passed == _FORGOTTEN:
            return True
        self.passed += 1
        return False

    def note(self, rows: int, seconds: float) -> None:
        """One task has run a batch."""
        self.rows, self.seconds, self.passed = max(rows, 1), seconds, 0


class _TaskExchange(Generic[Runner]):
    """Packs jobs for the tasks of a runner."""

    def __init__(self, tasks: Runner) -> None:
        self._tasks = tasks
        self._packing = Packing(tasks)

    def start(self, drafts: Sequence[Draft]) -> bool:
        """As `JobRunner.start` says."""
        if not self._tasks.start():
            return False
        self._packing.know(drafts)
        return True


class SharedExchange(_TaskExchange[Runner]):
    """Runs each job as map tasks and then instances, over files between them.

    A small batch is one round of tasks for each subquery, a tiny one may be one task.
    """

    def __init__(self, tasks: Runner) -> None:
        super().__init__(tasks)
        self._paces: defaultdict[str, WholeBatchPace] = defaultdict(WholeBatchPace)

    def maps_ahead(self, drafts: Sequence[Draft]) -> bool:
        """As `JobRunner.maps_ahead` says."""
        return False

    def map_ahead(self, jobs: Sequence[Job]) -> None:
        """As `JobRunner.map_ahead` says."""
        return None

    def clear(self, job: Job) -> None:
        """Remove what the jobs of a batch left, one of which is this; not what is still wanted."""
        clear(job)

    def let_go(self) -> None:
        """Wait for what was begun ahead and will not be used."""
        return None

    def run_batch(self, drafts: Sequence[Draft]) -> tuple[list[Job], Outcomes]:
        first = drafts[0].job
        rows, pace = sum(d.job.rows for d in drafts), self._paces[first.subquery.fingerprint]
        if rows > min(TINY_ROWS, SMALL_ROWS) or not self._is_one(drafts, rows, pace):
            return self._run_jobs(drafts)
        spans = Spans(SystemClock())
        left = self._packing.leave(first, "batch", tuple(drafts))
        spans.mark("spark prepare")
        ((outcomes, seconds),) = self._tasks.each(first, 1, batch_task, left)
        pace.note(rows, seconds)
        spans.mark("spark batch job")
        jobs = [d.job for d in drafts]
        outcomes = [self._settled(j, found) for j, found in zip(jobs, outcomes, strict=True)]
        spans.mark("spark finish")
        (told, *others), *rest = outcomes
        spent = added([told.spans_ms, spans.spans_ms])
        return jobs, [[told.with_spans(spent), *others], *rest]

    def _is_one(self, drafts: Sequence[Draft], rows: int, pace: WholeBatchPace) -> bool:
        """Whether one task is to run all of a batch."""
        return pace.short(rows)

    def _run_jobs(self, drafts: Sequence[Draft]) -> tuple[list[Job], Outcomes]:
        return in_turn(drafts, self.run)

    def _settled(self, job: Job, outcomes: list[Outcome]) -> list[Outcome]:
        """The outcomes of a tiny batch; tasks have written what has become large in it."""
        if not is_large(job, outcomes):
            return outcomes
        left = self._packing.leave(job, "job", job)
        return self._tasks.settled(job, left, outcomes)

    def _is_small(self, job: Job) -> bool:
        """Whether every task of a job reads all of its rows."""
        return job.rows * self._tasks.groups(job.mapping.running) <= SMALL_ROWS

    def run(self, job: Job) -> list[Outcome]:
        spans = Spans(SystemClock())
        groups, small = self._tasks.groups(job.mapping.running), self._is_small(job)
        ahead = self._mapped(job)
        shipments = ahead or []
        if ahead is None and not small:
            begin(job)
        spans.mark("spark map job")
        left = self._packing.leave(job, "job", job)
        spans.mark("spark prepare")
        if small:
            self._begin_last_round(job)
            work = self._tasks.leave(job, "groups", whole_work(left, groups))
            answers = by_instance(self._tasks.each(job, groups, whole_task, work))
        else:
            if ahead is None:
                shipments = self._tasks.each(job, len(job.splits), map_task, left)
                spans.mark("spark map job")
            self._begin_last_round(job)
            work = self._tasks.leave(job, "shipments", instance_work(left, shipments))
            answers = self._tasks.each(job, job.mapping.running, instance_task, work)
        spans.mark("spark instance job")
        outcomes = self._tasks.settled(job, left, answers)
        spans.mark("spark finish")
        first = outcomes[0]
        spent = added([first.spans_ms, *(s.spans_ms for s in shipments), spans.spans_ms])
        return [first.with_spans(spent), *outcomes[1:]]

    def _mapped(self, job: Job) -> list[Shipment] | None:
        """What map tasks of a job have shipped ahead; None where they are still to be run."""
        return None

    def _begin_last_round(self, job: Job) -> None:
        """The instances of a job are about to be run."""


class StayingExchange(SharedExchange[StayingTasks]):
    """The same on tasks that stay: jobs run side by side, and the next batch is mapped ahead."""

    def __init__(self, tasks: StayingTasks) -> None:
        super().__init__(tasks)
        self.ahead = MapsAhead(self._begin_map)
        self._last = ""
        """The job that is the last of its batch."""
        self._last_round = Event()
        """Set when that one runs its instances, or no batch runs."""
        self._last_round.set()
        self._running = self._failed = False

    def maps_ahead(self, drafts: Sequence[Draft]) -> bool:
        """As `JobRunner.maps_ahead` says: where a job has a round of map tasks."""
        return any(not self._is_small(d.job) for d in drafts)

    def map_ahead(self, jobs: Sequence[Job]) -> None:
        """As `JobRunner.map_ahead` says; waits for the last round of instances of this batch.

        Before that one, idle workers are about to get instances, which find there what they kept.
        """
        self._last_round.wait()
        if self._running:
            self._tasks.until_at_work()
        if not self._failed:
            self.ahead.begin([job for job in jobs if not self._is_small(job)])

    def clear(self, job: Job) -> None:
        self.ahead.clear(job)

    def let_go(self) -> None:
        self.ahead.drop()

    def run_batch(self, drafts: Sequence[Draft]) -> tuple[list[Job], Outcomes]:
        self._last, self._running = drafts[-1].job.subquery.key, True
        self._failed = False
        self._last_round.clear()
        try:
            return super().run_batch(drafts)
        except BaseException:
            self._failed = True
            raise
        finally:
            self._running = False
            self._last_round.set()
            self.ahead.drop(drafts[0].job.batch)

    def _is_one(self, drafts: Sequence[Draft], rows: int, pace: WholeBatchPace) -> bool:
        return all(self._tasks.groups(d.job.mapping.running) == 1 for d in drafts)

    def _run_jobs(self, drafts: Sequence[Draft]) -> tuple[list[Job], Outcomes]:
        return side_by_side(drafts, self.run)

    def _begin_map(self, job: Job) -> Sequence[Future[Shipment]]:
        """Have the map tasks of a job run on workers that are idle."""
        begin(job)
        left = self._packing.leave(job, "job", job)
        return self._tasks.begin(job, len(job.splits), map_task, left)

    def _mapped(self, job: Job) -> list[Shipment] | None:
        return self.ahead.take(job)

    def _begin_last_round(self, job: Job) -> None:
        if job.subquery.key == self._last:
            self._last_round.set()


class MessageExchange(_TaskExchange[StayingTasks]):
    """Runs each job on tasks that stay and share no files with the driver.

    Map tasks keep their parcels, and instances fetch them from there, from host to host
    (`execute/resident/depot.py`). Of a small batch every task reads all by itself, as sources and
    checkpoint are where all can reach them. Instances answer with their rows, or leave many in the
    checkpoint; `left` is told which objects of a remote one hold some.
    """

    def __init__(self, tasks: StayingTasks, left: Callable[[Sequence[Outcome]], None]) -> None:
        super().__init__(tasks)
        self._left = left
        self._shipped: set[str] = set()
        """Jobs whose parcels workers hold; grows with those that are not done."""

    def run(self, job: Job) -> list[Outcome]:
        """The outcomes; LostParcelsError where tasks do not get each other's parcels."""
        job = job.with_operator(job.operator.across_hosts())
        spans, groups = Spans(SystemClock()), self._tasks.groups(job.mapping.running)
        shipments: list[Shipment] = []
        left = self._packing.leave(job, "job", job)
        spans.mark("spark prepare")
        if job.rows * groups <= SMALL_ROWS:
            work = self._tasks.leave(job, "groups", whole_work(left, groups))
            answers = by_instance(self._tasks.each(job, groups, whole_task, work))
            spans.mark("spark instance job")
        else:
            shipments, answers = self._exchanged(job, left, spans)
        self._left(answers)
        first, *others = self._settled(job, left, answers)
        spans.mark("spark finish")
        spent = added([first.spans_ms, *(s.spans_ms for s in shipments), spans.spans_ms])
        return [first.with_spans(spent), *others]

    def release(self, jobs: Sequence[Job]) -> None:
        """Have workers let go of all parcels: also those of tries that failed, under other names.

        Batches are not mapped ahead here, so none that is still to come has any.
        """
        if self._shipped:
            self._tasks.drop(sorted(self._shipped))
            self._shipped.clear()

    def _exchanged(
        self, job: Job, left: TaskWork, spans: Spans
    ) -> tuple[list[Shipment], list[Outcome]]:
        """Map tasks, then instances; all of them again where a worker died that held parcels."""
        self._shipped.add(job.name)

        def attempt() -> tuple[list[Shipment], list[Outcome]]:
            shipments = self._tasks.each(job, len(job.splits), map_task, left)
            spans.mark("spark map job")
            work = self._tasks.leave(job, "shipments", instance_work(left, shipments))
            answers = self._tasks.each(job, job.mapping.running, instance_task, work)
            spans.mark("spark instance job")
            return shipments, answers

        return retried(job, attempt, lambda e: str(e) if isinstance(e, LostParcelsError) else None)

    def _settled(self, job: Job, left: TaskWork, outcomes: list[Outcome]) -> list[Outcome]:
        """The outcomes of instances; where their rows are many, tasks have written them."""
        if job.store.open().files.local or not is_large(job, outcomes):
            return self._tasks.settled(job, left, outcomes)

        def run(write: PartTask, count: int) -> list[Outcome]:
            work = self._packing.leave(job, "parts", write)
            return self._tasks.each(job, count, part_task, work)

        return written_apart(job, outcomes, run)
