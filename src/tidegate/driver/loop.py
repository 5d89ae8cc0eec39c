"""The loop of batches: gate, operate, collect, commit, publish, and where a restart begins."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache, partial

import pyarrow as pa

from tidegate import schedule
from tidegate.clock import Clock
from tidegate.driver.change import fitting
from tidegate.driver.checkpoint import Checkpoint
from tidegate.driver.commit import BatchWork, next_manifest
from tidegate.driver.connection import Connection
from tidegate.driver.fan_out import FanOutWatch
from tidegate.driver.finished import check_finished
from tidegate.driver.forecast import Forecast
from tidegate.driver.inputs import Inputs
from tidegate.driver.latency import Latency
from tidegate.driver.load_watch import LoadWatch
from tidegate.driver.manager import Manager
from tidegate.driver.metrics import BatchReport, Summary
from tidegate.driver.options import RunOptions
from tidegate.driver.outlet import Outlets
from tidegate.driver.replay import Replay, hopeless
from tidegate.driver.report import START, report_of, with_measured
from tidegate.driver.subqueries import Subqueries
from tidegate.durable import Due, gathering
from tidegate.elastic.observation import Observation
from tidegate.elastic.request import Request
from tidegate.elastic.switchboard import Asked, Taken
from tidegate.errors import (
    GateError,
    MemoryExceededError,
    OptionError,
    SourceError,
    StateError,
)
from tidegate.execute.exchange import clear_all
from tidegate.execute.executor import Draft, Executor
from tidegate.execute.within_memory import exceeded
from tidegate.plan.physical import Plan
from tidegate.sink.protocol import Sink
from tidegate.spans import Spans
from tidegate.state.epoch import epoch_text
from tidegate.state.manifest import Manifest
from tidegate.state.store import Store

_log = logging.getLogger(__name__)

Observer = Callable[[str, int], None]
"""Called with the name of each step of a batch as it is reached, and the batch."""

RowsSeen = Callable[[str | None, pa.Table], None]
"""Called with the name of each output and its rows of a batch, or the last of them where tasks have
written them, when they are published."""


class Loop:
    """Runs one query, batch by batch, from where its checkpoint ends.

    `step` runs one batch; `run` goes on until the input ends or `stop` is called. Not for several
    threads, except `stop`, `ask`, `announce` and `remove`, which take effect between batches, and
    `abort`.
    """

    def __init__(
        self,
        plan: Plan,
        connections: Sequence[Connection],
        store: Store,
        sinks: Mapping[str | None, Sink],
        executor: Executor,
        options: RunOptions,
        clock: Clock | None = None,
        observer: Observer | None = None,
        on_batch: Callable[[BatchReport], None] | None = None,
        on_rows: RowsSeen | None = None,
    ) -> None:
        try:
            plan = fitting(plan, store)
        except BaseException:
            executor.close()
            raise
        self.plan = plan
        self.store = store
        self.executor = executor
        self.options = options
        self.summary = Summary(names=plan.names)
        self._clock = clock or schedule.current().clock
        self._observe = observer or (lambda step, batch: None)
        self._on_batch = on_batch or (lambda report: None)
        self._on_rows = on_rows or (lambda output, rows: None)
        self._limit = options.limit_of(any(s.operator.multiplies for s in plan.subqueries))
        self._tried_rows = 0
        self._started = False
        self._started_at = -math.inf
        """When the newest batch was started, on the clock."""
        self._stop = threading.Event()
        self._news = threading.Event()
        """Given when there may be something to do before the next look for input."""
        self._closed = False
        self._opening: list[Callable[[], None]] = []
        self._closing: list[Callable[[], None]] = []
        self._checkpoint = Checkpoint(store)
        self._outlets = Outlets(plan, sinks, store)
        self._inputs = Inputs(plan, store, self._clock, options, self._news.set)
        self._subqueries = Subqueries(plan, store, options)
        self._load = LoadWatch(self._subqueries, self._clock)
        self.summary.load = self._subqueries.load
        self.summary.windows = self._subqueries.windows
        self.summary.changes = self._subqueries.changes
        self._fan_out = FanOutWatch()
        self._latency = Latency(self._clock.now())
        self.summary.latencies = self._latency.latencies
        slots = cache(lambda: options.slots or self.executor.slots())
        self.manager = Manager(
            options.policy,
            ask=self.ask,
            waiting=self.waiting,
            slots=slots,
            shared=self._subqueries.shared,
        )
        self.forecast = Forecast(options.trigger_s, plan.hold, slots, lambda: self.manager.decides)
        self.summary.forecast = self.forecast.outcome
        try:
            self._subqueries.check_options()
            self._replay: Replay | None = None
            self._manifest = self._recover()
            with self._told_of_loss():
                self._inputs.let_in(connections)
            if self._manifest.finished:
                check_finished(store.location, self._inputs.new_sources())
            self._checkpoint.clean()
            self._subqueries.enter(self._manifest if self._replay is None else self._replay.after)
        except BaseException:
            self._closing.append(self._checkpoint.withdraw)
            self.close()
            raise

    def run(self) -> Summary:
        """Batches until the input ends, or `stop`; what is committed stays either way.

        A run over what is available now ends when it has taken that, and leaves windows open.
        """
        try:
            for action in self._opening:
                action()
            while not self._manifest.finished and not self._enough() and self._next_start():
                if self.step() is not None:
                    continue
                if self.options.available_now and not self._inputs.arriving():
                    self.summary.up_to_date = True
                    break
                self._load.waited()
                self._clock.wait(self._news, self._inputs.expected_s())
        except BaseException:
            with suppress(StateError):  # the first error is the one to tell
                self.close()
            raise
        self.close()
        self.summary.finished |= self._enough()
        return self.summary

    def _next_start(self) -> bool:
        """Wait until the next batch may start; false where it is not to."""
        self._news.clear()  # before the look: what comes after it is not slept through
        if self.options.trigger_s is not None:
            wait_s = self._started_at + self.options.trigger_s - self._clock.now()
            if wait_s > 0:
                self._load.waited()
                self._clock.wait(self._stop, wait_s)
        return not self._stop.is_set()

    def _enough(self) -> bool:
        """Whether every output has all the rows that its LIMIT allows; then no more is read."""
        limits = [self.plan.subqueries[t.edge.subquery].operator.limit for t in self.plan.targets]
        if any(limit is None for limit in limits):
            return False
        wanted = sum(limit for limit in limits if limit is not None)
        return self._manifest.counters.get("rows_out", 0) >= wanted

    def close(self) -> None:
        """Let go of threads, the sink, the executor and the checkpoint.

        Raises the StateError of a deletion that failed after the last batch, when all is let go.
        """
        self._closed = True
        try:
            self._checkpoint.close()
        finally:
            self._let_go()

    def _let_go(self) -> None:
        # A summary outlives its run.
        self.summary.load = partial(dict, self._subqueries.load())
        self.summary.windows = partial(dict, self._subqueries.windows())
        self.summary.changes = partial(dict, self._subqueries.changes())
        self.summary.forecast = partial(replace, self.forecast.outcome())
        self.executor.close()  # first: subqueries wait for what it still has of theirs
        self._subqueries.close()
        self._outlets.close()
        self._inputs.close()
        for action in self._closing:
            action()
        self._checkpoint.release()

    def on_run(self, action: Callable[[], None]) -> None:
        """Something to do when `run` begins; what it raises ends the run."""
        self._opening.append(action)

    def on_close(self, action: Callable[[], None]) -> None:
        """Something to do when the loop is closed."""
        self._closing.append(action)

    def stop(self) -> None:
        """End after the batch that is running."""
        self._stop.set()
        self._news.set()

    def abort(self) -> bool:
        """Break off the batch that is running; false where its executor cannot.

        Nothing of it counts. `run` then raises what the batch has failed with.
        """
        self.stop()
        return self.executor.abort()

    def abandon(self) -> None:
        """Remove what only this run could use, when its batch cannot be waited for."""
        for action in self._closing:
            action()

    def ask(self, request: Request) -> dict[str, Taken]:
        """Ask for other mappings from the next batch on, for one subquery or all.

        It replaces what waits for these subqueries. What cannot be is an OptionError at once, and
        the query goes on as it would have. Gives by subquery what it would make now.
        """
        self.refuse_ended(str(request.change).partition(" ")[0])
        return self._subqueries.ask(request, self._clock.now())

    def refuse_ended(self, where: str) -> None:
        """What asks something of batches to come is an OptionError where there are none."""
        if self._manifest.finished or self._closed:
            ended = "finished" if self._manifest.finished else "ended"
            raise OptionError(
                where,
                "needs a query that runs",
                f"one that has {ended}",
                "Say it when you start the query: .start(instances=4, policy=...).",
            )

    def waiting(self) -> dict[str, Asked]:
        """By subquery what was asked for and waits for the next batch."""
        return self._subqueries.waiting()

    def announce(self, connection: Connection, promised_us: int | None = None) -> None:
        """Let a source join at the next batch; it promises event times from `promised_us` on.

        Without a promise from the frontier on. The next commit makes it part of the checkpoint:
        a restart opens its URI again; without one it has to be announced again, and until then it
        holds the frontier. Announcing what is there already changes nothing.
        """
        if self._manifest.finished:
            raise OptionError(
                "announce",
                "needs a query that runs",
                "one that has finished",
                "Start it on another checkpoint with all its sources.",
            )
        self._inputs.join(connection, promised_us)

    def remove(self, source_id: str) -> None:
        """Let a source leave at the next batch; what was read of it is flushed."""
        self._inputs.remove(source_id)

    @property
    def observed(self) -> tuple[Observation, ...]:
        """What the newest batch showed of the load of each subquery, in the order of the plan."""
        return self._load.observed

    def ask_rows(self, rows: int) -> None:
        """Ask for another number of rows in a batch, from the next on that is not read ahead."""
        self._limit.ask(rows)

    @property
    def rows_at_hand(self) -> int:
        """How many rows the batch that runs has, or may have while it is being cut."""
        return self._tried_rows

    @property
    def manifest(self) -> Manifest:
        """The newest committed manifest; batch -1 before the first."""
        return self._manifest

    def step(self) -> BatchReport | None:
        """One batch; None when there is nothing to do now, or ever again."""
        if self._manifest.finished:
            return None
        with self._checkpoint.in_use():
            return self._step()

    def _step(self) -> BatchReport | None:
        self._checkpoint.check()
        batch = self._manifest.batch + 1
        started = self._clock.now()
        spans = Spans(self._clock)
        with gathering() as due:
            work = self._fitting(batch, started, spans, due)
            if work is None:
                return None
            self._limit.fitted(work.cut.rows, work.rows_made)
            self._started_at = started
            manifest = self._checkpoint.completed(
                self._manifest,
                next_manifest(
                    self._manifest,
                    work,
                    self._subqueries,
                    *self._inputs.saved(batch),
                    streams=[stream.name for stream in self.plan.streams],
                    policy=self.manager.recorded(),
                ),
            )
        self._observe("before commit", batch)
        replaced, self._replay = self._replay, None
        self._checkpoint.commit(manifest, due)
        committed_at = self._clock.now()
        self._observe("after commit", batch)
        spans.mark("commit")
        self._outlets.publish(manifest)
        for target, output in zip(self.plan.targets, work.staged.outputs, strict=True):
            self._on_rows(target.name, output.rows)
        spans.mark("publish")
        latency = self._latency.committed(work.cut.completed, committed_at)
        self._inputs.forget()
        self._observe("after publish", batch)
        previous, self._manifest = self._manifest, manifest
        self._checkpoint.retire(previous, manifest, replaced)
        self._fan_out.committed(work)
        self._subqueries.committed(work.jobs, work.outcomes)
        self._subqueries.compact(manifest, self.executor)
        extent, holder = self._inputs.standing()
        report = report_of(
            previous,
            manifest,
            self.plan,
            work,
            self._clock.now() - started,
            spans,
            extent,
            holder,
        )
        backlog = self._inputs.backlog()
        measured = (latency, self._latency.recent(), backlog)
        ended = started + report.start_s + report.seconds
        busy = self._load.committed(work, report.seconds, started, ended, backlog)
        after_s = ended - committed_at
        self.forecast.committed(self._load.measured, self._latency.newest_sum, after_s)
        if self.manager.decides and not manifest.finished:
            self.manager.after_batch(self.observed)
        return self._told(with_measured(report, *measured, busy))

    def _fitting(self, batch: int, started: float, spans: Spans, due: Due) -> BatchWork | None:
        """All of a batch before its commit, cut as small as memory makes it."""
        while True:
            try:
                return self._tried(batch, started, spans, due)
            except (MemoryError, MemoryExceededError) as error:
                self._cut_smaller(batch, error)

    def _tried(self, batch: int, started: float, spans: Spans, due: Due) -> BatchWork | None:
        """All of a batch before its commit; None where there is nothing to do now."""
        self._observe("before gate", batch)
        self._tried_rows = self._limit.rows
        with self._told_of_loss():
            cut = self._inputs.cut(self._limit.rows, started)
        if cut is None:
            return None
        self._tried_rows = cut.rows
        spans.mark("gate")
        _log.debug("batch %d begins with %d rows", batch, cut.rows)
        self._observe("after gate", batch)
        self._outlets.begin(batch, self._replay)
        drafts, epochs = self._subqueries.drafts(
            self._manifest, cut, self._outlets, self._clock, self._replay
        )
        self._start_executor(drafts, spans)
        with self._inputs.read_ahead(self._limit.rows, self.executor.until_at_work):
            jobs, outcomes = self.executor.run_batch(drafts)
        self._observe("after operate", batch)
        spans.mark("operate")
        written = [outcome for found in outcomes for outcome in found]
        for outcome in written:
            due.add_names(outcome.due)
        if all(outcome.receipts is None for outcome in written):  # else staging moves what they are
            due.begin()
        staged = self._outlets.stage(outcomes)
        self.executor.release(jobs)
        spans.mark("collect")
        epochs = self._subqueries.with_loaded(epochs, self._manifest, jobs, outcomes)
        return BatchWork(cut, jobs, outcomes, staged, epochs)

    def _start_executor(self, drafts: Sequence[Draft], spans: Spans) -> None:
        """With the first batch, after everything else was found good; Spark takes its time."""
        if not self._started and self.executor.start(drafts):
            spans.mark(START)
            self._latency.ready(self._clock.now())
        self._started = True

    def _cut_smaller(self, batch: int, error: MemoryError | MemoryExceededError) -> None:
        """After a batch did not fit into memory: see to it that the next try has fewer rows.

        Nothing of the larger one counts, and the output is the same for any cut. A batch that runs
        again has to end where it ended, and cannot be smaller.
        """
        rows, said = self._tried_rows, getattr(error, "got", None) or str(error)
        where = getattr(error, "where", "the driver")
        if self._replay is not None or not self._limit.shrink(rows):
            raise exceeded(f"{where}, batch {batch} of {rows:,} rows", MemoryError(said)) from error
        self._inputs.undo()
        _log.warning(
            "batch %d: %d rows did not fit into memory (%s: %s); it is tried again with %d, as "
            "later ones are. Lower --batch-rows or raise --memory-limit to have it so from the "
            "start.",
            batch,
            rows,
            where,
            said or "none that is free",
            self._limit.rows,
        )

    def _recover(self) -> Manifest:
        """The state to continue from, with the newest batch published (again).

        Where output of it was lost before that, the state before it: it runs again.
        """
        first = self._subqueries.first_manifest()
        manifest = self._checkpoint.enter(self._outlets, self.plan, self.options.buckets, first)
        clear_all(self.store, self._checkpoint.alone)
        self.on_close(lambda: clear_all(self.store))  # what a batch left that failed
        if manifest.batch < 0:
            return manifest
        lost = self._outlets.publish_again(manifest)
        self.summary.count(manifest)
        self.manager.enter(manifest.policy)
        query = self._checkpoint.query
        assert query is not None
        if not lost:
            query.tell(manifest)
            self._inputs.restore(manifest)
            return manifest
        query.refuse_replay(manifest, next(iter(lost.values())))
        self._replay = replay = Replay.of(manifest, lost, self.store, first)
        clear_all(self.store)  # also of an earlier try to run it again
        self._inputs.rewind(replay.before, manifest)
        return replay.before

    @contextmanager
    def _told_of_loss(self) -> Iterator[None]:
        """Where a batch has to run again, and its input is not there, say why it has to."""
        try:
            yield
        except (SourceError, GateError) as error:
            if self._replay is None:
                raise
            raise hopeless(self._replay.reason, error) from error

    def _told(self, report: BatchReport) -> BatchReport:
        """A report, after the summary, the log and who watches have it."""
        self.summary.count(self._manifest)
        self.summary.add(report)
        _log.debug(
            "batch %d: %d rows in, %d out, %.1f ms %s, tasks %s",
            report.batch,
            report.rows_in,
            report.rows_out,
            report.seconds * 1e3,
            report.spans_ms,
            report.tasks_ms,
        )
        for epoch in self.summary.epochs:
            if epoch["batch"] == report.batch and "by" in epoch:
                _log.info("%s %s", epoch["subquery"], epoch_text(epoch))
        self._on_batch(report)
        return report
