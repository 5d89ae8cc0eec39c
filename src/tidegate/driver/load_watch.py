"""Measures the load of instances and subqueries in each batch, for policies and people."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tidegate.clock import Clock
from tidegate.driver.batch_observer import BatchObserver, CommittedBatch
from tidegate.driver.observe import Measured, observed_of
from tidegate.driver.source_watch import SourceWatch
from tidegate.driver.subqueries import Subqueries
from tidegate.elastic.observation import Observation

_BUSY_S = 0.25
"""How often it is worked out, at most, how busy instances are, for those who watch."""


class LoadWatch(BatchObserver):
    """The load of the newest batch; stands behind the report, whose seconds it takes."""

    def __init__(self, subqueries: Subqueries, clock: Clock) -> None:
        self._subqueries = subqueries
        self._clock = clock
        self._ended_at = math.inf
        """When the newest batch of this run ended."""
        self._waited = False
        self._measured: list[Measured] = []
        """What was measured in it."""
        self._sources = SourceWatch()
        self.busy: tuple[float, ...] = ()
        """How busy each instance of each subquery is, not older than a moment."""
        self._busy_at = -math.inf

    @property
    def measured(self) -> Sequence[Measured]:
        """What was measured in the newest batch, by subquery."""
        return self._measured

    @property
    def observed(self) -> tuple[Observation, ...]:
        """What the newest batch showed of the load of each subquery, in the order of the plan."""
        return observed_of(self._measured)

    def waited(self) -> None:
        """Since the newest batch there was nothing to do, or not yet."""
        self._waited = True

    def committed(self, batch: CommittedBatch) -> None:
        """Take in what a batch showed of the load.

        How busy all instances are is for people, and not worked out for every batch.
        """
        work, seconds = batch.work, batch.reported.seconds
        before_s = max(batch.started - self._ended_at, 0.0)
        self._measured = self._subqueries.measured(
            work.jobs,
            work.outcomes,
            seconds=seconds,
            period_s=seconds + before_s,
            between_s=0.0 if self._waited else before_s,
            brought=self._sources.committed(work.cut, batch.backlog),
            backlog=batch.backlog,
        )
        self._ended_at, self._waited, now = batch.ended, False, self._clock.now()
        instances = sum(job.mapping.instances for job in work.jobs)
        if len(self.busy) != instances or now - self._busy_at >= _BUSY_S:
            every = [load.utilisation.tolist() for load in self._subqueries.load().values()]
            self.busy, self._busy_at = tuple(share for of in every for share in of), now
