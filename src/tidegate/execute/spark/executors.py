"""Asks the cluster manager for as many executors as the instances of queries need.

Only where it is asked for (`spark.tidegate.executors=follow`): with dynamic allocation Spark does
it by itself, and most users have chosen how many executors they pay for.
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
from tidegate.execute.spark.master import is_one_host
from tidegate.execute.spark.setting import EXECUTORS, FOLLOW, check_executors
from tidegate.execute.spark.slots import slots_of

_log = logging.getLogger(__name__)

_LOOK_S = 1.0
"""The least time between two looks at which executors are there; a look is a call of the JVM."""

_PATIENCE_S = 10.0
"""After so long without the executors that are wanted, the log says so."""


@dataclass
class _Asked:
    """What was asked for a context; grows with its queries that run.

    `needs` are the slots that each of them needs, `slots` those that were asked for. `leaving` are
    executors that were released, and that Spark still lists.
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
    """As many executors as the widest subquery has tasks for; used by the thread of the loop.

    A query needs a slot for each instance, and so many `more`: one where tasks stay, for other
    jobs. Queries of one Spark context have their executors together.
    """

    def __init__(self, context: SparkContext, more: int = 0) -> None:
        self._context, self._more = context, more
        with _lock:
            self._asked = _asked.setdefault(context, _Asked())
        self._clock = schedule.current().clock
        self._there = 0
        self._looked_at = float("-inf")
        self._let_go = 0
        """For how many that were wanted tasks that stay were ended."""

    def counts(self) -> Mapping[str, int]:
        """How many are wanted, and how many were there at the last look."""
        return {"wanted": self._asked.wanted, "there": self._there}

    def follow(self, instances: int, let_go: Callable[[], None]) -> bool:
        """Before a batch: ask for what its instances need; whether others are there than before.

        `let_go` ends tasks that stay; it is called before executors are released. Those are idle:
        one that is at something else, as a compaction, is kept, and looked at again before a later
        batch. More executors come when they come: the batch begins with those that are there.
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
        """The query has ended; the executors stay until another one of the context wants fewer."""
        with _lock:
            self._asked.needs.pop(id(self), None)

    def _ask(self, wanted: int, now: float) -> None:
        """Tell the cluster manager how many executors to have, now and when some are lost."""
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
        """Let executors go that run no task; Spark sees to that, and gives them none from then on.

        `killExecutors` of the context would also kill those that are at work.
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
        """Those that are there, the oldest first: they have most of what instances have kept."""
        found = self._java.getExecutorIds()
        listed = [str(found.apply(i)) for i in range(found.size())]
        self._asked.leaving &= frozenset(listed)
        return sorted((i for i in listed if i not in self._asked.leaving), key=_number)

    @property
    def _java(self) -> Any:
        assert self._context._jsc is not None
        return self._context._jsc.sc()


def _number(executor: str) -> tuple[int, str]:
    """Executors are numbered as they come; 10 is after 9."""
    return len(executor), executor


def executors_of(context: SparkContext, more: int = 0) -> Executors | None:
    """Executors that follow, where the settings of a context ask for it; else None."""
    conf = dict(context.getConf().getAll())
    check_executors(conf)
    if conf.get(EXECUTORS) != FOLLOW:
        return None
    if is_one_host(str(context.master)):
        _log.warning("%s=%s has no effect on %s", EXECUTORS, FOLLOW, context.master)
        return None
    return Executors(context, more)
