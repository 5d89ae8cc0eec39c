"""Runs tasks on workers that stay: one Spark job per query, whose tasks serve all its batches.

To start a job of Python tasks costs 60 to 80 ms; to send a message to a worker costs far less.
Spark places the workers and starts them again when they die; they connect back to the driver.
"""

from __future__ import annotations

import itertools
import logging
import os
import secrets
import shutil
import signal
import socket
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from threading import Event, get_ident
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext, TaskContext
from pyspark.errors import PySparkException

from tidegate import schedule
from tidegate.errors import OptionError, RunError
from tidegate.execute.job import Job
from tidegate.execute.resident.channel import Address, door_at, door_on
from tidegate.execute.resident.crew import TRIES, Crew
from tidegate.execute.resident.depot import PORT as PARCEL_PORT
from tidegate.execute.resident.depot import DepotPlan
from tidegate.execute.resident.message import Hello, RaisedError
from tidegate.execute.resident.tasks import AbortedError, CrewTasks
from tidegate.execute.resident.unit import DiedError
from tidegate.execute.resident.worker import serve
from tidegate.execute.spark.description import JobDescription
from tidegate.execute.spark.failure import (
    LOST,
    first_line,
    task_raised,
    tasks_failed,
    without_stacks,
    worker_died,
)
from tidegate.execute.spark.loss import AGAIN
from tidegate.execute.task_runner import Task
from tidegate.execute.work import TaskWork

_log = logging.getLogger(__name__)

RETRIES = "spark.port.maxRetries"
"""Spark's property for the number of ports to try after one that is taken."""

SHARES_DISK = "spark.shuffle.readHostLocalDisk"
"""Spark's property that lets executors of one host read each other's files."""

PORT = "spark.tidegate.port"
"""Our property for the driver's port to which workers on other hosts connect."""

_FOR_JOBS = (
    "spark.dynamicAllocation.enabled",
    "spark.io.encryption.enabled",
    "spark.network.crypto.enabled",
    "spark.authenticate.enableSaslEncryption",
    "spark.ssl.enabled",
    "spark.ssl.rpc.enabled",
)

_MOST_PORT = 65_535
_serial = itertools.count()

_END_S = 10.0
"""How long the job may take to end after its workers were dismissed; then it is cancelled."""

_LONG_S = 60.0
"""A job that lasted so long counts as a success, even if there was no work for it."""

_LONGEST = 60
"""The most characters of a folder for Unix sockets, whose paths the system limits."""

_STORY_S = 1.0
"""How long to wait for Spark's own account of a worker's death, which has the reason."""


def private_folder() -> str:
    """A new temporary folder for this user only, with a short path."""
    usual = tempfile.gettempdir()
    return tempfile.mkdtemp(prefix="tg-", dir=usual if len(usual) <= _LONGEST else "/tmp")


