"""Which of Spark's slots for tasks are taken by tasks that stay, so that others still get some.

A slot is what Spark calls a core. Tasks that stay hold theirs while a query runs; jobs of single
batches, of compaction and of the user's own need some that are free. On a master that was started
here there are three times as many slots as cores were asked for: a third for jobs, the others for
two queries at a time. In a session that the user brought one slot is left free.
"""

from __future__ import annotations

from threading import Lock
from weakref import WeakKeyDictionary

from pyspark import SparkContext

from tidegate.execute.spark.master import CORES, SHARE

_lock = Lock()
_taken: WeakKeyDictionary[SparkContext, int] = WeakKeyDictionary()
"""Slots that tasks hold that stay. Grows with Spark contexts."""


def slots_of(context: SparkContext) -> int:
    """How many tasks Spark runs at once there now; not what it plans by, which users may set."""
    assert context._jsc is not None
    scala = context._jsc.sc()
    profile = scala.resourceProfileManager().defaultResourceProfile()
    return int(scala.maxNumConcurrentTasks(profile))


def take(context: SparkContext, slots: int) -> int:
    """Slots for the tasks of another query, to be given back; 0 where there are none to spare.

    `slots` is how many there are in all.
    """
    free = slots - 1
    cores = context.getConf().get(CORES)
    wanted = free if cores is None else min(free, int(cores))
    if cores is not None:
        free = min(free, (SHARE - 1) * wanted)
    with _lock:
        granted = max(0, min(wanted, free - _taken.get(context, 0)))
        _taken[context] = _taken.get(context, 0) + granted
    return granted


def give_back(context: SparkContext, slots: int) -> None:
    """Return what `take` gave; nothing, of a query whose tasks are jobs and that took none."""
    with _lock:
        _taken[context] = _taken.get(context, 0) - slots
