"""The loop of batches: gate, operate, collect, commit, publish, and where a restart begins."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import wait
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa

from tidegate.batch import MIN_US
from tidegate.clock import Clock, SystemClock
from tidegate.driver.beside import beside
from tidegate.driver.connection import Connection, Spooling
from tidegate.driver.metrics import BatchReport, Summary, imbalance
from tidegate.driver.options import RunOptions, one_number
from tidegate.driver.outlet import Outlets, Staged
from tidegate.driver.recovery import enter
from tidegate.driver.retirement import Retirement
from tidegate.driver.subquery import RunningSubquery
from tidegate.errors import OptionError, StateError, near
from tidegate.execute.executor import Executor, Outcomes
from tidegate.execute.job import Job
from tidegate.execute.splits import telling_inputs
from tidegate.gate.intake import Cut, Intake
from tidegate.memory import MEMORY
from tidegate.plan.physical import QUERY_CLOUD, Plan
from tidegate.route.mapping import even, recorded, switched
from tidegate.sink.protocol import Sink
from tidegate.source.uri import open_uri
from tidegate.spans import Spans, added
from tidegate.state.epoch_log import shortened
from tidegate.state.lock import Lock
from tidegate.state.manifest import Manifest
from tidegate.state.segment import Segment
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
    threads, except `stop`, `scale`, `announce` and `remove`, which take effect between batches.
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
        self.plan = plan
        self.store = store
        self.executor = executor
        self.options = options
        self.summary = Summary()
        self._clock = clock or SystemClock()
        self._observe = observer or (lambda step, batch: None)
        self._on_batch = on_batch or (lambda report: None)
        self._on_rows = on_rows or (lambda output, rows: None)
        self._stop = threading.Event()
        self._gate = threading.Lock()
        """Held where the intake is used: by the loop between batches, by who announces."""
        self._closing: list[Callable[[], None]] = []
        self._lock = Lock(store)
        self._retirement = Retirement(store)
        self._outlets = Outlets(plan, sinks, store)
        self._intake = Intake(plan.hold)
        self._subqueries = [
            RunningSubquery(plan, number, store, telling, options.memory_bytes)
            for number, telling in enumerate(telling_inputs(plan))
        ]
        MEMORY.resize(options.memory_bytes)
        try:
            options.check_subqueries(
                [s.name for s in plan.subqueries], shared=plan.strategy == QUERY_CLOUD
            )
            self._manifest = self._recover()
            self._let_in(connections)
        except BaseException:
            self.close()
            raise

    def run(self) -> Summary:
        """Batches until the input ends, or `stop`; what is committed stays either way."""
        try:
            while not self._stop.is_set() and not self._manifest.finished:
                if self.step() is None:
                    self._clock.sleep(self.options.poll_s)
        except BaseException:
            with suppress(StateError):  # the first error is the one to tell
                self.close()
            raise
        self.close()
        return self.summary

    def close(self) -> None:
        """Let go of threads, the sink, the executor and the checkpoint.

        Raises the StateError of a deletion that failed after the last batch, when all is let go.
        """
        try:
            self._retirement.close()
        finally:
            self._let_go()

    def _let_go(self) -> None:
        self.executor.close()  # first: subqueries wait for what it still has of theirs
        for subquery in self._subqueries:
            subquery.close()
        self._outlets.close()
        for action in self._closing:
            action()
        self._lock.release()

    def on_close(self, action: Callable[[], None]) -> None:
        """Something to do when the loop is closed."""
        self._closing.append(action)

    def stop(self) -> None:
        """End after the batch that is running."""
        self._stop.set()

    def scale(self, instances: int, subquery: str | None = None) -> None:
        """Ask for another number of instances from the next batch on, for one subquery or all."""
        names = [s.name for s in self._subqueries]
        if subquery is not None and subquery not in names:
            raise OptionError(
                "scale", "must name a subquery of the query", subquery, near(subquery, names)
            )
        if subquery is not None and self.plan.strategy == QUERY_CLOUD and len(names) > 1:
            raise one_number("scale", subquery)
        for running in self._subqueries:
            if subquery in (None, running.name):
                switched(running.mapping(self._manifest), instances)
                running.asked = instances

    def announce(self, connection: Connection, promised_us: int | None = None) -> None:
        """Let a source join at the next batch; it promises event times from `promised_us` on.

        Without a promise from the frontier on. The next commit makes it part of the checkpoint:
        a restart opens its URI again; without one it has to be announced again, and until then it
        holds the frontier. Announcing what is there already changes nothing.
        """
        if self._manifest.finished:
            raise OptionError("announce", "needs a query that runs", "one that has finished")
        with self._gate:
            self._join(connection, promised_us)

    def remove(self, source_id: str) -> None:
        """Let a source leave at the next batch; what was read of it is flushed."""
        with self._gate:
            self._intake.remove(source_id)

    @property
    def manifest(self) -> Manifest:
        """The newest committed manifest; batch -1 before the first."""
        return self._manifest

    def step(self) -> BatchReport | None:
        """One batch; None when there is nothing to do now, or ever again."""
        if self._manifest.finished:
            return None
        self._retirement.check()
        batch = self._manifest.batch + 1
        started = self._clock.now()
        spans = Spans(self._clock)
        self._observe("before gate", batch)
        with self._gate:
            self._intake.discover(started)
            cut = self._intake.next_cut(self.options.batch_rows, started)
        if cut is None:
            return None
        spans.mark("gate")
        self._observe("after gate", batch)
        epochs: list[Mapping[str, Any]] = list(self._manifest.epochs)
        with self._ahead():
            jobs, outcomes = self._operate(cut, epochs)
        self._observe("after operate", batch)
        spans.mark("operate")
        staged = self._outlets.stage(outcomes)
        self.executor.release(jobs)
        spans.mark("collect")
        manifest = self._next_manifest(cut, jobs, epochs, outcomes, staged)
        self._observe("before commit", batch)
        self.store.publish(manifest)
        self._observe("after commit", batch)
        spans.mark("commit")
        self._outlets.publish(manifest)
        for target, output in zip(self.plan.targets, staged.outputs, strict=True):
            self._on_rows(target.name, output.rows)
        spans.mark("publish")
        with self._gate:
            self._intake.forget()
        self._observe("after publish", batch)
        previous, self._manifest = self._manifest, manifest
        self._retirement.retire(previous, manifest)
        for subquery in self._subqueries:
            subquery.compact(manifest, self.executor)
        return self._report(previous, manifest, outcomes, self._clock.now() - started, spans)

    def _operate(self, cut: Cut, epochs: list[Mapping[str, Any]]) -> tuple[list[Job], Outcomes]:
        """Run every subquery over the batch, each after those whose rows it takes."""
        batch, drafts = self._manifest.batch + 1, []
        self._outlets.begin(batch)
        for subquery in self._subqueries:
            mapping, epoch = subquery.switched(self._manifest, batch, self.options, self._clock)
            if epoch is not None:
                epochs.append(epoch)
            parts = self._outlets.for_tasks(subquery.target)
            drafts.append(subquery.draft(self._manifest, cut, mapping, parts))
        return self.executor.run_batch(drafts)

    @contextmanager
    def _ahead(self) -> Iterator[None]:
        """Read the next batch's event times while the tasks of this one run.

        What fails here fails again, and is told, when the next batch is cut.
        """

        def look() -> None:
            with self._gate, suppress(Exception):
                self._intake.look_ahead(self.options.batch_rows)

        looking = beside("tidegate-ahead", look)
        try:
            yield
        finally:
            if looking is not None:
                wait([looking])

    def _recover(self) -> Manifest:
        """The state to continue from, with the newest batch published (again)."""
        manifest = enter(self.store, self._lock, self._outlets, self.plan, self.options.buckets)
        if manifest is None:
            mapping = even(self.options.buckets, self.options.first_instances)
            return Manifest(-1, {s.name: recorded(mapping) for s in self._subqueries}, MIN_US)
        self._outlets.publish(manifest)
        self._intake.restore(manifest.frontier_us, manifest.sources, self.store)
        self._count(manifest)
        return manifest

    def _let_in(self, connections: Sequence[Connection]) -> None:
        """Open what the query starts with, and what joined an earlier run under a URI."""
        for connection in connections:
            if isinstance(connection.connector, Spooling):
                self._closing.append(connection.connector.close)
                connection.connector.attach(self.store, self.options.follow)
            stream = self.plan.streams[connection.stream]
            self._intake.add(
                connection.stream,
                connection.connector,
                stream.disorder_us,
                stream.idle_us,
                now=self._clock.now(),
                uri=connection.uri,
            )
        for joined in self._intake.joined_before():
            stream = self.plan.streams[joined.stream]
            if joined.uri is None:
                joined.idle_us, joined.spoke_at = stream.idle_us, self._clock.now()
            else:
                connector = open_uri(joined.uri, stream.name, stream.time, self.options.follow)
                self._join(Connection(joined.stream, connector, joined.uri))
        self._intake.check_complete()

    def _join(self, connection: Connection, promised_us: int | None = None) -> None:
        stream = self.plan.streams[connection.stream]
        self._intake.join(
            connection.stream,
            connection.connector,
            stream.disorder_us,
            stream.idle_us,
            promised_us,
            self._clock.now(),
            connection.uri,
        )

    def _count(self, manifest: Manifest) -> None:
        """Let the summary say what a manifest says."""
        segments = manifest.segments()
        self.summary.counters = dict(manifest.counters)
        self.summary.epochs = manifest.epochs
        self.summary.epochs_logged = manifest.epochs_logged
        self.summary.finished = manifest.finished
        self.summary.state_rows = sum(s.rows for s in segments)
        self.summary.state_bytes = sum(s.bytes for s in segments)

    def _next_manifest(
        self,
        cut: Cut,
        jobs: Sequence[Job],
        epochs: Sequence[Mapping[str, Any]],
        outcomes: Outcomes,
        staged: Staged,
    ) -> Manifest:
        with self._gate:
            names = self._intake.write_names(self.store, self._manifest.batch + 1)
            sources = self._intake.saved()
        counters = self._counters(cut, outcomes, staged)
        operators: dict[str, tuple[Segment, ...]] = {}
        for subquery, found in zip(self._subqueries, outcomes, strict=True):
            operators |= subquery.operators(found, cut.frontier_us, counters)
        manifest = replace(
            self._manifest,
            batch=self._manifest.batch + 1,
            mappings={j.subquery.name: recorded(j.mapping) for j in jobs},
            frontier_us=cut.frontier_us,
            sources=sources,
            files=names,
            operators=operators,
            counters=counters,
            epochs=tuple(epochs),
            finished=cut.exhausted,
            outputs=staged.receipts,
        )
        return shortened(self.store, manifest)

    def _counters(self, cut: Cut, outcomes: Outcomes, staged: Staged) -> dict[str, int]:
        """The sums over all batches, with those of this one."""
        first = staged.outputs[0]
        rejected = first.rejected
        news = {
            "rows_in": cut.rows,
            "rows_out": sum(o.count for o in staged.outputs),
            "rows_late": sum(t.num_rows for t in first.late.values()),
            "rows_rejected": rejected.num_rows if rejected is not None else 0,
            "batches": 1,
        }
        counters = Counter(self._manifest.counters)
        counters.update(news)
        for subquery, found in zip(self._subqueries, outcomes, strict=True):
            counters.update(subquery.counted(found))
        return dict(counters)

    def _report(
        self,
        previous: Manifest,
        manifest: Manifest,
        outcomes: Outcomes,
        seconds: float,
        spans: Spans,
    ) -> BatchReport:
        def more(name: str) -> int:
            return manifest.counters[name] - previous.counters.get(name, 0)

        self._count(manifest)
        every = [o for found in outcomes for o in found]
        report = BatchReport(
            manifest.batch,
            more("rows_in"),
            more("rows_out"),
            more("rows_late"),
            more("rows_rejected"),
            manifest.instances,
            manifest.epoch,
            manifest.frontier_us,
            seconds,
            spans.spans_ms,
            max(imbalance([o.tuples for o in found]) for found in outcomes),
            self.summary.state_rows,
            self.summary.state_bytes,
            added(o.spans_ms for o in every),
            max((s["floor_us"] for s in manifest.sources), default=MIN_US),
            tuple(o.counts for o in every),
            tuple(
                subquery.name
                for subquery, found in zip(self._subqueries, outcomes, strict=True)
                for _ in found
            ),
        )
        self.summary.add(report)
        _log.debug(
            "batch %d: %d rows in, %d out, %.1f ms %s, tasks %s",
            report.batch,
            report.rows_in,
            report.rows_out,
            seconds * 1e3,
            spans.spans_ms,
            report.tasks_ms,
        )
        self._on_batch(report)
        return report
