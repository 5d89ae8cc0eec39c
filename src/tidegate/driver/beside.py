"""Work in a thread beside the loop, which goes on without it where no thread can be had."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from tidegate import schedule

T = TypeVar("T")


def beside(name: str, work: Callable[[], T]) -> Future[T] | None:
    """Run work in a new thread; None where none can be started, so only for what can be left out.

    Python starts no threads once it is ending, and a query may then be in its last batch. Pools of
    `concurrent.futures` refuse work even before, as soon as the main thread has ended.
    """
    try:
        return schedule.current().start(name, work)
    except RuntimeError:
        return None
