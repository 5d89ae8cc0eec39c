"""Lets Ctrl-C interrupt the wait for a query without cancelling Spark's jobs."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress

_LOOK_S = 0.5


def wait_for(task: Future[None], timeout_s: float | None = None) -> None:
    """Block until a future is done or the time is over; Ctrl-C interrupts only this wait.

    It waits in pieces: a Ctrl-C just before the thread sleeps is noticed only when it wakes.
    """
    with _jobs_kept():
        while timeout_s is None or timeout_s > _LOOK_S:
            with suppress(TimeoutError):
                task.exception(_LOOK_S)
                return
            timeout_s = None if timeout_s is None else timeout_s - _LOOK_S
        with suppress(TimeoutError):
            task.exception(timeout_s)


@contextmanager
def _jobs_kept() -> Iterator[None]:
    """Replace Spark's handler of Ctrl-C during a wait.

    A Spark context that was made on the main thread installs a handler that cancels the jobs of all
    threads, and so would make the query fail.
    """
    before = signal.getsignal(signal.SIGINT)
    spark = (getattr(before, "__module__", None) or "").startswith("pyspark")
    if not spark or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
