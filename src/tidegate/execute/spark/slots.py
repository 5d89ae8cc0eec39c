"""Which of Spark's slots for tasks are taken by tasks that stay, so that others still get some.

A slot is what Spark calls a core. Tasks that stay hold theirs while a query runs; jobs of single
batches, of compaction and of the user's own need some that are free. On a master that was started
here there are three times as many slots as cores were asked for: a third for jobs, the others for
two queries at a time. In a session that the user brought, one slot is left free.
"""

from __future__ import annotations

from threading import Lock
from weakref import WeakKeyDictionary

from pyspark import SparkContext

from tidegate.execute.spark.master import CORES, SHARE

_lock = Lock()
_taken: WeakKeyDictionary[SparkContext, int] = WeakKeyDictionary()
"""Slots that tasks hold that stay. Grows with Spark contexts."""


def take(context: SparkContext) -> int:
    """Slots for the tasks of another query, to be given back; 0 where there are none to spare."""
    cores = context.getConf().get(CORES)
    if cores is not None:
        wanted, free = int(cores), (SHARE - 1) * int(cores)
    else:
        wanted = free = context.defaultParallelism - 1
    with _lock:
        granted = max(0, min(wanted, free - _taken.get(context, 0)))
        _taken[context] = _taken.get(context, 0) + granted
    return granted


def give_back(context: SparkContext, slots: int) -> None:
    """Return what `take` gave; nothing, of a query whose tasks are jobs and that took none."""
    with _lock:
        _taken[context] = _taken.get(context, 0) - slots
