"""The loop of batches: gate, operate, collect, commit, publish, and where a restart begins."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from tidegate.batch import MIN_US, BatchId
from tidegate.clock import Clock, SystemClock
from tidegate.errors import OptionError, RunError
from tidegate.gate.intake import Cut, Intake
from tidegate.plan.physical import Plan
from tidegate.route.mapping import Mapping, even, restored, switched
from tidegate.runtime.compactor import Compactor
from tidegate.runtime.gather import gather
from tidegate.runtime.inlet import Inlet, Spooling
from tidegate.runtime.job import ALL, KEY, Executor, Job, Outcome
from tidegate.runtime.metrics import BatchReport, Spans, Summary, added, imbalance
from tidegate.runtime.options import RunOptions
from tidegate.runtime.recovery import enter
from tidegate.runtime.retention import SIDES, keepers
from tidegate.runtime.splits import splits_of, time_cuts
from tidegate.sink.protocol import Output, Sink
from tidegate.source.uri import open_uri
from tidegate.state.lock import Lock
from tidegate.state.manifest import Manifest
from tidegate.state.segment import Segment
from tidegate.state.store import Store

_log = logging.getLogger(__name__)

_COUNTED = ("comparisons", "compared", *SIDES)
"""What instances count that is summed up in the manifest."""

Observer = Callable[[str, int], None]
"""Called with the name of each step of a batch as it is reached, and the batch."""


class Loop:
    """Runs one query, batch by batch, from where its checkpoint ends.

    `step` runs one batch; `run` goes on until the input ends or `stop` is called. Not for several
    threads, except `stop`, `scale`, `announce` and `remove`, which take effect between batches.
    """

    def __init__(
        self,
        plan: Plan,
        inlets: Sequence[Inlet],
        store: Store,
        sink: Sink,
        executor: Executor,
        options: RunOptions,
        clock: Clock | None = None,
        observer: Observer | None = None,
        on_batch: Callable[[BatchReport], None] | None = None,
    ) -> None:
        self.plan = plan
        self.store = store
        self.sink = sink
        self.executor = executor
        self.options = options
        self.summary = Summary()
        self._clock = clock or SystemClock()
        self._observe = observer or (lambda step, batch: None)
        self._on_batch = on_batch or (lambda report: None)
        self._stop = threading.Event()
        self._asked: int | None = None
        self._gate = threading.Lock()
        """Held where the intake is used: by the loop between batches, by who announces."""
        self._closing: list[Callable[[], None]] = []
        self._lock = Lock(store)
        self._intake = Intake(hold=plan.aggregate is None)
        self._compactors = {
            name: Compactor(store, keeper, f"{name}-compact")
            for name, keeper in keepers(plan).items()
        }
        try:
            self._manifest = self._recover()
            self._mapping = restored(
                self._manifest.epoch, self._manifest.instances, self._manifest.mapping
            )
            self._let_in(inlets)
        except BaseException:
            self.close()
            raise

    def run(self) -> Summary:
        """Batches until the input ends, or `stop`; what is committed stays either way."""
        try:
            while not self._stop.is_set() and not self._manifest.finished:
                if self.step() is None:
                    self._clock.sleep(self.options.poll_s)
        finally:
            self.close()
        return self.summary

    def close(self) -> None:
        """Let go of threads, the sink, the executor and the checkpoint."""
        for compactor in self._compactors.values():
            compactor.close()
        self.sink.close()
        self.executor.close()
        for action in self._closing:
            action()
        self._lock.release()

    def on_close(self, action: Callable[[], None]) -> None:
        """Something to do when the loop is closed."""
        self._closing.append(action)

    def stop(self) -> None:
        """End after the batch that is running."""
        self._stop.set()

    def scale(self, instances: int) -> None:
        """Ask for another number of instances from the next batch on."""
        switched(self._mapping, instances)
        self._asked = instances

    def announce(self, inlet: Inlet, promised_us: int | None = None) -> None:
        """Let a source join at the next batch; it promises event times from `promised_us` on.

        Without a promise from the frontier on. The next commit makes it part of the checkpoint:
        a restart opens its URI again; without one it has to be announced again, and until then it
        holds the frontier. Announcing what is there already changes nothing.
        """
        if self._manifest.finished:
            raise OptionError("announce", "needs a query that runs", "one that has finished")
        with self._gate:
            self._join(inlet, promised_us)

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
        mapping, epochs = self._switch(batch)
        held = self._manifest.operators
        state = {n: c.apply(held.get(n, ())) for n, c in self._compactors.items()}
        job = self._job(batch, cut, mapping, state)
        with self._ahead():
            outcomes = _checked(job, self.executor.run(job))
        self._observe("after operate", batch)
        spans.mark("operate")
        output = gather(self.plan, outcomes)
        self.sink.stage(BatchId(batch), output)
        spans.mark("collect")
        manifest = self._next_manifest(batch, cut, mapping, epochs, state, outcomes, output)
        self._observe("before commit", batch)
        self.store.publish(manifest)
        self._observe("after commit", batch)
        self.store.retire(self._manifest, manifest)
        spans.mark("commit")
        self.sink.publish(BatchId(batch))
        spans.mark("publish")
        with self._gate:
            self._intake.forget()
        self._observe("after publish", batch)
        previous, self._manifest, self._mapping = self._manifest, manifest, mapping
        self._compact(manifest)
        return self._report(previous, manifest, outcomes, self._clock.now() - started, spans)

    def _compact(self, manifest: Manifest) -> None:
        """Let the compactors know what was committed, and start what is worth it."""
        for name, compactor in self._compactors.items():
            segments = manifest.operators.get(name, ())
            compactor.settle(segments)
            if not manifest.finished:
                compactor.consider(
                    manifest.batch,
                    segments,
                    manifest.frontier_us,
                    manifest.counters.get(name, 0),
                    manifest.mapping,
                )

    @contextmanager
    def _ahead(self) -> Iterator[None]:
        """Read the next batch's event times while the tasks of this one run.

        What fails here fails again, and is told, when the next batch is cut.
        """

        def look() -> None:
            with self._gate, suppress(Exception):
                self._intake.look_ahead(self.options.batch_rows)

        thread = threading.Thread(target=look, name="tidegate-ahead")
        thread.start()
        try:
            yield
        finally:
            thread.join()

    def _recover(self) -> Manifest:
        """The state to continue from, with the newest batch published (again)."""
        manifest = enter(self.store, self._lock, self.sink, self.plan, self.options.buckets)
        if manifest is None:
            mapping = even(self.options.buckets, self.options.first_instances)
            return Manifest(-1, 0, mapping.instances, mapping.owners, MIN_US)
        self.sink.publish(BatchId(manifest.batch))
        self._intake.restore(manifest.frontier_us, manifest.sources)
        self._count(manifest)
        return manifest

    def _let_in(self, inlets: Sequence[Inlet]) -> None:
        """Open what the query starts with, and what joined an earlier run under a URI."""
        for inlet in inlets:
            if isinstance(inlet.connector, Spooling):
                self._closing.append(inlet.connector.close)
                inlet.connector.attach(self.store, self.options.follow)
            stream = self.plan.streams[inlet.stream]
            self._intake.add(
                inlet.stream,
                inlet.connector,
                stream.disorder_us,
                stream.idle_us,
                now=self._clock.now(),
                uri=inlet.uri,
            )
        for joined in self._intake.joined_before():
            stream = self.plan.streams[joined.stream]
            if joined.uri is None:
                joined.idle_us, joined.spoke_at = stream.idle_us, self._clock.now()
            else:
                connector = open_uri(joined.uri, stream.name, stream.time, self.options.follow)
                self._join(Inlet(joined.stream, connector, joined.uri))
        self._intake.check_complete()

    def _join(self, inlet: Inlet, promised_us: int | None = None) -> None:
        stream = self.plan.streams[inlet.stream]
        self._intake.join(
            inlet.stream,
            inlet.connector,
            stream.disorder_us,
            stream.idle_us,
            promised_us,
            self._clock.now(),
            inlet.uri,
        )

    def _count(self, manifest: Manifest) -> None:
        """Let the summary say what a manifest says."""
        segments = manifest.segments()
        self.summary.counters = dict(manifest.counters)
        self.summary.epochs = manifest.epochs
        self.summary.finished = manifest.finished
        self.summary.state_rows = sum(s.rows for s in segments)
        self.summary.state_bytes = sum(s.bytes for s in segments)

    def _switch(self, batch: int) -> tuple[Mapping, tuple[dict[str, Any], ...]]:
        """The mapping of this batch, and the history of epochs with a new one where it changed."""
        started = self._clock.now()
        asked = self._asked or self.options.instances_at(batch)
        epochs = tuple(dict(e) for e in self._manifest.epochs)
        mapping = self._mapping
        if batch == 0:
            mapping = even(self.options.buckets, asked or self.options.first_instances)
        elif asked is not None and asked != mapping.instances:
            mapping = switched(mapping, asked)
        elif epochs:
            return mapping, epochs
        entry = {
            "epoch": int(mapping.epoch),
            "batch": batch,
            "instances": mapping.instances,
            "switch_ms": round((self._clock.now() - started) * 1e3, 4),
        }
        return mapping, (*epochs, entry)

    def _job(
        self, batch: int, cut: Cut, mapping: Mapping, state: dict[str, tuple[Segment, ...]]
    ) -> Job:
        counters, join = self._manifest.counters, self.plan.join
        splits = tuple(splits_of(cut))
        return Job(
            batch,
            self.plan,
            splits,
            mapping,
            cut.previous_us,
            cut.frontier_us,
            state,
            self.store.handle(),
            time_cuts(cut, mapping.instances),
            (counters.get(SIDES[0], 0), counters.get(SIDES[1], 0)),
            KEY if join is not None and join.routing == KEY and not join.spec.counts else ALL,
            self.sink.parts(BatchId(batch)) if join is not None else None,
        )

    def _next_manifest(
        self,
        batch: int,
        cut: Cut,
        mapping: Mapping,
        epochs: tuple[dict[str, Any], ...],
        state: dict[str, tuple[Segment, ...]],
        outcomes: Sequence[Outcome],
        output: Output,
    ) -> Manifest:
        counters = dict(self._manifest.counters)
        with self._gate:
            sources = self._intake.saved()
        news = {
            "rows_in": cut.rows,
            "rows_out": output.count,
            "rows_late": sum(t.num_rows for t in output.late.values()),
            "rows_rejected": output.rejected.num_rows if output.rejected is not None else 0,
            "batches": 1,
        }
        for outcome in outcomes:
            news |= {n: news.get(n, 0) + c for n, c in outcome.counts.items() if n in _COUNTED}
        for name, count in news.items():
            counters[name] = counters.get(name, 0) + count
        operators = {}
        for name, compactor in self._compactors.items():
            live = compactor.live(state[name], cut.frontier_us, counters.get(name, 0))
            written = [s for o in outcomes for s in o.segments.get(name, ())]
            operators[name] = (*live, *written)
        return replace(
            self._manifest,
            batch=batch,
            epoch=int(mapping.epoch),
            instances=mapping.instances,
            mapping=mapping.owners,
            frontier_us=cut.frontier_us,
            sources=sources,
            operators=operators,
            counters=counters,
            epochs=epochs,
            finished=cut.exhausted,
        )

    def _report(
        self,
        previous: Manifest,
        manifest: Manifest,
        outcomes: Sequence[Outcome],
        seconds: float,
        spans: Spans,
    ) -> BatchReport:
        def more(name: str) -> int:
            return manifest.counters[name] - previous.counters.get(name, 0)

        self._count(manifest)
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
            imbalance([o.tuples for o in outcomes]),
            self.summary.state_rows,
            self.summary.state_bytes,
            added(o.spans_ms for o in outcomes),
            max((s["floor_us"] for s in manifest.sources), default=MIN_US),
            tuple(o.counts for o in outcomes),
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


def _checked(job: Job, outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The outcomes by instance; every instance must have answered exactly once."""
    answered = sorted(o.instance for o in outcomes)
    if answered != list(range(job.mapping.instances)):
        raise RunError(
            f"batch {job.batch}",
            f"all {job.mapping.instances} instances must answer once",
            f"answers of {answered}",
            "Nothing was committed; run again.",
        )
    return sorted(outcomes, key=lambda o: o.instance)
