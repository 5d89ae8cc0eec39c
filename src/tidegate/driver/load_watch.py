"""What each batch of a run shows of its load, between the loop and those who watch or decide."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tidegate.clock import Clock
from tidegate.driver.brought import SourceWatch
from tidegate.driver.commit import BatchWork
from tidegate.driver.observe import MeasuredBatch
from tidegate.driver.subqueries import Subqueries
from tidegate.gate.backlog import Backlog
from tidegate.model.observation import Observation, observed_of

_BUSY_S = 0.25
"""How often it is worked out, at most, how busy instances are, for those who watch."""


class LoadWatch:
    """Owned by a loop, which tells it of every batch that was committed."""

    def __init__(self, subqueries: Subqueries, clock: Clock) -> None:
        self._subqueries = subqueries
        self._clock = clock
        self._ended_at = math.inf
        """When the newest batch of this run ended."""
        self._waited = False
        self._measured: list[MeasuredBatch] = []
        """What was measured in it."""
        self._sources = SourceWatch()
        self._busy: tuple[float, ...] = ()
        self._busy_at = -math.inf

    @property
    def measured(self) -> Sequence[MeasuredBatch]:
        """What was measured in the newest batch, by subquery."""
        return self._measured

    @property
    def observed(self) -> tuple[Observation, ...]:
        """What the newest batch showed of the load of each subquery, in the order of the plan."""
        return observed_of(self._measured)

    def waited(self) -> None:
        """Since the newest batch there was nothing to do, or not yet."""
        self._waited = True

    def committed(
        self,
        work: BatchWork,
        seconds: float,
        started: float,
        ended: float,
        backlog: Backlog | None,
    ) -> tuple[float, ...]:
        """Take in what a batch showed of the load; how busy all instances are.

        That is for people, and need not be worked out for every batch.
        """
        before_s = max(started - self._ended_at, 0.0)
        self._measured = self._subqueries.measured(
            work.jobs,
            work.outcomes,
            seconds=seconds,
            period_s=seconds + before_s,
            between_s=0.0 if self._waited else before_s,
            brought=self._sources.committed(work.cut, backlog),
            backlog=backlog,
        )
        self._ended_at, self._waited, now = ended, False, self._clock.now()
        instances = sum(job.mapping.instances for job in work.jobs)
        if len(self._busy) != instances or now - self._busy_at >= _BUSY_S:
            every = [load.utilisation.tolist() for load in self._subqueries.load().values()]
            self._busy, self._busy_at = tuple(share for of in every for share in of), now
        return self._busy
