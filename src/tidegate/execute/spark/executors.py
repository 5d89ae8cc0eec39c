"""Asks the cluster manager for as many executors as the instances of queries need.

Only with `spark.tidegate.executors=follow`: most users have chosen how many executors they pay for,
and with dynamic allocation Spark asks by itself.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from pyspark import SparkContext

from tidegate import schedule
from tidegate.execute.spark.session.master import is_one_host
from tidegate.execute.spark.session.setting import EXECUTORS, FOLLOW, check_executors
from tidegate.execute.spark.slots import slots_of

_log = logging.getLogger(__name__)

_LOOK_S = 1.0
"""The least time between two checks which executors are there; each is a call to the JVM."""

_PATIENCE_S = 10.0
"""A warning is logged if wanted executors have not come after so long."""


@dataclass
class _Asked:
    """What was asked of the cluster manager for one context; grows with its running queries.

    `needs` are the slots that each query needs, `slots` the sum that was asked for. `leaving` are
    executors that were released but that Spark still lists.
    """

    needs: dict[int, int] = field(default_factory=dict)
    slots: int = 0
    wanted: int = 0
    at: float = 0.0
    told: bool = False
    leaving: frozenset[str] = frozenset()


_lock = Lock()
_asked: WeakKeyDictionary[SparkContext, _Asked] = WeakKeyDictionary()
"""Grows with Spark contexts."""


class Executors:
    """Keeps as many executors as the widest subquery has instances; used by the loop's thread.

    A query needs a slot for each instance, and `more` besides: one for other jobs if workers stay.
    All queries of one Spark context share its executors.
    """

    def __init__(self, context: SparkContext, more: int = 0) -> None:
        self._context, self._more = context, more
        with _lock:
            self._asked = _asked.setdefault(context, _Asked())
        self._clock = schedule.current().clock
        self._there = 0
        self._looked_at = float("-inf")
        self._let_go = 0
        """The wanted number of executors for which workers were last ended."""

    def counts(self) -> Mapping[str, int]:
        """How many executors are wanted, and how many were there at the last check."""
        return {"wanted": self._asked.wanted, "there": self._there}

    def follow(self, instances: int, let_go: Callable[[], None]) -> bool:
        """Ask for the executors that the next batch needs; return whether their number changed.

        Does not wait: the batch begins with the executors that are there. If there are too many, it
        calls `let_go`, which ends the workers, and then releases idle executors. One that still
        runs something, for example a compaction, stays, and a later batch tries again.
        """
        asked, now = self._asked, self._clock.now()
        with _lock:
            asked.needs[id(self)] = instances + self._more
            slots = sum(asked.needs.values())
        if slots == asked.slots and now - self._looked_at < _LOOK_S:
            return False
        ids = self._ids()
        before, self._there, self._looked_at = self._there, len(ids), now
        if ids and slots != asked.slots:
            asked.slots = slots
            self._ask(-(-slots // max(slots_of(self._context) // len(ids), 1)), now)
        if asked.wanted and len(ids) > asked.wanted:
            if self._let_go != asked.wanted or len(ids) > before:
                self._let_go = asked.wanted
                let_go()
            self._release(ids[asked.wanted :])
        elif len(ids) < asked.wanted and now - asked.at > _PATIENCE_S and not asked.told:
            asked.told = True
            _log.warning(
                "%s: %d executors are wanted, and %d have come in %.0f s. The query goes on with "
                "these; see that the cluster has cores and memory free.",
                self._context.master,
                asked.wanted,
                len(ids),
                now - asked.at,
            )
        return self._there != before

    def close(self) -> None:
        """Forget the needs of this query. Executors stay until another query wants fewer."""
        with _lock:
            self._asked.needs.pop(id(self), None)

    def _ask(self, wanted: int, now: float) -> None:
        """Tell the cluster manager how many executors to keep; it replaces lost ones."""
        asked = self._asked
        if wanted == asked.wanted:
            return
        _log.info("executors: %d wanted, %d there", wanted, self._there)
        asked.wanted, asked.at, asked.told = wanted, now, False
        jvm = self._context._jvm
        assert jvm is not None
        anywhere = jvm.PythonUtils.toScalaMap(jvm.java.util.HashMap())
        if not self._java.requestTotalExecutors(wanted, 0, anywhere):
            asked.told = True
            _log.warning(
                "%s: has refused to have %d executors; the query goes on with the %d there are",
                self._context.master,
                wanted,
                self._there,
            )

    def _release(self, ids: list[str]) -> None:
        """Release those of these executors that run no task.

        The backend's `killExecutors` checks that, and gives them no new tasks. That of the context
        would also kill busy ones.
        """
        jvm = self._context._jvm
        assert jvm is not None
        idle = self._java.schedulerBackend().killExecutors(
            jvm.PythonUtils.toSeq(ids), False, False, False
        )
        gone = [str(idle.apply(i)) for i in range(idle.size())]
        self._there -= len(gone)
        self._asked.leaving |= frozenset(gone)
        if gone:
            _log.info("executors: %d released, idle", len(gone))

    def _ids(self) -> list[str]:
        """The executors that are there, oldest first: they hold most state in memory."""
        found = self._java.getExecutorIds()
        listed = [str(found.apply(i)) for i in range(found.size())]
        self._asked.leaving &= frozenset(listed)
        return sorted((i for i in listed if i not in self._asked.leaving), key=_number)

    @property
    def _java(self) -> Any:
        assert self._context._jsc is not None
        return self._context._jsc.sc()


def _number(executor: str) -> tuple[int, str]:
    """Sorts executor ids by number: 10 after 9."""
    return len(executor), executor


def executors_of(context: SparkContext, more: int = 0) -> Executors | None:
    """The executors that follow the instances, if the context's settings ask for it; else None."""
    conf = dict(context.getConf().getAll())
    check_executors(conf)
    if conf.get(EXECUTORS) != FOLLOW:
        return None
    if is_one_host(str(context.master)):
        _log.warning("%s=%s has no effect on %s", EXECUTORS, FOLLOW, context.master)
        return None
    return Executors(context, more)
