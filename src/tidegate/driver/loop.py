"""Runs the batches of a query one after the other, from where its checkpoint ends."""

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
from tidegate.driver.metrics import BatchReport, Summary
from tidegate.driver.options import RunOptions
from tidegate.driver.pipeline import Pipeline, RowsSeen, StepSeen
from tidegate.errors import StateError
from tidegate.execute.runner import Draft, JobRunner, TaskCounts
from tidegate.plan.physical import Plan
from tidegate.sink.protocol import Sink
from tidegate.spans import Spans
from tidegate.state.manifest import Manifest
from tidegate.state.store import Store

_PAUSED_LOOK_S = 0.5
"""How often a run that is paused looks whether it goes on."""


class Loop:
    """Decides when the next batch starts, and has it prepared, committed, published and booked.

    `step` runs one batch; `run` goes on until the input ends or `stop` is called. Not for several
    threads, except `stop` and `pause`, which take effect after the batch, `resume`, `abort`, and
    `controls`. With `until` it does not `run`: `repeat` runs batches again, up to that one.
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
        """When the newest batch was started, on the clock."""
        self._stop = threading.Event()
        self._news = threading.Event()
        """Given when there may be something to do before the next look for input."""
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
        """The newest committed manifest; batch -1 before the first."""
        return self.pipeline.manifest

    @property
    def state(self) -> str:
        """How the run is, for people: as the journal has it, or paused."""
        return self.books.journal.shown_state(self._paused)

    def run(self) -> Summary:
        """Batches until the input ends, or `stop`; what is committed stays either way.

        A run over what is available now ends when it has taken that, and leaves windows open.
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
        """Wait until the next batch may start; false where it is not to."""
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
        """One batch; None when there is nothing to do now, or ever again."""
        if self.manifest.finished:
            return None
        with self.pipeline.checkpoint.in_use():
            self.pipeline.checkpoint.retirement.check()
            return self._step()

    def repeat(self, after: Manifest) -> BatchReport:
        """A batch that was committed once more; for a loop with `until` at it or later."""
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
        """With the first batch, after everything else was found good; Spark takes its time."""
        if not self._started:
            deferred, self.runner = self.runner, self.runner.connected()
            if self.runner.start(drafts) or self.runner is not deferred:
                self.books.ready(spans)
            self._started = True
        return self.runner

    def _reached(self, step: str, batch: int) -> None:
        self._observe(step, batch)

    def close(self) -> None:
        """Let go of threads, the sink, the runner and the checkpoint.

        Each of them also where one before has failed, as with the StateError of a deletion after
        the last batch: that is raised when all is let go.
        """
        self._closed = True
        with ExitStack() as closing:  # the last first
            closing.callback(self.pipeline.checkpoint.release)
            closing.callback(self._let_go)
            closing.callback(self.pipeline.close)
            closing.callback(self.runner.close)  # subqueries wait for what it still has of theirs
            closing.callback(self.books.close)
            closing.callback(self.pipeline.checkpoint.retirement.close)

    def on_run(self, action: Callable[[], None]) -> None:
        """Something to do when `run` begins; what it raises ends the run."""
        self._opening.append(action)

    def on_close(self, action: Callable[[], None]) -> None:
        """Something to do when the loop is closed."""
        self._closing.append(action)

    def pause(self) -> None:
        """Begin no batch after the one that is running, until `resume`; input waits where it is."""
        self._paused = True

    def resume(self) -> None:
        """Go on with batches."""
        self._paused = False
        self._news.set()

    def stop(self) -> None:
        """End after the batch that is running."""
        self._stop.set()
        self._news.set()

    def tasks(self) -> TaskCounts | None:
        """How far the tasks of the batch are; for those who watch, from any thread."""
        return self.runner.tasks()  # which the first batch may have replaced

    def abort(self) -> bool:
        """Break off the batch that is running; false where its runner cannot.

        Nothing of it counts. `run` then raises what the batch has failed with.
        """
        self._aborted = True
        self.stop()
        return self.runner.abort()

    def abandon(self) -> None:
        """Remove what only this run could use, when its batch cannot be waited for."""
        self.books.ended(None)
        self._let_go()

    def _let_go(self) -> None:
        for action in self._closing:
            action()
