"""Tasks that stay: one job of Spark per query, whose tasks serve all its batches by messages.

Starting a job of Python tasks costs 60 to 80 ms, a message a tenth of one. Spark places the tasks,
starts them, and starts them again when they die; they connect back to the driver.
"""

from __future__ import annotations

import hashlib
import itertools
import logging
import os
import secrets
import shutil
import signal
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from multiprocessing.connection import Listener
from threading import Event
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext, TaskContext
from pyspark.errors import PySparkException

from tidegate import schedule
from tidegate.errors import RunError, TidegateError
from tidegate.execute.job import Job
from tidegate.execute.resident.crew import Crew
from tidegate.execute.resident.message import Hello
from tidegate.execute.resident.worker import serve
from tidegate.execute.spark.failure import LOST, first_line, task_raised, without_stacks
from tidegate.execute.task_runner import Task, TaskRunner
from tidegate.execute.work import Sent, Work

_log = logging.getLogger(__name__)

_serial = itertools.count()


class ResidentTasks(TaskRunner):
    """Runs functions on workers that stay, as many as it is given slots of Spark for."""

    stays = True

    def __init__(self, context: SparkContext, size: int, name: str) -> None:
        self._context, self._size, self._name = context, size, name
        self._group = f"tidegate-resident-{os.getpid()}-{next(_serial)}"
        self._folder = tempfile.mkdtemp(prefix="tg-")  # of this user only, with a short name
        self._secret = secrets.token_bytes(32)
        self._listener = Listener(f"{self._folder}/crew", "AF_UNIX", authkey=self._secret)
        self._crew = Crew(self._listener, size, self._kill)
        self._job = ""
        self._data: dict[str, bytes] = {}
        self._closing = Event()
        self._serving: Future[None] = schedule.current().start(
            "tidegate-resident", self._serve, daemon=True
        )

    def groups(self, instances: int) -> int:
        return min(instances, self._size)

    def leave(self, job: Job, name: str, data: bytes) -> Work:
        """Keep the bytes for the workers that will do the job, until there is another."""
        if self._job != job.name:
            self._job, self._data = job.name, {}
        key = hashlib.sha256(data).hexdigest()
        self._data[key] = data
        return Sent(key)

    def each(self, job: Job, count: int, task: Task, work: Work) -> list[Any]:
        try:
            return self._crew.run([(task, work, number, self._data) for number in range(count)])
        except (TidegateError, MemoryError, *LOST):
            raise
        except Exception as error:
            raise task_raised(job, error) from error

    def abort(self) -> None:
        self._closing.set()
        self._crew.fail(RunError("batch", "must not be aborted", "an abort"))
        self._context.cancelJobGroup(self._group)

    def close(self) -> None:
        """Let the workers go, and the job with them."""
        self._closing.set()
        self._crew.close()
        try:
            self._serving.result(timeout=10)
        except TimeoutError:
            self._context.cancelJobGroup(self._group)
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _serve(self) -> None:
        """Keep the job going: when Spark gives it up, start another, if it was of any use."""
        address, secret = self._listener.address, self._secret

        def stay(partition: int, _: Iterable[int]) -> Iterator[Any]:
            context = TaskContext.get()
            assert context is not None
            serve(address, secret, partition, context.taskAttemptId())
            return iter(())

        self._context.setJobGroup(self._group, self._name, interruptOnCancel=True)
        while not self._closing.is_set():
            before = self._crew.answered
            try:
                with without_stacks():
                    numbers = self._context.parallelize(range(self._size), self._size)
                    numbers.mapPartitionsWithIndex(stay).collect()
            except (PySparkException, Py4JError, ConnectionError, EOFError) as error:
                if self._closing.is_set():
                    return
                if self._crew.answered == before:
                    self._crew.fail(error)
                    return
                _log.warning("workers died too often (%s) and are started anew", first_line(error))

    def _kill(self, worker: Hello) -> None:
        """Have Spark start a worker that hangs again."""
        os.kill(worker.process, signal.SIGKILL)
