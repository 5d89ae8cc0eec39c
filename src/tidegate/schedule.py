"""All threads of the engine are started here, behind one small protocol.

In production these are threads of the operating system. A simulation (`tidegate.testing`) installs
its own schedule, which runs one thread at a time and picks the next one from a seed. Spark's own
threads are not included: a simulation runs without Spark.
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
    """A thread that runs its tasks one after the other, in the order they were submitted."""

    def submit(self, work: Callable[..., T], /, *arguments: Any) -> Future[T]:
        """Queues work behind earlier work; RuntimeError if Python is shutting down."""

    def shutdown(self, wait: bool = True) -> None:
        """Accepts no more work, and waits until everything submitted is done."""


class Schedule(Protocol):
    """Starts threads and lets them wait for each other.

    Wait for a future of a schedule with its `result` or `exception`, or for several with `wait`
    below. `concurrent.futures.wait` would block in a simulation, which cannot see it.
    """

    clock: Clock
    """The clock for code that was not given one."""

    def start(self, name: str, work: Callable[[], T], daemon: bool = False) -> Future[T]:
        """Runs work in a new thread; RuntimeError if Python is shutting down and cannot start one.

        A program waits at its end for threads that are not daemons. Whatever the work raises is
        stored in the future.
        """

    def line(self, name: str) -> Line:
        """A thread for work that must be done one after the other."""

    def hold(self, lock: Lock) -> AbstractContextManager[Any]:
        """A context manager that holds a lock. Use it for locks that are held during file
        operations, where a simulation switches threads.
        """

    def token(self) -> str:
        """A text that no other thread gets, on this host or another."""


class Threads:
    """Threads of the operating system."""

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
"""The last one is in use."""


def current() -> Schedule:
    """The schedule of this process."""
    return _installed[-1]


@contextmanager
def using(schedule: Schedule) -> Iterator[None]:
    """Installs another schedule for the block, for all threads of the process."""
    _installed.append(schedule)
    try:
        yield
    finally:
        _installed.pop()


def wait(futures: Iterable[Future[Any]]) -> None:
    """Blocks until all futures are done, whether they succeeded or failed."""
    for future in futures:
        future.exception()


def beside(name: str, work: Callable[[], T]) -> Future[T] | None:
    """Runs work in a new thread, or not at all; so only for work that can be left out.

    Returns None if no thread can be started. Python starts none once it is shutting down, and a
    query may then be in its last batch. Pools of `concurrent.futures` refuse work even earlier, as
    soon as the main thread has ended.
    """
    try:
        return current().start(name, work)
    except RuntimeError:
        return None
