"""Spark over Spark Connect: without a JVM or RDDs here; each batch is a job with a shuffle.

Tasks are functions of `mapInArrow`. They share only the checkpoint, the input and the output with
this process, so the server's executors must be able to reach these.
"""

from __future__ import annotations

import logging
import pickle
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidegate import schedule
from tidegate.errors import OptionError, RunError
from tidegate.execute.exchange import clear
from tidegate.execute.job import Job, Outcome
from tidegate.execute.runner import Draft, JobRunner
from tidegate.execute.spark.aside import Aside, call
from tidegate.execute.spark.failure import spark_gone
from tidegate.execute.spark.feature import (
    CONNECT_CLONES,
    FRESH_SESSIONS,
    check_version,
    has,
    since,
)
from tidegate.execute.spark.preflight import preflight_by
from tidegate.execute.spark.session.access import SparkAccess
from tidegate.execute.spark.session.classic import reset
from tidegate.execute.spark.session.client import end, ended_with_program
from tidegate.execute.spark.session.setting import sql_settings
from tidegate.execute.spark.shuffle import ShuffleExchange
from tidegate.query.types.determinism import unstable

T = TypeVar("T")

_log = logging.getLogger(__name__)

_ASKED_TASKS = 2
"""The number of tasks that check the executors before the first batch."""

_GONE = ("StatusCode.UNAVAILABLE", "SESSION_CLOSED", "SESSION_NOT_FOUND")
"""Marks in the client's errors that show that the server or its session has ended."""


class ConnectAccess(SparkAccess):
    """Spark through a Spark Connect client."""

    calls_back = False
    parallelism = None

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    @property
    def master(self) -> str:
        return f"sc://{self._session.client.host}"

    def own_session(self) -> SparkSession:
        check_version(self._session.version)
        if not has(self._session, CONNECT_CLONES):
            raise OptionError(
                "--master",
                f"Spark Connect is used from Spark {since(CONNECT_CLONES)} on, client and server",
                f"a server of {self._session.version}",
                "Use a newer one, or a master without Spark Connect.",
            )
        own = ended_with_program(self._session.cloneSession())
        if has(self._session, FRESH_SESSIONS):
            fresh = ended_with_program(self._session.newSession())
            reset(own, dict(fresh.conf.getAll))
            end(fresh)
        for name, value in sql_settings().items():
            own.conf.set(name, value)
        return own

    def check_stable(self, typed: DataFrame, expressions: Sequence[str], rows: DataFrame) -> None:
        """Raises for non-deterministic expressions: Spark refuses them as a join condition.

        Functions that read the clock have been refused by name before this is called.
        """
        other = rows.toDF(*(f"c{i}" for i in range(len(rows.columns))))
        for expression in expressions:
            try:
                _ = rows.join(other, F.expr(f"({expression}) IS NULL")).schema
            except PySparkException as error:
                if error.getCondition() == "INVALID_NON_DETERMINISTIC_EXPRESSIONS":
                    raise unstable("query", expression) from None

    def unmet(self, conf: Mapping[str, str]) -> dict[str, str]:
        return dict(conf)

    def take_charge(self) -> None:
        """Does nothing: the client has no threads that need to be silenced."""

    def runner(self, exchange: str, execution: str, title: str) -> JobRunner:
        """Ignores both modes: only one of each is possible here, and others were refused."""
        return ConnectRunner(self.own_session(), self.master)


class ConnectGroup:
    """Tags the operations of this run on the server, so that they can be cancelled alone."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._tag = f"tidegate-{schedule.current().token()}"
        self._thread = threading.local()

    def join(self) -> None:
        """Tag this thread's operations; a tag belongs to a thread."""
        if not getattr(self._thread, "joined", False):
            self._session.addTag(self._tag)
            self._thread.joined = True

    def cancel(self) -> None:
        try:
            self._session.interruptTag(self._tag)
        except PySparkException as error:  # without a server nothing runs
            _log.debug("nothing was broken off: %s", error)


class ConnectRunner(JobRunner):
    """Runs each batch as one job of two stages, in its own session on the server."""

    def __init__(self, session: SparkSession, master: str) -> None:
        self._session = session
        self._master = master
        self._asked = False
        self._shuffle = ShuffleExchange(session, None)
        self._group = ConnectGroup(session)
        self._aside = Aside(self._one_task, self._group)

    def start(self, drafts: Sequence[Draft]) -> bool:
        if not self._asked:
            self._group.join()
            preflight_by(self._look, self._master, drafts)
            _log.info(
                "%s: over Spark Connect tasks cannot stay, so each batch is a job with a shuffle",
                self._master,
            )
            self._asked = True
        return False

    def run(self, job: Job) -> list[Outcome]:
        self._group.join()
        try:
            return self._shuffle.told(job)
        except RunError as error:
            cause = error.__cause__
            if cause is not None and any(word in str(cause) for word in _GONE):
                raise spark_gone(job, cause) from cause
            raise

    def submit(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        return self._aside.submit(function, *arguments)

    def release(self, jobs: Sequence[Job]) -> None:
        if jobs[0].store.open().files.local:
            clear(jobs[0])
        else:
            self._shuffle.release(jobs[0])

    def abort(self) -> bool:
        self._group.cancel()
        return True

    def close(self) -> None:
        """End the background work and the own session; the caller's session stays open."""
        self._aside.close()
        end(self._session)

    def _one_task(self, work: bytes) -> tuple[bool, Any]:
        (answer,) = self._each(1, lambda numbers: [call(work)])
        found: tuple[bool, Any] = answer
        return found

    def _look(self, look: Callable[[Iterable[int]], Iterator[dict[str, Any]]]) -> list[Any]:
        return self._each(_ASKED_TASKS, look)

    def _each(self, tasks: int, ask: Callable[[Iterable[int]], Iterable[Any]]) -> list[Any]:
        """The answers of a function that runs in this many tasks."""

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for answer in ask(batch.column(0).to_pylist()):
                    packed = pa.array([pickle.dumps(answer)], pa.binary())
                    yield pa.RecordBatch.from_arrays([packed], names=["answer"])

        rows = self._session.range(0, tasks, 1, tasks).mapInArrow(run, "answer binary").collect()
        return [pickle.loads(row[0]) for row in rows]
