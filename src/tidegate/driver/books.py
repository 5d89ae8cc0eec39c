"""Keeps the books of a run: after each commit its observers measure, warn, report and decide."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import replace
from functools import cache, partial

from tidegate.clock import Clock, utc_now
from tidegate.driver.batch_observer import BatchObserver
from tidegate.driver.inputs import Inputs
from tidegate.driver.journal.journal import Journal
from tidegate.driver.journal.newest_rows import NewestRows
from tidegate.driver.journal.requests import RequestLog
from tidegate.driver.manager import Manager
from tidegate.driver.metric.metric import BETWEEN, BOOKS, START, CommittedBatch
from tidegate.driver.options import RunOptions
from tidegate.driver.pipeline import Pipeline
from tidegate.driver.report.advice import InputAdvice
from tidegate.driver.report.latency import LatencyLog
from tidegate.driver.report.metrics import BatchReport, Summary
from tidegate.driver.report.observe import MeasuredBatch
from tidegate.driver.report.source_watch import SourceWatch
from tidegate.driver.shedding import Shedding
from tidegate.driver.subqueries import Subqueries
from tidegate.elastic.request import Request
from tidegate.elastic.share import ShareRequest
from tidegate.elastic.shed_rule import BacklogSeen
from tidegate.elastic.switchboard import WaitingRequest
from tidegate.execute.runner import JobRunner
from tidegate.memory_limit import default_limit
from tidegate.model.live.forecast import Forecast
from tidegate.model.observation import START_UP, Observation, observed_of
from tidegate.spans import Spans
from tidegate.state.epoch import epoch_text, time_of

_log = logging.getLogger(__name__)

_BUSY_S = 0.25
"""The least time between two computations of how busy instances are, for the live view."""

MANY_ROWS = 1_000
"""The output rows per input row of a subquery from which on it gets a warning."""

LEAST_ROWS = 1_000_000
"""A batch with fewer output rows gets no such warning."""


class LoadWatch(BatchObserver):
    """Measures the load of the newest batch; must come after the observer that ends its time."""

    def __init__(self, subqueries: Subqueries, clock: Clock) -> None:
        self._subqueries = subqueries
        self._clock = clock
        self._ended_at = math.inf
        """The clock's time at the end of the newest batch of this run."""
        self._waited = False
        self._measured: list[MeasuredBatch] = []
        """What was measured in the newest batch."""
        self._sources = SourceWatch()
        self.busy: tuple[float, ...] = ()
        """The utilisation of each instance, subquery by subquery; at most `_BUSY_S` old."""
        self._busy_at = -math.inf

    @property
    def measured(self) -> Sequence[MeasuredBatch]:
        """What was measured in the newest batch, in the order of the subqueries."""
        return self._measured

    @property
    def observed(self) -> tuple[Observation, ...]:
        """The load of each subquery in the newest batch, in the order of the plan."""
        return observed_of(self._measured)

    def waited(self) -> None:
        """Note that the loop waited since the newest batch: it had no work, or not yet."""
        self._waited = True

    def committed(self, batch: CommittedBatch) -> None:
        """Measure a batch. Utilisation is for people, so it is not computed for every batch."""
        work, seconds = batch.work, batch.seconds
        before_s = max(batch.started - self._ended_at, 0.0)
        # Time between batches is the engine's own cost only if input was there all the while.
        between_s = 0.0 if self._waited else before_s
        if between_s:
            batch.spans.spans_ms[BETWEEN] = round(between_s * 1e3, 3)
        self._measured = self._subqueries.measured(
            work.jobs,
            work.outcomes,
            seconds=seconds,
            period_s=seconds + before_s,
            between_s=between_s,
            brought=self._sources.committed(work.cut, batch.backlog),
            backlog=batch.backlog,
        )
        self._ended_at, self._waited, now = batch.ended, False, self._clock.now()
        instances = sum(job.mapping.instances for job in work.jobs)
        if len(self.busy) != instances or now - self._busy_at >= _BUSY_S:
            every = [load.utilisation.tolist() for load in self._subqueries.load().values()]
            self.busy, self._busy_at = tuple(share for of in every for share in of), now
        batch.utilisation = self.busy


