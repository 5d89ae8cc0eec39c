"""What Spark says when something fails, in one line of ours."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.logger import PySparkLogger

from tidegate.errors import MemoryExceededError, RunError, TaskError
from tidegate.execute.job import Job
from tidegate.execute.spark.loss import AGAIN, host_of, of_environment, of_loss
from tidegate.plan.physical import SPARK

LOST = (Py4JError, ConnectionError, EOFError)
"""What a call of Spark raises when the JVM has ended, or the connection to it."""


_GAVE_UP = re.compile(r".*Job aborted due to stage failure: .*?Lost task .*?executor .*?\): ")
_CONTEXTS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_PYTHON = "Traceback (most recent call last)"
_OF_A_ROW = re.compile(
    r"SQLSTATE: (22|P0)|ArithmeticException|DateTimeException|NumberFormatException"
)
"""What Spark says when an expression has no value on a row; a lost executor is another matter."""
_OF_MEMORY = re.compile(r"^(\w+\.)*_?(Array|Arrow)?MemoryError\b")
"""How the exception of a Python worker is named that got no memory: Python's, NumPy's, Arrow's."""


def tasks_failed(job: Job, error: BaseException) -> RunError:
    """The error for a batch whose tasks Spark gave up on.

    Where Spark itself evaluates expressions, they are what fails on a row, and are named. Which
    value it was, Spark says or does not.
    """
    expressions = _by_spark(job) if is_of_a_row(str(error)) else []
    if expressions:
        one = len(expressions) == 1
        return TaskError(
            f"{'expression' if one else 'one of the expressions'} {', '.join(expressions)}",
            "Spark must find a value for every row",
            first_line(error),
            "Guard it with CASE WHEN, TRY_CAST or one of Spark's try_ functions.",
        )
    if _OF_MEMORY.search(first_line(error)):
        return MemoryExceededError("a task", "must fit into memory", first_line(error))
    text, where = str(error), f"batch {job.batch}"
    got = f"{first_line(error)}{host_of(text)}"
    return of_environment(text) or of_loss(text, where) or _of_rows(where, got)


def task_raised(job: Job, said: str, memory: bool) -> RunError:
    """The same error for a batch of which a task that stays raised something that is not of ours.

    `said` is the last line of its traceback.
    """
    if memory:
        return MemoryExceededError("a task", "must fit into memory", said)
    return of_environment(said) or _of_rows(f"batch {job.batch}", said)


def worker_died(job: Job) -> RunError:
    """The same error for a batch of which a task loses its worker whenever it is tried."""
    error = of_loss("Python worker exited unexpectedly", f"batch {job.batch}")
    assert error is not None
    return error


def _of_rows(where: str, got: str) -> RunError:
    return RunError(
        where,
        "its tasks must not fail",
        got,
        "Nothing of the batch was committed. The same rows will fail again, so fix the cause "
        "first; then run again to continue.",
    )


def is_of_a_row(text: str) -> bool:
    """Whether Spark failed to evaluate an expression itself."""
    return _PYTHON not in text and _OF_A_ROW.search(text) is not None


def is_lost_shuffle(error: BaseException) -> bool:
    """Whether Spark gave a job up because it would have to write what it shuffles once more."""
    return "with indeterminate output was failed and retried" in str(error)


def spark_gone(job: Job, error: BaseException) -> RunError:
    """The error for a batch during which the JVM ended, or the connection to it."""
    return RunError(
        f"batch {job.batch}",
        "Spark must be there until its tasks have finished",
        first_line(error),
        AGAIN,
    )


def first_line(error: BaseException) -> str:
    """What an error of Spark or Py4J is about, without its stack and the story of the tasks."""
    if _PYTHON in str(error):
        return _raised(str(error))
    lines = [line.strip(" :") for line in str(error).splitlines() if line.strip(" :")]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        lines = lines[1:]
    return _GAVE_UP.sub("", lines[0]) if lines else type(error).__name__


def _raised(text: str) -> str:
    """The exception that a traceback of a Python worker ends with; the last of nested ones."""
    after = text.rsplit(_PYTHON, 1)[1].splitlines()[1:]
    return next((line for line in after if line.strip() and not line[0].isspace()), "an exception")


def _by_spark(job: Job) -> list[str]:
    """The expressions that Spark evaluates in SQL for a job."""
    texts = []
    for prefix in job.subquery.prefixes:
        if prefix.engine == SPARK:
            texts += [sql for name, sql in prefix.sql_outputs if sql.strip("`") != name]
            texts += [prefix.sql_where] if prefix.sql_where is not None else []
    return texts


@contextmanager
def answering(gone: Callable[[BaseException], RunError]) -> Iterator[None]:
    """Say in one line that Spark is gone where it is; `gone` makes the error."""
    try:
        with without_stacks():
            yield
    except LOST as error:
        if not isinstance(error, Py4JJavaError):  # which only a JVM that is there can raise
            hide_stacks()
        raise gone(error) from error


@contextmanager
def without_stacks(thread: int | None = None) -> Iterator[None]:
    """Keep stacks from being logged, of all threads or of one: a line of ours says what happened.

    Py4J logs those of a lost connection on the root logger, where a level of its own cannot be set;
    PySpark those of expressions that fail. Threads may be in it at the same time.
    """
    loggers = [logging.getLogger(), *(PySparkLogger.getLogger(name) for name in _CONTEXTS)]
    mine = _Quiet(thread)
    for logger in loggers:
        logger.addFilter(mine)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(mine)


def hide_stacks() -> None:
    """Keep Py4J from logging stacks from now on; for when Spark is gone or the program ends.

    Its threads go on for a while, and meet the same lost connection as the query did.
    """
    logging.getLogger().addFilter(_FOR_GOOD)
    logging.getLogger("py4j").propagate = _shows_all()


class _Quiet(logging.Filter):
    """Lets pass what is not of these; an object for each use, so that each takes away its own."""

    def __init__(self, thread: int | None = None) -> None:
        super().__init__()
        self._thread = thread

    def filter(self, record: logging.LogRecord) -> bool:
        stacks = "py4j" in record.pathname or record.name in _CONTEXTS
        if self._thread is not None and record.thread != self._thread:
            return True
        return not stacks or _shows_all()


_FOR_GOOD = _Quiet()
"""The one that is never taken away; adding it again changes nothing."""


def _shows_all() -> bool:
    return logging.getLogger().isEnabledFor(logging.DEBUG)
