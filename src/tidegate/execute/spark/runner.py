"""Runs the jobs of a query on Spark, each by the exchange that fits."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

from pyspark.sql import SparkSession

from tidegate.errors import OptionError
from tidegate.execute.exchange import clear
from tidegate.execute.job import Job, Outcome
from tidegate.execute.runner import Draft, JobRunner, Outcomes, TaskCounts, in_turn
from tidegate.execute.spark.aside import Aside
from tidegate.execute.spark.executors import executors_of
from tidegate.execute.spark.failure import answering, spark_gone
from tidegate.execute.spark.group import JobGroup, TaskProgress
from tidegate.execute.spark.master import is_one_host
from tidegate.execute.spark.plain import PlainJobs
from tidegate.execute.spark.preflight import preflight
from tidegate.execute.spark.resident import ResidentTasks
from tidegate.execute.spark.shuffle import ShuffleExchange
from tidegate.execute.spark.slots import give_back, slots_of, take
from tidegate.execute.spark.sql_session import sql_session
from tidegate.execute.spark.task_exchange import MessageExchange, SharedExchange
from tidegate.execute.spark.thread import take_charge
from tidegate.execute.task_runner import TaskRunner
from tidegate.plan.physical import SPARK

T = TypeVar("T")

_log = logging.getLogger(__name__)


class SparkRunner(JobRunner):
    """Runs batches on Spark by the exchange that fits, in a session of its own beside the caller's.

    The caller's SQL settings stay as they are, and do not change what queries mean here. On one
    host tasks share files; across hosts, or where Spark SQL has a part, they shuffle.
    """

    def __init__(
        self,
        session: SparkSession,
        exchange: str = "auto",
        execution: str = "auto",
        title: str = "a query",
    ) -> None:
        take_charge(session.sparkContext)
        own = sql_session(session)
        self._context = own.sparkContext
        self._executors = executors_of(self._context, 2 if execution == "resident" else 1)
        self._asked = False
        """Whether executors of a cluster have been looked at."""
        self._exchange = exchange
        self._one_host = is_one_host(session.sparkContext.master)
        self._execution = execution
        self._title = title
        self._slots = 0
        self._tasks: TaskRunner | None = None
        self._sharing: SharedExchange | None = None
        self._messages: MessageExchange | None = None
        self._shuffle = ShuffleExchange(own)
        self._group = JobGroup(self._context)
        self._aside = Aside(self._context, self._group)
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
            self._follow(drafts)
            if all(self._shares(d.job) for d in drafts):
                return self._shared().start(drafts)
            messages = self._by_messages()
            return messages is not None and messages.start(drafts)

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
            messages = self._by_messages()
            fits = messages is not None and messages.fits(job)
            return messages.run(job) if messages is not None and fits else self._shuffle.run(job)

    def _follow(self, drafts: Sequence[Draft]) -> None:
        """Have the executors that a batch needs, where they are to follow its instances."""
        if self._executors is None:
            return
        widest = max(draft.job.mapping.running for draft in drafts)
        others = self._executors.follow(widest, self._let_go)
        staying = self._execution == "resident"
        if staying and others and self._slots < min(widest, slots_of(self._context) // 2):
            self._let_go()
        if self._messages is None and (messages := self._by_messages()) is not None:
            messages.start(drafts)

    def _let_go(self) -> None:
        """End the tasks that stay, if there are any; others are started for the next batch."""
        tasks, self._tasks, self._messages = self._tasks, None, None
        if tasks is not None:
            try:
                tasks.close()
            finally:
                give_back(self._context, self._slots)
                self._slots = 0

    def _by_messages(self) -> MessageExchange | None:
        """The exchange by messages, with tasks that stay and share no files with the driver.

        None where they are not asked for, or executors follow the instances and too few are there.
        """
        if self._execution != "resident":
            return None
        if self._messages is None and (tasks := self._resident(apart=True)) is not None:
            self._tasks = tasks
            self._messages = MessageExchange(tasks, self._shuffle.settled)
        return self._messages

    def _shared(self) -> SharedExchange:
        """The shared exchange, with tasks that stay where there are slots for them."""
        if self._sharing is None:
            self._tasks = self._resident() or PlainJobs(self._context)
            self._sharing = SharedExchange(self._tasks)
        return self._sharing

    def _resident(self, apart: bool = False) -> TaskRunner | None:
        if self._execution == "jobs":
            return None
        there = slots_of(self._context)
        self._slots = take(self._context, there, shuffles=apart)
        if self._slots:
            distant = not self._one_host
            return ResidentTasks(self._context, self._slots, self._title, distant)
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
        """Whether the tasks of a job exchange files of one host."""
        arrow = all(p.engine != SPARK for p in job.subquery.prefixes)
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

    def release(self, jobs: Sequence[Job]) -> None:
        if jobs[0].store.open().files.local:
            clear(jobs[0]) if self._sharing is None else self._sharing.ahead.clear(jobs[0])
        else:
            self._shuffle.release(jobs[0])

    def abort(self) -> bool:
        if (tasks := self._tasks) is not None:
            tasks.abort()
        self._group.cancel()
        return True

    def close(self) -> None:
        """End what runs beside the batches; the Spark context is the caller's."""
        self._let_go()
        if self._executors is not None:
            self._executors.close()
        self._progress.close()
        self._aside.close()
