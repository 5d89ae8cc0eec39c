"""The one door to Spark: a session for a master, the types of its SQL, and an executor."""

from __future__ import annotations

import logging
import os
import re
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
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
from tidegate.execute.executor import Draft, Executor, Outcomes, Tasks, in_turn
from tidegate.execute.java import ensure_java
from tidegate.execute.job import Job, Outcome
from tidegate.execute.spark.apart import ApartExecutor
from tidegate.execute.spark.aside import Aside
from tidegate.execute.spark.executors import executors_of
from tidegate.execute.spark.failure import answering, first_line, spark_gone, without_stacks
from tidegate.execute.spark.group import JobGroup
from tidegate.execute.spark.master import check_answers, is_one_host, with_retries, with_slots
from tidegate.execute.spark.plain import PlainJobs
from tidegate.execute.spark.preflight import preflight
from tidegate.execute.spark.progress import TaskProgress
from tidegate.execute.spark.resident import ResidentTasks
from tidegate.execute.spark.setting import (
    PYTHON,
    start_settings,
    submitted_settings,
)
from tidegate.execute.spark.shared import SharedExecutor
from tidegate.execute.spark.shuffle import ShuffleExecutor
from tidegate.execute.spark.slots import give_back, slots_of, take
from tidegate.execute.spark.sql_session import register_functions, sql_session
from tidegate.execute.spark.stable import require_stable
from tidegate.execute.spark.submitted import (
    active_session,
    is_submitted,
    prepared_conf,
    started_with,
    submitted_conf,
    unmet,
)
from tidegate.execute.spark.thread import take_charge
from tidegate.execute.task_runner import TaskRunner
from tidegate.plan.physical import SPARK

T = TypeVar("T")

_log = logging.getLogger(__name__)

_ENDED_BY = re.compile(r"^(?:Exception in thread \"main\" |Error: )(?P<why>.+)$", re.MULTILINE)
"""How a JVM says what it ends by."""


def connect(
    master: str, conf: Mapping[str, str] | None = None, name: str = "tidegate"
) -> SparkSession:
    """A session for a master URL, with Java found first and workers on this Python.

    One that is active is taken, and a program that spark-submit has started uses its JVM. Of one
    that is started here, what the JVM says goes to a file that the error names when it fails.
    """
    conf = conf or {}
    session = active_session()
    if session is not None:
        _check_active(str(session.sparkContext.master), master, unmet(session, conf))
        return session
    check_answers(master)
    if is_submitted():
        session = _submitted(master, conf, name)
    else:
        session = _started(master, conf, name)
    take_charge(session.sparkContext)
    started_with(session.sparkContext, conf)
    if session.sparkContext.uiWebUrl:
        _log.info("the Spark UI is at %s", session.sparkContext.uiWebUrl)
    return session


def _check_active(there: str, master: str, conf: Mapping[str, str]) -> None:
    """A process has one Spark context: refuse what another one would be needed for."""
    here = is_one_host(there)
    if here != is_one_host(master) or (not here and there != master) or conf:
        raise OptionError(
            "--conf" if conf else "--master",
            "a process can have one Spark only",
            f"{' '.join(conf) or master} while there is a session on {there}",
            "Use that session, or stop it first.",
        )


def _started(master: str, asked: Mapping[str, str], name: str) -> SparkSession:
    ensure_java()
    asked = prepared_conf() | dict(asked)
    settings = {"spark.app.name": name, **start_settings(master, asked)}
    _name_python(settings)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    started, slots = with_slots(master)
    conf = SparkConf().setMaster(started).setAll(list({**slots, **settings}.items()))
    with tempfile.NamedTemporaryFile(prefix="tidegate-jvm-", suffix=".log", delete=False) as log:
        try:
            gateway = launch_gateway(conf, {"stderr": log, "stdout": log})
            SparkContext(conf=conf, gateway=gateway)
            session = SparkSession.builder.getOrCreate()
        except Exception as error:
            cause = _cause(error, Path(log.name))
            raise _no_start(master, asked, cause, f"{log.name} has more.") from error
    clean_at_end(Path(log.name).unlink, missing_ok=True)
    return session


def _name_python(settings: Mapping[str, str]) -> None:
    """Let workers have the Python of the settings, else of the environment, else of the driver.

    PySpark would take whatever `python3` is on their hosts, which may not have Tidegate.
    """
    if PYTHON in settings:
        os.environ["PYSPARK_PYTHON"] = settings[PYTHON]
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def _submitted(master: str, asked: Mapping[str, str], name: str) -> SparkSession:
    """A session as spark-submit was told; a master that the program names goes before."""
    conf = submitted_conf()
    settings = submitted_settings(dict(conf.getAll()), asked)
    _name_python(dict(conf.getAll()) | settings)
    conf.setMaster(with_retries(master)).setAll(list(settings.items()))
    if not conf.contains("spark.app.name"):
        conf.setAppName(name)
    try:
        SparkContext(conf=conf)
        return SparkSession.builder.getOrCreate()
    except Exception as error:
        more = "the log of spark-submit has more."
        raise _no_start(master, asked, first_line(error), more) from error


