"""The end of a program: queries stop first, then what they stand on is taken down, then Python is.

Python ends daemon threads wherever they are once it takes itself down. One that is ended inside a
write to standard output or standard error keeps the lock of that stream, and the interpreter then
aborts because it cannot flush it. So nothing that may still write is left to run until then.
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
"""How daemon threads are told to stop; grows with those whose futures somebody still holds."""

_cleanups = ExitStack()
"""What is done after them; grows with Spark contexts, not with queries."""


def stop_at_end(running: Future[Any], stop: Callable[[], None]) -> None:
    """Have the thread of this future told to stop, and waited for, if the program ends before it.

    `stop` must return at once. The program has ended when its main thread and all others that are
    not daemons have.
    """
    _running[running] = stop


def clean_at_end(action: Callable[..., object], *arguments: Any, **options: Any) -> None:
    """Have something done when no query runs any more; the newest is done first.

    Unlike handlers of `atexit`, these may be added while the last batch of a query is waited for.
    """
    _cleanups.callback(action, *arguments, **options)


def clean_now(seconds: float) -> None:
    """Do that at once, for so long as it may take, because this process will not end by itself.

    What takes longer is left undone.
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
    """In a process that was forked: what the parent made, the parent takes down."""
    _running.clear()
    _cleanups.pop_all()


os.register_at_fork(after_in_child=_leave_to_parent)