class ResidentTasks(CrewTasks):
    """Runs functions on `size` workers that stay; each holds one of Spark's slots.

    Workers connect through a Unix socket, or by TCP if the `depot` says that they may be distant.
    """

    def __init__(
        self, context: SparkContext, size: int, title: str, depot: DepotPlan | None = None
    ) -> None:
        self._context, self._title, self._depot = context, title, depot
        self._distant = distant = depot is not None and depot.distant
        self._group = f"tidegate-resident-{os.getpid()}-{next(_serial)}"
        self._description = JobDescription(context, self._group, title)
        self._folder = private_folder()
        self._address: Address
        if distant:
            door, self._address = _public_door(context)
        else:
            self._address = f"{self._folder}/crew"
            door = door_at(self._address)
        self._secret = secrets.token_bytes(32)
        super().__init__(Crew(door, self._secret, size, self._kill))
        self._closing = Event()
        self._given_up = Event()
        self._failure: BaseException | None = None
        """The newest error for which Spark failed the job of the workers."""
        self._serving: Future[None] = schedule.current().start(
            "tidegate-resident", self._serve, daemon=True
        )

    def each(self, job: Job, count: int, task: Task, work: TaskWork) -> list[Any]:
        self._given_up.clear()
        self._description.note(job.batch, job.rows)
        try:
            return super().each(job, count, task, work)
        except RaisedError as error:
            raise task_raised(job, error.said, error.memory) from error
        except DiedError as error:
            if self._given_up.wait(_STORY_S) and self._failure is not None:
                raise tasks_failed(job, self._failure) from error
            raise worker_died(job) from error
        except AbortedError as error:
            where = f"batch {job.batch}"
            raise RunError(where, "must not be cancelled", "an abort", AGAIN) from error
        except (PySparkException, Py4JJavaError) as error:
            raise tasks_failed(job, error) from error

    def abort(self) -> None:
        self._closing.set()
        super().abort()
        self._cancel()

    def close(self) -> None:
        """Dismiss the workers; their job then ends, or is cancelled."""
        self._closing.set()
        self._description.close()
        all_there = self.crew.present == self.crew.size
        super().close()
        if not all_there:  # the job still waits for slots, or to restart a task, and would not end
            self._cancel()
        try:
            self._serving.result(_END_S)
        except TimeoutError:
            self._cancel()
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _cancel(self) -> None:
        with suppress(*LOST, AttributeError), without_stacks():  # without Spark nothing runs
            self._context.cancelJobGroup(self._group)

    def _serve(self) -> None:
        """Run the job of the workers; start another one when Spark fails it.

        Spark fails a job once one of its tasks has died a few times, even over days; on a user's
        local master, the first time. We give up only if no worker connected at all, or if more than
        `TRIES` jobs in a row did no work. The crew itself counts how often a unit of work loses its
        worker.
        """
        in_vain, clock = 0, schedule.current().clock
        while not self._closing.is_set():
            came, answered, began = self.crew.came, self.crew.answered, clock.now()
            failure: BaseException = RunError("tasks", "must stay until they are let go", "none")
            try:
                with without_stacks(get_ident()):
                    self._run_job()
            except Exception as error:
                failure = error
            if self._closing.is_set():
                return
            self._failure = failure
            self._given_up.set()
            of_use = self.crew.answered > answered or clock.now() - began > _LONG_S
            in_vain = 0 if of_use else in_vain + 1
            if self.crew.came == came or in_vain > TRIES:
                self.crew.fail(failure)
                return
            _log.info("tasks that stay are started anew: %s", first_line(failure))

    def _run_job(self) -> None:
        """Start the workers as tasks of one Spark job, and wait until all have ended."""
        address, secret, depot = self._address, self._secret, self._depot

        def stay(partition: int, _: Iterable[int]) -> Iterator[Any]:
            context = TaskContext.get()
            assert context is not None
            serve(address, secret, partition, context.taskAttemptId(), depot=depot)
            return iter(())

        context, size = self._context, self.crew.size
        assert context._jsc is not None
        context.setJobGroup(self._group, self._description.at_start(), interruptOnCancel=True)
        context._jsc.setCallSite(f"tidegate {self._title}")
        # Not `collect`: as long as one runs, PySpark sets no call site for any other job of the
        # program, and Spark's page would show them all under this job's name.
        context.runJob(context.parallelize(range(size), size).mapPartitionsWithIndex(stay), iter)

    def _kill(self, worker: Hello) -> None:
        """Kill a hung worker; Spark then starts its task again."""
        if self._distant:
            with suppress(*LOST), without_stacks():
                jvm = self._context._jsc
                assert jvm is not None
                jvm.sc().killTaskAttempt(worker.attempt, True, "it was not heard of")
            return
        with suppress(ProcessLookupError):  # it has ended meanwhile
            os.kill(worker.process, signal.SIGKILL)


def suits_jobs(context: SparkContext) -> bool:
    """Whether the cluster's settings call for a job per batch instead of workers that stay.

    They do if Spark encrypts what tasks send each other (our own connections would not), or if it
    removes executors that have no job.
    """
    conf = context.getConf()
    return any(str(conf.get(name, "false")).lower() == "true" for name in _FOR_JOBS)


def depot_plan(context: SparkContext, distant: bool) -> DepotPlan:
    """The settings of the workers' depots, from Spark's configuration."""
    conf = context.getConf()
    numbers = []
    for name, default in ((PARCEL_PORT, "0"), (RETRIES, "16")):
        text = str(conf.get(name, default))
        if not text.isdecimal() or int(text) > _MOST_PORT:
            raise OptionError("--conf", f"{name} must be a whole number up to {_MOST_PORT}", text)
        numbers.append(int(text))
    shares_disk = str(conf.get(SHARES_DISK, "true")).lower() == "true"
    port, more = numbers
    return DepotPlan(distant, port, more, shares_disk)


def _public_door(context: SparkContext) -> tuple[socket.socket, Address]:
    """A listening socket for workers of other hosts, and its address."""
    conf = context.getConf()
    host = str(conf.get("spark.driver.host"))
    port = str(conf.get(PORT, "0"))
    try:
        door = door_on(str(conf.get("spark.driver.bindAddress", host)), int(port))
    except (OSError, ValueError, OverflowError) as error:
        raise OptionError(
            "--conf",
            f"{PORT} must be a port of {host} that is free",
            f"{port} ({getattr(error, 'strerror', None) or error})",
            "Leave it out to have any that is free.",
        ) from error
    return door, (host, door.getsockname()[1])
