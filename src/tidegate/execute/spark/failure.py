"""What Spark says when something fails, in one line of ours."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError, Py4JJavaError

from tidegate.errors import RunError
from tidegate.execute.job import Job

LOST = (Py4JError, ConnectionError, EOFError)
"""What a call of Spark raises when the JVM has ended, or the connection to it."""


def tasks_failed(job: Job, error: BaseException) -> RunError:
    """The error for a batch whose tasks Spark gave up on."""
    return RunError(
        f"batch {job.batch}",
        "its tasks must finish",
        first_line(error),
        "Nothing of the batch was committed; run again to continue.",
    )


def spark_gone(job: Job, error: BaseException) -> RunError:
    """The error for a batch during which the JVM ended, or the connection to it."""
    return RunError(
        f"batch {job.batch}",
        "Spark must be there until its tasks have finished",
        first_line(error),
        "Nothing of the batch was committed; run again to continue.",
    )


def first_line(error: BaseException) -> str:
    """What an error of Spark or Py4J is about, without its stack."""
    lines = [line.strip(" :") for line in str(error).splitlines() if line.strip(" :")]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        lines = lines[1:]
    return lines[0] if lines else type(error).__name__


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
def without_stacks() -> Iterator[None]:
    """Keep Py4J from logging stacks of a lost connection: one line of ours says what happened.

    Py4J logs them on the root logger, where a level of its own cannot be set. Threads may be in it
    at the same time.
    """
    root, mine = logging.getLogger(), _Quiet()
    root.addFilter(mine)
    try:
        yield
    finally:
        root.removeFilter(mine)


def hide_stacks() -> None:
    """Keep Py4J from logging stacks from now on; for when Spark is gone or the program ends.

    Its threads go on for a while, and meet the same lost connection as the query did.
    """
    logging.getLogger().addFilter(_FOR_GOOD)
    logging.getLogger("py4j").propagate = _shows_all()


class _Quiet(logging.Filter):
    """Lets pass what is not of Py4J; an object for each use, so that each takes away its own."""

    def filter(self, record: logging.LogRecord) -> bool:
        return "py4j" not in record.pathname or _shows_all()


_FOR_GOOD = _Quiet("py4j")
"""The one that is never taken away; adding it again changes nothing."""


def _shows_all() -> bool:
    return logging.getLogger().isEnabledFor(logging.DEBUG)
