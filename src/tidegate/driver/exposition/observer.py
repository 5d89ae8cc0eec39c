"""Observes a run for its metrics: a few additions after each batch, the rest when somebody asks."""

from __future__ import annotations

from tidegate.clock import utc_now
from tidegate.driver.batch_observer import BatchObserver
from tidegate.driver.loop import Loop
from tidegate.driver.metric.family import MetricFamily, RunView, Samples
from tidegate.driver.metric.metric import CommittedBatch
from tidegate.driver.metric.registry import FAMILIES


class MetricsObserver(BatchObserver):
    """The families of one run. `samples` may be called by any thread, and holds no batch up.

    Grows with what is counted by label: steps, subqueries and instances.
    """

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._folds = {family.name: family.fold() for family in FAMILIES if family.fold}
        self._view = self._seen(loop)

    def committed(self, batch: CommittedBatch) -> None:
        report = batch.reported
        for fold in self._folds.values():
            fold.add(report)
        self._view = self._seen(self._loop, batch)

    def view(self) -> RunView:
        """The run after its newest batch."""
        return self._view

    def samples(self, family: MetricFamily, view: RunView) -> Samples:
        """Those of a family; `view` is what `view` gave."""
        return family.read(view) if family.read else self._folds[family.name].samples()

    @staticmethod
    def _seen(loop: Loop, batch: CommittedBatch | None = None) -> RunView:
        return RunView(
            plan=loop.plan,
            summary=loop.summary,
            manifest=loop.manifest if batch is None else batch.manifest,
            latency=loop.books.latency,
            expected=loop.books.forecast.newest,
            report=None if batch is None else batch.reported,
            reaches=() if batch is None else loop.pipeline.inputs.reaches(),
            committed_at=None if batch is None else utc_now().timestamp(),
        )
