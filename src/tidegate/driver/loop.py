"""Runs the batches of a query one after another, starting where its checkpoint ends."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress

from tidegate import schedule
from tidegate.clock import Clock
from tidegate.driver.books import Books
from tidegate.driver.connection import Connection
from tidegate.driver.controls import Controls
from tidegate.driver.options import RunOptions
from tidegate.driver.pipeline import Pipeline, RowsSeen, StepSeen
from tidegate.driver.report.metrics import BatchReport, Summary
from tidegate.errors import StateError
from tidegate.execute.runner import Draft, JobRunner, TaskCounts
from tidegate.plan.physical import Plan
from tidegate.sink.protocol import Sink
from tidegate.spans import Spans
from tidegate.state.manifest import Manifest
from tidegate.state.store import Store

_PAUSED_LOOK_S = 0.5
"""A run that is paused, or waits for its budget, checks this often whether it may go on."""


class Loop:
    """Decides when the next batch starts, and takes it through its steps.

    `step` runs one batch. `run` runs batches until the input ends or `stop` is called. One thread
    owns the loop. Other threads may call `stop` and `pause` (both take effect after the current
    batch), `resume`, `abort`, `tasks` and `controls`. A loop that was given `until` must not `run`:
    its caller uses `repeat` to run committed batches again, up to that manifest, and `step` to run
    a part of them.
    """

    def __init__(
        self,
        plan: Plan,
        connections: Sequence[Connection],
        store: Store,
        sinks: Mapping[str | None, Sink],
        runner: JobRunner,
        options: RunOptions,
        clock: Clock | None = None,
        observer: StepSeen | None = None,
        on_batch: Callable[[BatchReport], None] | None = None,
        on_rows: RowsSeen | None = None,
        until: Manifest | None = None,
    ) -> None:
        self.store = store
        self.runner = runner
        self.options = options
        self._clock = clock or schedule.current().clock
        self._observe = observer or (lambda step, batch: None)
        self._on_batch = on_batch or (lambda report: None)
        self._on_rows = on_rows or (lambda output, rows: None)
        self._started = False
        self._started_at = -math.inf
        """The clock's time when the newest batch started."""
        self._stop = threading.Event()
        self._news = threading.Event()
        """Wakes the loop early: input has arrived, or the run was resumed or stopped."""
        self._closed = False
        self._aborted = False
        self._paused = False
        self._opening: list[Callable[[], None]] = []
        self._closing: list[Callable[[], None]] = []
        try:
            self.pipeline = Pipeline(
                plan, store, sinks, options, self._clock, self._news.set, self._reached, until
            )
        except BaseException:
            runner.close()
            raise
        self.plan = self.pipeline.plan
        self.controls = Controls(self.pipeline, self._clock, lambda: self._closed)
        self.books = Books(
            self.pipeline,
            options,
            self._clock,
            ask=self.controls.ask,
            shed=self.controls.shed,
            waiting=self.controls.waiting,
            runner=lambda: self.runner,
        )
        self.summary, self.manager = self.books.summary, self.books.manager
        try:
            newest = self.pipeline.recover(self.on_close)
            self.summary.count(newest)
            if newest.batch >= 0:
                self.manager.enter(newest.policy)
            self.pipeline.open(connections)
        except BaseException:
            self._closing.append(self.pipeline.checkpoint.withdraw)
            self.close()
            raise

    @property
    def manifest(self) -> Manifest:
        """The newest committed manifest; its batch is -1 before the first commit."""
        return self.pipeline.manifest

    @property
    def state(self) -> str:
        """The state of the run as people see it: the journal's word, or `paused`."""
        return self.books.journal.shown_state(self._paused)

    def run(self) -> Summary:
        """Run batches until the input ends or `stop` is called; committed batches stay either way.

        With `available_now` the run ends when it has read what was there at its start. It leaves
        the windows open that are not final yet.
        """
        try:
            self._run()
        except BaseException as failure:
            self.books.ended(None if self._aborted else failure)
            raise
        self.books.ended(None)
        return self.summary

    def _run(self) -> None:
        inputs, enough = self.pipeline.inputs, self.pipeline.enough
        try:
            for action in self._opening:
                action()
            self.books.started()
            while not self.manifest.finished and not enough() and self._next_start():
                if self.step() is not None:
                    continue
                if self.options.available_now and not inputs.arriving():
                    self.summary.up_to_date = True
                    break
                self.books.load.waited()
                self.books.advice.look()
                self.books.journal.idle()
                self._clock.wait(self._news, inputs.expected_s())
        except BaseException:
            with suppress(StateError):  # the first error is the one to tell
                self.close()
            raise
        self.close()
        self.summary.finished |= enough()

    def _next_start(self) -> bool:
        """Wait until the next batch may start; return false if the run was stopped instead."""
        self._news.clear()  # before the look: what comes after it is not slept through
        if trigger_s := self.pipeline.cadence.trigger_s:
            wait_s = self._started_at + trigger_s - self._clock.now()
            if wait_s > 0:
                self.books.load.waited()
                self._clock.wait(self._stop, wait_s)
        while (
            self._paused or not self.pipeline.subqueries.budget.admits()
        ) and not self._stop.is_set():
            self.books.load.waited()
            self.books.journal.idle()
            self._clock.wait(self._news, _PAUSED_LOOK_S)
            self._news.clear()
        return not self._stop.is_set()

    def step(self) -> BatchReport | None:
        """Run one batch. Return None if there is no work now, or the query has finished."""
        if self.manifest.finished:
            return None
        with self.pipeline.checkpoint.in_use():
            self.pipeline.checkpoint.retirement.check()
            return self._step()

    def repeat(self, after: Manifest) -> BatchReport:
        """Run a committed batch again; `until` of this loop must be that batch or a later one."""
        self.pipeline.repeat(after)
        report = self.step()
        assert report is not None, "its input is there, or it is refused"
        return report

    def _step(self) -> BatchReport | None:
        spans = Spans(self._clock)
        prepared = self.pipeline.prepare(spans, self._start, self.manager.recorded)
        if prepared is None:
            return None
        self._started_at, number = spans.started, prepared.manifest.batch
        self._reached("before commit", number)
        batch = self.pipeline.commit(prepared)
        self._reached("after commit", number)
        spans.mark("commit")
        self.pipeline.publish(batch, self._on_rows)
        spans.mark("publish")
        self._reached("after publish", number)
        self.pipeline.manifest = batch.manifest
        self.books.committed(batch)
        self._on_batch(batch.reported)
        return batch.reported

    def _start(self, drafts: Sequence[Draft], spans: Spans) -> JobRunner:
        """Start the runner with the first batch.

        Starting Spark takes seconds, so it comes after all checks that can refuse the run.
        """
        if not self._started:
            deferred, self.runner = self.runner, self.runner.connected()
            if self.runner.start(drafts) or self.runner is not deferred:
                self.books.ready(spans)
            self._started = True
        return self.runner

    def _reached(self, step: str, batch: int) -> None:
        self._observe(step, batch)

    def close(self) -> None:
        """Release the threads, the sinks, the runner and the checkpoint.

        All are released even if one of them fails, for example because a deletion after the last
        batch failed. The error is raised at the end.
        """
        self._closed = True
        with ExitStack() as closing:  # callbacks run in reverse order
            # The lock goes last: until then something here may write to the checkpoint, and the
            # next run would take unfinished files for what a crash left.
            closing.callback(self.pipeline.checkpoint.release)
            closing.callback(self._let_go)
            closing.callback(self.pipeline.close)
            # Before the pipeline: its compactors wait for tasks that they gave to the runner.
            closing.callback(self.runner.close)
            closing.callback(self.books.close)
            closing.callback(self.pipeline.checkpoint.retirement.close)

    def on_run(self, action: Callable[[], None]) -> None:
        """Call `action` when `run` begins; an exception from it ends the run."""
        self._opening.append(action)

    def on_close(self, action: Callable[[], None]) -> None:
        """Call `action` when the loop is closed."""
        self._closing.append(action)

    def pause(self) -> None:
        """Start no batch after the current one until `resume`; input stays in its sources."""
        self._paused = True

    def resume(self) -> None:
        """Undo `pause`."""
        self._paused = False
        self._news.set()

    def stop(self) -> None:
        """End the run after the current batch."""
        self._stop.set()
        self._news.set()

    def tasks(self) -> TaskCounts | None:
        """How many tasks of the current batch are done, and how many there are; any thread."""
        return self.runner.tasks()  # not kept in a variable: the first batch may replace the runner

    def abort(self) -> bool:
        """Break off the current batch; return false if its runner cannot.

        Nothing of the batch counts. `run` then raises the error that the batch failed with.
        """
        self._aborted = True
        self.stop()
        return self.runner.abort()

    def abandon(self) -> None:
        """Run the actions of `on_close` without waiting for the current batch."""
        self.books.ended(None)
        self._let_go()

    def _let_go(self) -> None:
        for action in self._closing:
            action()
