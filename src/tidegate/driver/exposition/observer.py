"""Observes a run for its metrics, from when somebody first asks for them."""

from __future__ import annotations

import threading

from tidegate.clock import utc_now
from tidegate.driver.batch_observer import BatchObserver
from tidegate.driver.loop import Loop
from tidegate.driver.metric.family import MetricFamily, RunView, Samples
from tidegate.driver.metric.metric import CommittedBatch
from tidegate.driver.metric.registry import FAMILIES
from tidegate.driver.report.metrics import BatchReport


class MetricsObserver(BatchObserver):
    """The families of one run. `samples` may be called by any thread, and holds no batch up.

    Before `begin` it costs nothing; from then on a batch pays for a few additions. Grows with what
    is counted by label: steps, subqueries and instances.
    """

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._folds = {family.name: family.fold() for family in FAMILIES if family.fold}
        self._lock = threading.Lock()
        self._folded = -1
        """The newest batch that the folds have taken in."""
        self._view = RunView(
            plan=loop.plan,
            summary=loop.summary,
            manifest=loop.manifest,
            latency=loop.books.latency,
            expected=loop.books.forecast.newest,
        )

    def begin(self) -> None:
        """Observe all batches from now on; those before count as far as the journal holds them."""
        self._catch_up()  # most of them, while no batch waits for it
        with self._lock:
            self._loop.books.observe(self)
            self._catch_up()

    def committed(self, batch: CommittedBatch) -> None:
        with self._lock:
            self._add(batch.reported)
            self._see(batch.reported, utc_now().timestamp())

    def view(self) -> RunView:
        """The run after its newest batch."""
        return self._view

    def samples(self, family: MetricFamily, view: RunView) -> Samples:
        """Those of a family; `view` is what `view` gave."""
        return family.read(view) if family.read else self._folds[family.name].samples()

    def _catch_up(self) -> None:
        missed = self._loop.books.journal.recent.after(self._folded)
        for record in missed:
            self._add(record.report)
        for newest in missed[-1:]:
            self._see(newest.report, newest.at + newest.report.seconds)

    def _add(self, report: BatchReport) -> None:
        if report.batch > self._folded:
            self._folded = report.batch
            for fold in self._folds.values():
                fold.add(report)

    def _see(self, report: BatchReport, committed_at: float) -> None:
        self._view = RunView(
            plan=self._view.plan,
            summary=self._view.summary,
            manifest=self._loop.manifest,
            latency=self._view.latency,
            expected=self._view.expected,
            report=report,
            reaches=self._loop.pipeline.inputs.reaches(),
            committed_at=committed_at,
        )
