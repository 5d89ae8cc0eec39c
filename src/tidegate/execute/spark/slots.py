"""Divides Spark's task slots, so that workers that stay leave some for other jobs.

A slot is what Spark calls a core. Workers hold theirs for as long as their query runs. Jobs of
single batches, of compactions and of the user need free ones. A master that we start has three
times as many slots as cores were asked for: a third for jobs, the others for two queries at a time.
In a session that the user brought we leave one slot free.
"""

from __future__ import annotations

from threading import Lock
from weakref import WeakKeyDictionary

from pyspark import SparkContext

from tidegate.execute.spark.session.master import CORES, SHARE

_lock = Lock()
_taken: WeakKeyDictionary[SparkContext, int] = WeakKeyDictionary()
"""The slots that workers hold, by context. Grows with Spark contexts."""


def slots_of(context: SparkContext) -> int:
    """How many tasks Spark can run at once now; not its default parallelism, which users set."""
    assert context._jsc is not None
    scala = context._jsc.sc()
    profile = scala.resourceProfileManager().defaultResourceProfile()
    return int(scala.maxNumConcurrentTasks(profile))


def take(context: SparkContext, slots: int) -> int:
    """Reserve slots for the workers of a query; returns their number, 0 if none can be spared.

    `slots` is the number of all slots. The caller must `give_back` what it got.
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
    """Return the slots that `take` reserved; 0 changes nothing."""
    with _lock:
        _taken[context] = _taken.get(context, 0) - slots