class Books:
    """The observers of one run, and what they know of its batches.

    Grows as its parts say; nothing grows with the batches done.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        options: RunOptions,
        clock: Clock,
        ask: Callable[[Request], object],
        shed: Callable[[ShareRequest], object],
        waiting: Callable[[], Mapping[str, WaitingRequest]],
        runner: Callable[[], JobRunner],
    ) -> None:
        plan, subqueries = pipeline.plan, pipeline.subqueries
        slots = cache(lambda: options.slots or runner().slots())
        self._clock = clock
        self.summary = Summary(names=plan.names)
        self.latency = LatencyLog(clock.now())
        self.load = LoadWatch(subqueries, clock)
        late_level = logging.WARNING if options.follow else logging.DEBUG
        self.advice = InputAdvice(plan, pipeline.inputs, clock, late_level)
        self.manager = Manager(
            options.policy,
            ask=ask,
            waiting=waiting,
            slots=slots,
            shared=subqueries.shared,
            shed=shed,
            budget=options.budget,
            cadence=pipeline.cadence.change,
            split=subqueries.standby.allow,
        )
        self.summary.controller = self.manager.explained
        self.summary.budget = self.manager.within
        self.forecast = Forecast(options.trigger_s, plan.hold, slots, lambda: self.manager.decides)
        self.journal = Journal(clock, self.summary, self.forecast)
        self.newest_rows = NewestRows(clock)
        self.requests = RequestLog()
        self.summary.latencies = self.latency.as_dict
        # The order counts: an observer reads what those before it have put into the batch.
        # `_Progress` ends the batch's time, `_Summing` makes the report that later ones pass on.
        self.observers: tuple[BatchObserver, ...] = (
            _Latencies(self.latency),
            _Consumption(pipeline, runner),
            _FanOut(),
            _Progress(pipeline.inputs),
            self.advice,
            self.load,
            _Forecasts(self),
            _Decisions(self, pipeline, options),
            _SharesToShed(subqueries.shedding, self.manager),
            _Summing(self, pipeline),
            self.newest_rows,
            self.journal,
        )

    def observe(self, observer: BatchObserver) -> None:
        """Add an observer after all others, so that it sees the finished report of each batch."""
        self.observers = (*self.observers, observer)

    def started(self) -> None:
        """Tell every observer that the run begins."""
        for observer in self.observers:
            observer.started()

    def ended(self, failure: BaseException | None) -> None:
        """Tell every observer how the run ended."""
        for observer in self.observers:
            observer.ended(failure)

    def ready(self, spans: Spans) -> None:
        """End the span in which the runner started; it does not count as time of the batch."""
        spans.mark(START)
        self.latency.ready(self._clock.now())

    def committed(self, batch: CommittedBatch) -> None:
        """Pass a committed batch to every observer, in order."""
        for observer in self.observers:
            observer.committed(batch)

    def close(self) -> None:
        """Close every observer, even if one of them fails; the summary stays readable."""
        with ExitStack() as closing:  # callbacks run in reverse order
            for observer in reversed(self.observers):
                closing.callback(observer.close)


class _Latencies(BatchObserver):
    """Measures the latency of each batch."""

    def __init__(self, latency: LatencyLog) -> None:
        self._latency = latency

    def committed(self, batch: CommittedBatch) -> None:
        batch.latency = self._latency.committed(batch.work.cut.completed, batch.committed_at)
        batch.recent_latency = self._latency.recent()


class _Consumption(BatchObserver):
    """Drops consumed input, queues deletions and starts compactions that pay."""

    def __init__(self, pipeline: Pipeline, runner: Callable[[], JobRunner]) -> None:
        self._pipeline = pipeline
        self._runner = runner

    def committed(self, batch: CommittedBatch) -> None:
        pipeline, work = self._pipeline, batch.work
        pipeline.inputs.forget()
        pipeline.checkpoint.retirement.retire(batch.previous, batch.manifest, batch.replaced)
        pipeline.subqueries.committed(work.jobs, work.outcomes)
        pipeline.subqueries.compact(batch.manifest, self._runner())


class _FanOut(BatchObserver):
    """Warns once in a run if a subquery emits very many rows per input row."""

    def __init__(self) -> None:
        self._told = False

    def committed(self, batch: CommittedBatch) -> None:
        for job, found in zip(batch.work.jobs, batch.work.outcomes, strict=True):
            rows = sum(o.counts["outputs"] for o in found)
            taken = max(sum(o.counts["taken"] for o in found), 1)
            if not self._told and rows >= max(LEAST_ROWS, MANY_ROWS * taken):
                self._told = True
                _log.warning(
                    "%s: batch %d gave %d rows of %d, %d for each. Expect more as windows fill: "
                    "add a condition, or shorten the windows, unless you need them all. "
                    "--batch-rows keeps batches small; explain tells what to expect.",
                    job.subquery.name,
                    job.batch,
                    rows,
                    taken,
                    rows // taken,
                )


class _Progress(BatchObserver):
    """Notes how far the inputs are read, and ends the time of the batch."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs

    def committed(self, batch: CommittedBatch) -> None:
        batch.extent, batch.holder = self._inputs.standing()
        batch.spans.mark(BOOKS)
        batch.took_s = batch.spans.marked_s
        batch.backlog = self._inputs.backlog()


