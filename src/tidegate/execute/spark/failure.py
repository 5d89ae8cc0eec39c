"""Turns Spark's errors into errors of ours that fit on one line."""

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
"""The exceptions of a call to Spark when the JVM, or the connection to it, has ended."""


_GAVE_UP = re.compile(r".*Job aborted due to stage failure: .*?Lost task .*?executor .*?\): ")
_CONTEXTS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_PYTHON = "Traceback (most recent call last)"
_OF_A_ROW = re.compile(
    r"SQLSTATE: (22|P0)|ArithmeticException|DateTimeException|NumberFormatException"
)
"""Marks of an expression that failed on a row, in contrast to a lost executor."""
_OF_MEMORY = re.compile(r"^(\w+\.)*_?(Array|Arrow)?MemoryError\b")
"""The exceptions of a Python worker without memory: Python's, NumPy's and Arrow's."""


def tasks_failed(job: Job, error: BaseException) -> RunError:
    """The error for a batch whose tasks failed on Spark.

    If an expression failed that Spark itself evaluates, the error names the candidates; Spark does
    not always name the value.
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
    """The error for a task on a worker that stays, which raised something that is not ours.

    `said` is the last line of its traceback.
    """
    if memory:
        return MemoryExceededError("a task", "must fit into memory", said)
    return of_environment(said) or _of_rows(f"batch {job.batch}", said)


def worker_died(job: Job) -> RunError:
    """The error for a task that lost its worker in every try."""
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
    """Whether Spark failed to evaluate an expression on a row."""
    return _PYTHON not in text and _OF_A_ROW.search(text) is not None


def is_lost_shuffle(error: BaseException) -> bool:
    """Whether Spark failed a job because it would have to repeat a stage it calls indeterminate."""
    return "with indeterminate output was failed and retried" in str(error)


def spark_gone(job: Job, error: BaseException) -> RunError:
    """The error for a batch during which the JVM, or the connection to it, ended."""
    return RunError(
        f"batch {job.batch}",
        "Spark must be there until its tasks have finished",
        first_line(error),
        AGAIN,
    )


def first_line(error: BaseException) -> str:
    """The line of an error of Spark or Py4J that says what happened, without stacks."""
    if _PYTHON in str(error):
        return _raised(str(error))
    lines = [line.strip(" :") for line in str(error).splitlines() if line.strip(" :")]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        lines = lines[1:]
    return _GAVE_UP.sub("", lines[0]) if lines else type(error).__name__


def _raised(text: str) -> str:
    """The exception at the end of a Python worker's traceback; of nested ones, the last."""
    after = text.rsplit(_PYTHON, 1)[1].splitlines()[1:]
    return next((line for line in after if line.strip() and not line[0].isspace()), "an exception")


def _by_spark(job: Job) -> list[str]:
    """The expressions of a job that Spark SQL evaluates."""
    texts = []
    for prefix in job.subquery.prefixes:
        if prefix.engine == SPARK:
            texts += [sql for name, sql in prefix.sql_outputs if sql.strip("`") != name]
            texts += [prefix.sql_where] if prefix.sql_where is not None else []
    return texts


@contextmanager
def answering(gone: Callable[[BaseException], RunError]) -> Iterator[None]:
    """Raise `gone(error)` in one line if Spark is gone; keeps stacks out of the log."""
    try:
        with without_stacks():
            yield
    except LOST as error:
        if not isinstance(error, Py4JJavaError):  # only a living JVM can raise that
            hide_stacks()
        raise gone(error) from error


@contextmanager
def without_stacks(thread: int | None = None) -> Iterator[None]:
    """Keep stacks of all threads, or of one, out of the log: our own error says what happened.

    Py4J logs a lost connection on the root logger, whose level is not ours to change. PySpark logs
    expressions that fail. Several threads may use it at the same time.
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
    """Keep Py4J's stacks out of the log from now on; after Spark is gone or at the end.

    Py4J's threads live on for a while and find the same lost connection.
    """
    logging.getLogger().addFilter(_FOR_GOOD)
    logging.getLogger("py4j").propagate = _shows_all()


class _Quiet(logging.Filter):
    """Blocks records with stacks of Py4J and PySpark; one object per use, so that each use removes
    its own."""

    def __init__(self, thread: int | None = None) -> None:
        super().__init__()
        self._thread = thread

    def filter(self, record: logging.LogRecord) -> bool:
        stacks = "py4j" in record.pathname or record.name in _CONTEXTS
        if self._thread is not None and record.thread != self._thread:
            return True
        return not stacks or _shows_all()


_FOR_GOOD = _Quiet()
"""The filter that is never removed; adding it again changes nothing."""


def _shows_all() -> bool:
    return logging.getLogger().isEnabledFor(logging.DEBUG)
