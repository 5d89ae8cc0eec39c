"""Who runs when, behind one small protocol, so that nothing else in the engine starts a thread.

In production these are the threads of the system. A simulation puts a schedule of its own in their
place, which lets one of them run at a time and draws from a seed who is next
(`tidegate.testing`). Spark's own threads are not meant: a simulation runs without Spark.
"""

from __future__ import annotations

import itertools
import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from threading import Lock, Thread
from typing import Any, Protocol, TypeVar

from tidegate.clock import Clock, SystemClock

T = TypeVar("T")


class Line(Protocol):
    """One thread that does what it is given in that order."""

    def submit(self, work: Callable[..., T], /, *arguments: Any) -> Future[T]:
        """Do work after all that was given before; RuntimeError where Python is ending."""

    def shutdown(self, wait: bool = True) -> None:
        """Take no more, and wait until all that was given is done."""


class Schedule(Protocol):
    """Starts threads, and lets them wait for each other.

    Futures of a schedule are waited for by `result` and `exception`, or all of some by `wait`
    below; not by `concurrent.futures.wait`, which a simulation does not see.
    """

    clock: Clock
    """What is asked for the time where none was given."""

    def start(self, name: str, work: Callable[[], T], daemon: bool = False) -> Future[T]:
        """Run work in a new thread; RuntimeError where Python is ending and none can be had.

        A program waits at its end for threads that are not daemons. What the work raises, whatever
        it is, is in the future.
        """

    def line(self, name: str) -> Line:
        """A thread for work that is done one after the other."""

    def hold(self, lock: Lock) -> AbstractContextManager[Any]:
        """A lock, to be entered; for those that are held while files are read or written."""

    def token(self) -> str:
        """A text that no other thread is given, on this host or another."""


class Threads:
    """The threads of the system."""

    clock: Clock = SystemClock()

    def start(self, name: str, work: Callable[[], T], daemon: bool = False) -> Future[T]:
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(work())
            except BaseException as failure:
                future.set_exception(failure)

        Thread(target=run, name=name, daemon=daemon).start()
        return future

    def line(self, name: str) -> Line:
        return ThreadPoolExecutor(1, name)

    def hold(self, lock: Lock) -> AbstractContextManager[Any]:
        return lock

    def token(self) -> str:
        return f"{os.getpid()}-{next(_serial)}-{secrets.token_hex(4)}"


_serial = itertools.count()


_installed: list[Schedule] = [Threads()]
"""The newest is the one of this process."""


def current() -> Schedule:
    """The schedule of this process."""
    return _installed[-1]


@contextmanager
def using(schedule: Schedule) -> Iterator[None]:
    """Have another schedule in this process, for all its threads, until the block ends."""
    _installed.append(schedule)
    try:
        yield
    finally:
        _installed.pop()


def wait(futures: Iterable[Future[Any]]) -> None:
    """Block until all of them are done, whatever came out."""
    for future in futures:
        future.exception()


def beside(name: str, work: Callable[[], T]) -> Future[T] | None:
    """Run work in a new thread; None where none can be started, so only for what can be left out.

    Python starts no threads once it is ending, and a query may then be in its last batch. Pools of
    `concurrent.futures` refuse work even before, as soon as the main thread has ended.
    """
    try:
        return current().start(name, work)
    except RuntimeError:
        return None
