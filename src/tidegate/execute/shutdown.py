"""Ends a program in order: first its queries, then what they run on (Spark), then Python.

When the interpreter shuts down, it stops daemon threads wherever they are. A thread that is stopped
inside a write to standard output or standard error keeps the lock of that stream, and the
interpreter aborts because it cannot flush it. So no thread that may write is left running then.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from typing import Any
from weakref import WeakKeyDictionary

from tidegate import schedule

_running: WeakKeyDictionary[Future[Any], Callable[[], None]] = WeakKeyDictionary()
"""How to stop each daemon thread, by its future; an entry goes when nobody holds the future."""

_cleanups = ExitStack()
"""What runs after the threads have ended; grows with Spark contexts, not with queries."""


def stop_at_end(running: Future[Any], stop: Callable[[], None]) -> None:
    """At the end of the program, call `stop` if the thread of this future still runs, and wait.

    `stop` must return at once. The program ends when all threads that are no daemons have ended.
    """
    _running[running] = stop


def clean_at_end(action: Callable[..., object], *arguments: Any, **options: Any) -> None:
    """Call `action` at the end of the program, after all queries; the newest action comes first.

    Unlike a handler of `atexit`, it may be added while the program waits for a query's last batch.
    """
    _cleanups.callback(action, *arguments, **options)


def clean_now(seconds: float) -> None:
    """Run the actions of `clean_at_end` now, for at most `seconds`.

    For a process that will be killed and so never reaches its own end.
    """
    with suppress(Exception):  # nobody is left to be told
        schedule.current().start("tidegate-clean", _cleanups.close, daemon=True).exception(seconds)


@atexit.register
def _end() -> None:
    threads = list(_running.items())
    try:
        for _, stop in threads:
            stop()
        for running, _ in threads:
            running.exception()
    finally:
        _cleanups.close()


def _leave_to_parent() -> None:
    """Forget the parent's threads and actions in a forked process: the parent cleans up itself."""
    _running.clear()
    _cleanups.pop_all()


os.register_at_fork(after_in_child=_leave_to_parent)
