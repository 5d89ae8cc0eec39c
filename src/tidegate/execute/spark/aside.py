"""Runs single functions as Spark jobs of one task, beside the jobs of batches."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

from pyspark import cloudpickle
from pyspark.errors import PySparkException

from tidegate.execute.spark.failure import LOST, first_line, without_stacks

T = TypeVar("T")

_GONE = (PySparkException, *LOST)


class TaskGroup(Protocol):
    """A group of jobs that a thread can join."""

    def join(self) -> None: ...


class Aside:
    """Runs functions that are not part of a batch, one at a time: batches lose one core at most.

    A thread of its own starts the jobs. The function travels in the data of the job, not in a job
    property: threads may share properties.
    """

    def __init__(self, ask: Callable[[bytes], tuple[bool, Any]], group: TaskGroup) -> None:
        """`ask` must run `call` on its argument in a Spark task, and return the result."""
        self._ask = ask
        self._group = group
        self._pool = ThreadPoolExecutor(1, "tidegate-aside")
        self._closed = False

    def submit(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        """As `JobRunner.submit` says; the function may be of a script or a notebook."""
        work = cloudpickle.dumps((function, arguments))
        try:
            return self._pool.submit(self._run, work)
        except RuntimeError:  # closed, or Python is ending and pools take no more
            late: Future[T] = Future()
            late.set_exception(_ended())
            return late

    def close(self) -> None:
        """Wait for the running task, which needs a core to end; the others fail."""
        self._closed = True
        self._pool.shutdown(wait=True)

    def _run(self, work: bytes) -> Any:
        if self._closed:
            raise _ended()
        try:
            with without_stacks():
                self._group.join()
                returned, answer = self._ask(work)
        except _GONE as error:
            raise BrokenExecutor(first_line(error)) from error
        if not returned:
            raise answer
        return answer


def _ended() -> BrokenExecutor:
    return BrokenExecutor("the run has ended")


def call(work: bytes) -> tuple[bool, Any]:
    """Run the pickled function in a worker; return (True, value) or (False, error), picklable."""
    function, arguments = pickle.loads(work)
    try:
        return True, function(*arguments)
    except Exception as error:
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            return False, RuntimeError(f"{type(error).__name__}: {error}")
        return False, error
