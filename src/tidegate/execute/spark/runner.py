"""Runs the jobs of a query on Spark, and chooses the exchange for each."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

from pyspark.sql import SparkSession

from tidegate import schedule
from tidegate.errors import LostParcelsError, OptionError
from tidegate.execute.exchange import clear
from tidegate.execute.job import Job, Outcome
from tidegate.execute.resident.depot import DepotPlan
from tidegate.execute.runner import Draft, JobRunner, Outcomes, TaskCounts, in_turn
from tidegate.execute.spark.aside import Aside, call
from tidegate.execute.spark.executors import executors_of
from tidegate.execute.spark.failure import answering, spark_gone
from tidegate.execute.spark.feature import check_version
from tidegate.execute.spark.group import JobGroup, TaskProgress
from tidegate.execute.spark.plain import PlainJobs
from tidegate.execute.spark.preflight import preflight
from tidegate.execute.spark.resident import ResidentTasks, depot_plan, suits_jobs
from tidegate.execute.spark.session.classic import ClassicAccess
from tidegate.execute.spark.session.master import is_one_host
from tidegate.execute.spark.shuffle import ShuffleExchange, exchanged
from tidegate.execute.spark.slots import give_back, slots_of, take
from tidegate.execute.spark.task_exchange import MessageExchange, SharedExchange, StayingExchange
from tidegate.execute.spark.thread import take_charge
from tidegate.execute.task_runner import StayingTasks, TaskRunner
from tidegate.plan.physical import SPARK

T = TypeVar("T")

_log = logging.getLogger(__name__)

_LOOK_S = 5.0
"""The least time between two checks for new executors; each check is a call to the JVM."""


class SparkRunner(JobRunner):
    """Runs batches on Spark, in a session of its own beside the caller's.

    The caller's SQL settings stay as they are and do not change what queries mean. On one host,
    tasks share files. Across hosts, workers that stay fetch rows from each other. If Spark SQL
    evaluates an expression, or no worker can stay, Spark shuffles the rows.
    """

    def __init__(
        self,
        session: SparkSession,
        exchange: str = "auto",
        execution: str = "auto",
        title: str = "a query",
    ) -> None:
        check_version(session.version)
        take_charge(session.sparkContext)
        own = ClassicAccess(session).own_session()
        self._context = own.sparkContext
        self._executors = executors_of(self._context, int(execution == "resident"))
        self._asked = False
        """Whether `preflight` has checked the executors of a cluster."""
        self._exchange = exchange
        self._one_host = is_one_host(session.sparkContext.master)
        self._execution = execution
        self._title = title
        self._slots = self._there = 0
        """The slots that our workers hold, and all slots that there were when they took them."""
        self._looked_at = float("-inf")
        self._by_jobs = False
        """Whether rows are shuffled from now on, because workers could not stay."""
        self._tasks: TaskRunner | None = None
        self._sharing: SharedExchange[Any] | None = None
        self._messages: MessageExchange | None = None
        self._shuffle = ShuffleExchange(own, PlainJobs(self._context))
        self._group = JobGroup(self._context)
        self._aside = Aside(self._one_task, self._group)
        self._progress = TaskProgress(self._context)

    def slots(self) -> int | None:
        return None if self._executors is not None else slots_of(self._context)

    def executors(self) -> Mapping[str, int] | None:
        return None if self._executors is None else self._executors.counts()

    def tasks(self) -> TaskCounts:
        tasks = self._tasks  # which the loop may replace
        own = None if tasks is None else tasks.tasks()
        return own or self._progress.tasks()

    def start(self, drafts: Sequence[Draft]) -> bool:
        with answering(partial(spark_gone, drafts[0].job)):
            if not self._one_host and not self._asked:
                preflight(self._context, self._group, drafts)
                self._asked = True
            if all(self._shares(d.job) for d in drafts):
                return self._shared().start(drafts)
            self._follow(drafts)
            return self._messages is not None

    def run_batch(self, drafts: Sequence[Draft]) -> tuple[list[Job], Outcomes]:
        if not all(self._shares(d.job) for d in drafts):
            with answering(partial(spark_gone, drafts[0].job)):
                self._follow(drafts)
            return in_turn(drafts, self.run)
        with answering(partial(spark_gone, drafts[0].job)):
            self._group.join()
            return self._shared().run_batch(drafts)

    def run(self, job: Job) -> list[Outcome]:
        shared = self._shares(job)
        with answering(partial(spark_gone, job)):
            self._group.join()
            if shared:
                return self._shared().run(job)
            if self._messages is not None:
                try:
                    return exchanged("resident", self._messages.run(job))
                except LostParcelsError as error:
                    _log.warning("from now on rows are shuffled by jobs: %s", error)
                    self._by_jobs = True
                    self._let_go()
            return self._shuffle.told(job)

    def _follow(self, drafts: Sequence[Draft]) -> None:
        """Get the executors and the workers that a batch needs.

        Workers are started for the first batch, and anew when there are executors for more of them.
        """
        widest = max(draft.job.mapping.running for draft in drafts)
        if self._executors is not None:
            self._executors.follow(widest, self._let_go)
        if self._messages is not None and self._has_room(widest):
            self._let_go()
        if self._messages is not None or not self._stays(drafts):
            return
        tasks = self._resident(depot_plan(self._context, distant=not self._one_host))
        self._by_jobs = tasks is None and self._executors is None
        if tasks is not None:
            self._tasks, self._messages = tasks, MessageExchange(tasks, self._shuffle.note_left)
            self._messages.start(drafts)

    def _has_room(self, instances: int) -> bool:
        """Whether new executors came since the workers started, and instances could use them."""
        now = schedule.current().clock.now()
        if self._slots >= instances or now - self._looked_at < _LOOK_S:
            return False
        self._looked_at = now
        return slots_of(self._context) > self._there

    def _stays(self, drafts: Sequence[Draft]) -> bool:
        """Whether batches should run on workers that stay and share no files with the driver.

        With `auto` they do not if executors come and go, or if Spark would encrypt the rows: ours
        are sent past Spark.
        """
        if self._exchange != "auto" or self._by_jobs or not all(_is_arrow(d.job) for d in drafts):
            return False
        if self._execution != "auto":
            return self._execution == "resident"
        return self._executors is None and (self._one_host or not suits_jobs(self._context))

    def _let_go(self) -> None:
        """End the workers, if there are any; the next batch starts others."""
        tasks, self._tasks, self._messages = self._tasks, None, None
        if tasks is not None:
            try:
                if self._sharing is not None:  # map tasks of the next batch may finish first
                    self._sharing.let_go()
                tasks.close()
            finally:
                give_back(self._context, self._slots)
                self._slots = 0

    def _shared(self) -> SharedExchange[Any]:
        """The shared exchange; with workers that stay if there are slots for them."""
        if self._sharing is None:
            staying = self._resident()
            if staying is None:
                self._tasks = jobs = PlainJobs(self._context)
                self._sharing = SharedExchange(jobs)
            else:
                self._tasks, self._sharing = staying, StayingExchange(staying)
        return self._sharing

    def _resident(self, depot: DepotPlan | None = None) -> StayingTasks | None:
        if self._execution == "jobs":
            return None
        self._there = there = slots_of(self._context)
        self._slots = take(self._context, there)
        if self._slots:
            return ResidentTasks(self._context, self._slots, self._title, depot)
        got = f"{there} in all on {self._context.master}, and none to spare"
        if self._execution == "resident" and self._executors is None:
            raise OptionError(
                "--execution",
                "resident needs slots of Spark for tasks that stay, and one more for other jobs",
                got,
                "Use a master with more cores, end another query, or use --execution auto.",
            )
        _log.info("each batch is a job of its own: slots of Spark are %s for tasks that stay", got)
        return None

    def _shares(self, job: Job) -> bool:
        """Whether the tasks of a job exchange rows through files of one host.

        Refuses `--exchange shared` and `--execution resident` if the job cannot use them.
        """
        arrow = _is_arrow(job)
        possible = self._one_host and arrow and job.store.open().files.local
        if self._exchange == "shared" and not possible:
            raise OptionError(
                "--exchange",
                "shared needs tasks and checkpoint on one host, and a prefix in Arrow kernels",
                "a query or a place without them",
                "Use --exchange auto; explain says where the prefix runs.",
            )
        if self._execution == "resident" and not arrow:
            raise OptionError(
                "--execution",
                "resident needs a prefix in Arrow kernels",
                "a query whose expressions Spark SQL evaluates",
                "Use --execution auto; explain says where the prefix runs.",
            )
        return possible and self._exchange != "shuffle"

    def maps_ahead(self, drafts: Sequence[Draft]) -> bool:
        return self._sharing is not None and self._sharing.maps_ahead(drafts)

    def map_ahead(self, jobs: Sequence[Job]) -> None:
        if self._sharing is not None:
            self._sharing.map_ahead(jobs)

    def until_at_work(self) -> None:
        if (tasks := self._tasks) is not None:
            tasks.until_at_work()

    def submit(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        return self._aside.submit(function, *arguments)

    def _one_task(self, work: bytes) -> tuple[bool, Any]:
        ((returned, answer),) = self._context.parallelize([work], 1).map(call).collect()
        return returned, answer

    def release(self, jobs: Sequence[Job]) -> None:
        if self._messages is not None:
            self._messages.release(jobs)
        if jobs[0].store.open().files.local:
            clear(jobs[0]) if self._sharing is None else self._sharing.clear(jobs[0])
        else:
            self._shuffle.release(jobs[0])

    def abort(self) -> bool:
        if (tasks := self._tasks) is not None:
            tasks.abort()
        self._group.cancel()
        return True

    def close(self) -> None:
        """Release workers, executors and threads; the Spark context stays, it is the caller's."""
        self._let_go()
        if self._executors is not None:
            self._executors.close()
        self._progress.close()
        self._aside.close()


def _is_arrow(job: Job) -> bool:
    """Whether Arrow kernels evaluate all prefixes of a job."""
    return all(p.engine != SPARK for p in job.subquery.prefixes)