class _Forecasts(BatchObserver):
    """Compares the model's forecast with what was measured."""

    def __init__(self, books: Books) -> None:
        self._books = books
        books.summary.forecast = books.forecast.outcome

    def committed(self, batch: CommittedBatch) -> None:
        load, latency = self._books.load, self._books.latency
        after_s = batch.ended - batch.committed_at
        self._books.forecast.committed(load.measured, latency.newest_sum, after_s)

    def close(self) -> None:
        self._books.summary.forecast = partial(replace, self._books.forecast.outcome())


class _Decisions(BatchObserver):
    """Asks the policy for the instances of the next batch, and what else it may change."""

    def __init__(self, books: Books, pipeline: Pipeline, options: RunOptions) -> None:
        self._books = books
        self._pipeline = pipeline
        self._memory = options.memory
        self._one_host = options.one_host

    def committed(self, batch: CommittedBatch) -> None:
        manager = self._books.manager
        if not manager.decides or batch.manifest.finished:
            return
        pipeline, of, latency = self._pipeline, self._pipeline.subqueries, batch.latency
        shed = of.shedding.seen(of.windows) if manager.sheds else None
        disturbed = START_UP if START in batch.spans.spans_ms else None
        splits, kept = of.splits(), of.state_bytes(batch.manifest)
        manager.after_batch(
            [
                replace(
                    seen,
                    latency_s=None if latency is None else latency.p99_ms / 1e3,
                    cadence=pipeline.cadence.now,
                    own_cadence=pipeline.cadence.own,
                    split=splits[seen.subquery],
                    state_bytes=kept[seen.subquery],
                    memory_bytes=self._memory_bytes(),
                    shed=shed,
                    disturbed="the batch ran again" if batch.replaced else disturbed,
                )
                for seen in self._books.load.observed
            ]
        )

    def _memory_bytes(self) -> int | None:
        """What the process of an instance may hold; None where another machine says that."""
        if self._memory.limit_bytes is not None or not self._one_host:
            return self._memory.limit_bytes
        return default_limit(self._books.manager.slots or 1)

    def close(self) -> None:
        summary, manager = self._books.summary, self._books.manager
        summary.controller = partial(copy, manager.explained())
        summary.budget = partial(copy, manager.within())


class _SharesToShed(BatchObserver):
    """Adapts the shed share of a query with SHED UP TO to the backlog."""

    def __init__(self, shedding: Shedding, manager: Manager) -> None:
        self._shedding = shedding
        self._manager = manager
        self._ended: float | None = None

    def committed(self, batch: CommittedBatch) -> None:
        before, self._ended = self._ended, batch.ended
        followed = self._shedding.follows_backlog and not self._manager.sheds
        if not followed or batch.backlog is None or batch.manifest.finished:
            return
        seconds = batch.seconds if before is None else batch.ended - max(before, batch.started)
        period_s = seconds if before is None else batch.ended - before
        waiting = batch.backlog.total["rows"]
        seen = BacklogSeen(batch.work.cut.rows, seconds, waiting, period_s)
        self._shedding.after_batch(seen, time_of(utc_now()))


class _Summing(BatchObserver):
    """Makes the report of the batch and adds it to the summary and the log."""

    def __init__(self, books: Books, pipeline: Pipeline) -> None:
        self._books, self._summary = books, books.summary
        self._of = pipeline.subqueries
        self._summary.load, self._summary.windows = self._of.load, self._of.windows
        self._summary.changes = self._of.changes

    def committed(self, batch: CommittedBatch) -> None:
        batch.report = report = BatchReport.of(batch)
        self._summary.add(report)
        self._summary.count(batch.manifest)
        _log.debug(
            "batch %d: %d rows in, %d out, %.1f ms %s, tasks %s",
            report.batch,
            report.rows_in,
            report.rows_out,
            report.seconds * 1e3,
            report.spans_ms,
            report.tasks_ms,
        )
        for epoch in self._summary.epochs:
            if epoch["batch"] == report.batch and "by" in epoch:
                _log.info("%s %s", epoch["subquery"], epoch_text(epoch))

    def close(self) -> None:
        # A summary outlives its run.
        self._summary.load = partial(dict, self._of.load())
        self._summary.windows = partial(dict, self._of.windows())
        self._summary.changes = partial(dict, self._of.changes())
