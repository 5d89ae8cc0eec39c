"""Reports the start, progress and end of a run as OpenLineage events."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from datetime import datetime

from tidegate.clock import Clock, utc_now
from tidegate.driver.batch_observer import BatchObserver
from tidegate.driver.lineage.delivery import EventDelivery
from tidegate.driver.lineage.event import (
    ABORT,
    COMPLETE,
    FAIL,
    RUNNING,
    START,
    LineageRun,
    Written,
)
from tidegate.driver.metric.metric import CommittedBatch
from tidegate.driver.report.metrics import Summary


class LineageObserver(BatchObserver):
    """Counts what each batch wrote, and posts events. Grows with the number of outputs.

    After a batch it posts a RUNNING event if the last event is at least `every_s` seconds old. A
    batch costs a few additions.
    """

    def __init__(
        self,
        run: LineageRun,
        delivery: EventDelivery,
        summary: Summary,
        clock: Clock,
        every_s: float,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._run = run
        self._delivery = delivery
        self._summary = summary
        self._clock = clock
        self._every_s = every_s
        self._now = now
        self._written: defaultdict[str, Written] = defaultdict(Written)
        self._told_at = 0.0
        self._open = False
        """True from the START event until the event of the end."""
        summary.lineage = delivery.counts

    def started(self) -> None:
        self._open = True
        self._post(START)

    def committed(self, batch: CommittedBatch) -> None:
        staged = batch.work.staged
        for target, output in zip(batch.plan.targets, staged.outputs, strict=True):
            name = target.name or ""
            self._written[name].add(output.count, staged.receipts.get(name, ()))
        if self._open and self._clock.now() - self._told_at >= self._every_s:
            self._post(RUNNING, dispensable=True)

    def ended(self, failure: BaseException | None) -> None:
        if not self._open:
            return
        self._open = False
        done = self._summary.finished or self._summary.up_to_date
        self._post(FAIL if failure else COMPLETE if done else ABORT, failure)
        self._delivery.close()

    def _post(
        self, state: str, failure: BaseException | None = None, dispensable: bool = False
    ) -> None:
        self._told_at = self._clock.now()
        event = self._run.event(state, self._now(), self._written, failure)
        self._delivery.post(event, dispensable)
