"""Lets Ctrl-C interrupt the wait for a query, and leave the jobs of Spark alone."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def jobs_kept() -> Iterator[None]:
    """Let Ctrl-C interrupt the wait and nothing else.

    A Spark context that was made on the main thread has a handler that cancels the jobs of all
    threads: the query would fail with it.
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
