"""Tasks that stay: one job of Spark per query, whose tasks serve all its batches by messages.

Starting a job of Python tasks costs 60 to 80 ms, a message a tenth of one. Spark places the tasks,
starts them, and starts them again when they die; they connect back to the driver.
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
"""Spark's property that says how many ports are tried after one that is taken."""

SHARES_DISK = "spark.shuffle.readHostLocalDisk"
"""Spark's property that says whether executors read each other's files where they can."""

PORT = "spark.tidegate.port"
"""The property that says at which port tasks that stay on other hosts come to the driver."""

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
"""How long the job may take to end when its workers were let go, before it is cancelled."""

_LONG_S = 60.0
"""A job that has lasted so long was good for something, though there was no work."""

_LONGEST = 60
"""Characters of a folder for sockets; their names must be short."""

_STORY_S = 1.0
"""How long Spark may take to tell of a worker what we know already: that it died."""


def private_folder() -> str:
    """A folder of this user only, with a short name, wherever temporary files usually are."""
    usual = tempfile.gettempdir()
    return tempfile.mkdtemp(prefix="tg-", dir=usual if len(usual) <= _LONGEST else "/tmp")


class ResidentTasks(CrewTasks):
    """Runs functions on workers that stay, as many as it is given slots of Spark for.

    They come by a socket of this host; where a `depot` says that some may be distant, by TCP.
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
        """What Spark gave a job up for, the newest."""
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
        """Let the workers go, and the job with them."""
        self._closing.set()
        self._description.close()
        all_there = self.crew.present == self.crew.size
        super().close()
        if not all_there:  # the job waits for slots, or to start a task again
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
        """Keep the job going: when Spark gives it up, start another, if workers come at all.

        Spark gives a job up when one of its tasks has died some times, be it over days; on a local
        master of the user's own that is the first time. It is work that loses its workers again and
        again that counts here (`TRIES`), and workers that die before they have done any.
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
        """Start the tasks, and wait until all have ended."""
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
        # Not `collect`: while it lasts, Spark names no job of the program after where it is from.
        context.runJob(context.parallelize(range(size), size).mapPartitionsWithIndex(stay), iter)

    def _kill(self, worker: Hello) -> None:
        """Have Spark start a worker that hangs again."""
        if self._distant:
            with suppress(*LOST), without_stacks():
                jvm = self._context._jsc
                assert jvm is not None
                jvm.sc().killTaskAttempt(worker.attempt, True, "it was not heard of")
            return
        with suppress(ProcessLookupError):  # has ended meanwhile
            os.kill(worker.process, signal.SIGKILL)


def suits_jobs(context: SparkContext) -> bool:
    """Whether a cluster is set to do for jobs what it cannot do for tasks that stay.

    It encrypts what they send each other, or gives executors up that have no job.
    """
    conf = context.getConf()
    return any(str(conf.get(name, "false")).lower() == "true" for name in _FOR_JOBS)


def depot_plan(context: SparkContext, distant: bool) -> DepotPlan:
    """What workers are told of their depots, by the settings of Spark."""
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
    """A socket that workers of other hosts come by, and where they find it."""
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
