"""The one door to Spark: a session for a master, the types of its SQL, and an executor."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from tidegate.errors import OptionError, QueryError, likely
from tidegate.execute.ending import clean_at_end
from tidegate.execute.exchange import clear
from tidegate.execute.executor import Draft, Executor, Outcomes, in_turn
from tidegate.execute.java import ensure_java
from tidegate.execute.job import Job, Outcome
from tidegate.execute.spark.aside import Aside
from tidegate.execute.spark.failure import answering, first_line, spark_gone, without_stacks
from tidegate.execute.spark.group import JobGroup
from tidegate.execute.spark.shared import SharedExecutor
from tidegate.execute.spark.shuffle import ShuffleExecutor
from tidegate.execute.spark.stable import require_stable
from tidegate.execute.spark.thread import take_charge
from tidegate.plan.physical import SPARK

T = TypeVar("T")

_TASK_TRIES = 4
_SOCKET_FOLDER_LENGTH = 60
_SETTINGS = [
    ("spark.ui.enabled", "false"),
    ("spark.ui.showConsoleProgress", "false"),
    ("spark.log.level", "ERROR"),
]
_SQL_SETTINGS = [
    ("spark.sql.session.timeZone", "UTC"),
    ("spark.sql.adaptive.enabled", "false"),
    ("spark.sql.ansi.enabled", "true"),
]


def connect(master: str, name: str = "tidegate") -> SparkSession:
    """A session for a master URL, with Java found first and workers on this Python.

    What the JVM says goes to a file that the error names when it does not start.
    """
    if SparkContext._active_spark_context is not None:  # of any thread, unlike getActiveSession
        return SparkSession.builder.getOrCreate()
    ensure_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    settings = [*_SETTINGS, *_folder_settings()]
    conf = SparkConf().setMaster(_with_retries(master)).setAppName(name).setAll(settings)
    with tempfile.NamedTemporaryFile(prefix="tidegate-jvm-", suffix=".log", delete=False) as log:
        try:
            gateway = launch_gateway(conf, {"stderr": log, "stdout": log})
            SparkContext(conf=conf, gateway=gateway)
            session = SparkSession.builder.getOrCreate()
        except Exception as error:
            raise OptionError(
                "--master",
                "must be a Spark master that answers",
                f"{master} ({first_line(error)})",
                f"Use local[2], spark://host:port or none (without Spark); {log.name} has more.",
            ) from error
    clean_at_end(Path(log.name).unlink, missing_ok=True)
    take_charge(session.sparkContext)
    return session


def types_by_spark(
    session: SparkSession,
) -> Callable[[Sequence[str], pa.Schema], list[pa.DataType]]:
    """Ask Spark for the types of expressions that only it knows, and whether they are stable."""
    own = _sql_session(session)

    def types(expressions: Sequence[str], schema: pa.Schema) -> list[pa.DataType]:
        empty = own.createDataFrame([], from_arrow_schema(schema))
        try:
            with without_stacks():
                typed = empty.selectExpr(*[f"{e} AS c{i}" for i, e in enumerate(expressions)])
        except PySparkException as error:
            raise _unknown(own, error) from None
        except Py4JJavaError as error:
            if "StackOverflowError" not in str(error.java_exception):
                raise
            raise _too_complex() from None
        require_stable(typed)
        return [field.type for field in to_arrow_schema(typed.schema, timezone="UTC")]

    return types


def _too_complex() -> QueryError:
    """Spark's parser recurses, and ends at sums of some hundred terms."""
    return QueryError(
        "query",
        "Spark must be able to parse all expressions of a stream where one needs it",
        "an expression that is too long or too deep for it",
        "Write it shorter, or do without the functions that need Spark.",
    )


def _unknown(session: SparkSession, error: PySparkException) -> QueryError:
    if error.getCondition() == "FAILED_TO_PARSE_TOO_COMPLEX":
        return _too_complex()
    if error.getCondition() != "UNRESOLVED_ROUTINE":
        return QueryError("query", "every expression must be one Spark knows", first_line(error))
    name = str((error.getMessageParameters() or {}).get("routineName")).strip("`")
    known = [row.function for row in session.sql("SHOW FUNCTIONS").collect()]
    remedy = likely(name, known, alike=0.75) or "Spark's documentation lists its functions."
    return QueryError("query", "no function of Spark has this name", name, remedy)


def _sql_session(session: SparkSession) -> SparkSession:
    own = session.newSession()
    for name, value in _SQL_SETTINGS:
        own.conf.set(name, value)
    return own


class SparkExecutor(Executor):
    """Runs batches on Spark by the exchange that fits, in a session of its own beside the caller's.

    The caller's SQL settings stay as they are, and do not change what queries mean here. On one
    host tasks share files; across hosts, or where Spark SQL has a part, they shuffle.
    """

    def __init__(self, session: SparkSession, exchange: str = "auto") -> None:
        take_charge(session.sparkContext)
        own = _sql_session(session)
        self._exchange = exchange
        self._one_host = bool(re.match(r"local(\[|$)", session.sparkContext.master))
        self._shared = SharedExecutor(own)
        self._shuffle = ShuffleExecutor(own)
        self._group = JobGroup(own.sparkContext)
        self._aside = Aside(own.sparkContext, self._group)

    def run_batch(self, drafts: Sequence[Draft]) -> tuple[list[Job], Outcomes]:
        if not all(self._shares(d.job) for d in drafts):
            return in_turn(drafts, self.run)
        with answering(partial(spark_gone, drafts[0].job)):
            self._group.join()
            return self._shared.run_batch(drafts)

    def run(self, job: Job) -> list[Outcome]:
        shared = self._shares(job)
        with answering(partial(spark_gone, job)):
            self._group.join()
            return (self._shared if shared else self._shuffle).run(job)

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
        return possible and self._exchange != "shuffle"

    def submit(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        return self._aside.submit(function, *arguments)

    def release(self, jobs: Sequence[Job]) -> None:
        if jobs[0].store.open().files.local:
            clear(jobs[0])

    def abort(self) -> bool:
        self._group.cancel()
        return True

    def close(self) -> None:
        """End what runs beside the batches; the Spark context is the caller's."""
        self._aside.close()


def _folder_settings() -> list[tuple[str, str]]:
    """Keep the warehouse out of the user's folder, and let workers be reached by Unix sockets.

    Over TCP a task waits 40 ms for an answer. The sockets' names must be short, so not below a
    folder for temporary files that has a long one.
    """
    folder = tempfile.mkdtemp(prefix="tidegate-")
    clean_at_end(shutil.rmtree, folder, ignore_errors=True)
    warehouse = ("spark.sql.warehouse.dir", f"{folder}/warehouse")
    if len(folder) > _SOCKET_FOLDER_LENGTH:
        return [warehouse]
    return [
        warehouse,
        ("spark.python.unix.domain.socket.enabled", "true"),
        ("spark.python.unix.domain.socket.dir", folder),
    ]


def _with_retries(master: str) -> str:
    """Let a local master try a task again, as a cluster does, when a worker process dies."""
    match = re.fullmatch(r"local(?:\[([0-9]+|\*)\])?", master)
    return f"local[{match.group(1) or 1},{_TASK_TRIES}]" if match else master