def _no_start(master: str, asked: Mapping[str, str], cause: str, more: str) -> OptionError:
    if asked:
        names = ", ".join(asked)
        return OptionError(
            "--conf", f"Spark must start with {names}", cause, f"Change the settings; {more}"
        )
    return OptionError(
        "--master",
        "must be a Spark master that answers",
        f"{master} ({cause})",
        f"Use local[2], spark://host:port or none (without Spark); {more}",
    )


def _cause(error: BaseException, log: Path) -> str:
    """Why a JVM did not start; where PySpark knows only that it ended, what its log says."""
    said = _ENDED_BY.search(log.read_text(encoding="utf-8", errors="replace"))
    return said["why"] if said and "JAVA_GATEWAY_EXITED" in str(error) else first_line(error)


def types_by_spark(
    session: SparkSession,
) -> Callable[[Sequence[str], pa.Schema], list[pa.DataType]]:
    """Ask Spark for the types of expressions that only it knows, and whether they are stable."""
    own = sql_session(session)
    register_functions(own)

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


class SparkExecutor(Executor):
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
        self._runner: TaskRunner | None = None
        self._sharing: SharedExecutor | None = None
        self._being_apart: ApartExecutor | None = None
        self._shuffle = ShuffleExecutor(own)
        self._group = JobGroup(self._context)
        self._aside = Aside(self._context, self._group)
        self._progress = TaskProgress(self._context)

    def slots(self) -> int | None:
        return None if self._executors is not None else slots_of(self._context)

    def executors(self) -> Mapping[str, int] | None:
        return None if self._executors is None else self._executors.counts()

    def tasks(self) -> Tasks:
        runner = self._runner  # which the loop may replace
        own = None if runner is None else runner.tasks()
        return own or self._progress.tasks()

    def start(self, drafts: Sequence[Draft]) -> bool:
        with answering(partial(spark_gone, drafts[0].job)):
            if not self._one_host and not self._asked:
                preflight(self._context, self._group, drafts)
                self._asked = True
            self._follow(drafts)
            if all(self._shares(d.job) for d in drafts):
                return self._shared().start(drafts)
            apart = self._apart() if self._execution == "resident" else None
            return apart is not None and apart.start(drafts)

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
            apart = self._apart() if self._execution == "resident" else None
            return (apart or self._shuffle).run(job)

    def _follow(self, drafts: Sequence[Draft]) -> None:
        """Have the executors that a batch needs, where they are to follow its instances."""
        if self._executors is None:
            return
        widest = max(draft.job.mapping.running for draft in drafts)
        others = self._executors.follow(widest, self._let_go)
        staying = self._execution == "resident"
        if staying and others and self._slots < min(widest, slots_of(self._context) // 2):
            self._let_go()
        if staying and self._being_apart is None and (apart := self._apart()) is not None:
            apart.start(drafts)

    def _let_go(self) -> None:
        """End the tasks that stay, if there are any; others are started for the next batch."""
        runner, self._runner, self._being_apart = self._runner, None, None
        if runner is not None:
            try:
                runner.close()
            finally:
                give_back(self._context, self._slots)
                self._slots = 0

    def _apart(self) -> ApartExecutor | None:
        """Tasks that stay where they share no files with the driver.

        None where executors follow the instances, and too few are there now.
        """
        if self._being_apart is None and (runner := self._resident(apart=True)) is not None:
            self._runner = runner
            self._being_apart = ApartExecutor(runner, self._shuffle)
        return self._being_apart

    def _shared(self) -> SharedExecutor:
        """The shared exchange, with tasks that stay where there are slots for them."""
        if self._sharing is None:
            self._runner = self._resident() or PlainJobs(self._context)
            self._sharing = SharedExecutor(self._runner)
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

    def until_at_work(self) -> None:
        if (runner := self._runner) is not None:
            runner.until_at_work()

    def submit(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        return self._aside.submit(function, *arguments)

    def release(self, jobs: Sequence[Job]) -> None:
        if jobs[0].store.open().files.local:
            clear(jobs[0])
        else:
            self._shuffle.release(jobs[0])

    def abort(self) -> bool:
        if (runner := self._runner) is not None:
            runner.abort()
        self._group.cancel()
        return True

    def close(self) -> None:
        """End what runs beside the batches; the Spark context is the caller's."""
        self._let_go()
        if self._executors is not None:
            self._executors.close()
        self._progress.close()
        self._aside.close()
