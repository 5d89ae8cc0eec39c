"""Work in a thread beside the loop, which goes on without it where no thread can be had."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


def beside(name: str, work: Callable[[], T]) -> Future[T] | None:
    """Run work in a new thread; None where none can be started, so only for what can be left out.

    Python starts no threads once it is ending, and a query may then be in its last batch. Pools of
    `concurrent.futures` refuse work even before, as soon as the main thread has ended.
    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as failure:
            future.set_exception(failure)

    try:
        Thread(target=run, name=name).start()
    except RuntimeError:
        return None
    return future
