"""Takes each batch from the sources of a query to its sinks and its checkpoint.

`prepare` lets the gate cut the batch, runs its tasks and stages the rows in the sinks. `commit`
writes its manifest to the checkpoint; from then on the batch counts. `publish` makes the rows
visible. Nobody sees anything of a batch before its commit. After a crash the checkpoint therefore
holds either the batch before or this one, never a part.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from tidegate.clock import Clock
from tidegate.driver.cadence import RunCadence
from tidegate.driver.checkpoint.change import fitting
from tidegate.driver.checkpoint.checkpoint import Checkpoint
from tidegate.driver.checkpoint.commit import BatchWork, next_manifest
from tidegate.driver.checkpoint.recovery import check_finished
from tidegate.driver.checkpoint.replay import Replay, hopeless
from tidegate.driver.connection import Connection
from tidegate.driver.inputs import Inputs
from tidegate.driver.metric.metric import CommittedBatch
from tidegate.driver.options import RunOptions
from tidegate.driver.outlet import Outlets
from tidegate.driver.subqueries import Subqueries
from tidegate.driver.tables import Tables
from tidegate.errors import GateError, MemoryExceededError, SourceError
from tidegate.execute.exchange import clear_all
from tidegate.execute.runner import Draft, JobRunner
from tidegate.execute.within_memory import exceeded
from tidegate.gate.cut import Cut
from tidegate.plan.physical import Plan
from tidegate.sink.protocol import Sink
from tidegate.spans import Spans
from tidegate.state.manifest import Manifest
from tidegate.state.store import Store
from tidegate.storage.durable import Due, gathering

_log = logging.getLogger(__name__)

StepSeen = Callable[[str, int], None]
"""Called with the name of each step that a batch reaches, and the number of the batch."""

RowsSeen = Callable[[str | None, pa.Table], None]
"""Called for each output when a batch is published, with its name and its rows; if tasks have
written the rows, with only the last of them."""

Start = Callable[[Sequence[Draft], Spans], JobRunner]
"""Returns the runner, ready for these jobs. Called after all checks that can refuse the batch."""


@dataclass(frozen=True)
class PreparedBatch:
    """A batch that was run and staged. It counts once `due` is synced and `manifest` committed."""

    manifest: Manifest
    work: BatchWork
    due: Due
    spans: Spans


class Pipeline:
    """The inputs, subqueries, outlets and checkpoint of one run.

    Call `recover` and `open` once, then `prepare`, `commit` and `publish` for each batch, and
    `close` at the end. With `until` it runs committed batches again, up to that manifest: call
    `repeat` before each. A batch without it ends where it likes, and not beyond that manifest. For
    one thread, except where a part says otherwise.
    """

    def __init__(
        self,
        plan: Plan,
        store: Store,
        sinks: Mapping[str | None, Sink],
        options: RunOptions,
        clock: Clock,
        wake: Callable[[], None],
        seen: StepSeen,
        until: Manifest | None = None,
    ) -> None:
        self.plan = plan = fitting(plan, store)
        self.limit = options.limit_of(any(s.operator.traits.multiplies for s in plan.subqueries))
        self.cadence = RunCadence(options.trigger_s, self.limit)
        self.rows_at_hand = 0
        """The rows of the current batch; while it is being cut, the most it may have."""
        self._options = options
        self._store = store
        self._clock = clock
        self._seen = seen
        self._replay: Replay | None = None
        self._until = until
        """The last batch to run again; None for an ordinary run."""
        self.checkpoint = Checkpoint(store, options.keep_us)
        self.outlets = Outlets(plan, sinks, store)
        self.inputs = Inputs(plan, store, clock, options, wake)
        self.tables = Tables(plan, store, clock, options.table_limit)
        self.subqueries = Subqueries(plan, store, options, self.tables)
        self.manifest = self.subqueries.first_manifest()
        """The newest committed manifest; its batch is -1 before the first commit."""
        limits = [plan.subqueries[t.edge.subquery].operator.traits.limit for t in plan.targets]
        self._most_rows = None if None in limits else sum(n for n in limits if n is not None)

    def recover(self, on_close: Callable[[Callable[[], None]], None]) -> Manifest:
        """Enter the checkpoint, publish its newest batch again, and return its manifest.

        If output of that batch was lost, the run goes back to the state before it, and the batch
        runs again.
        """
        self.subqueries.check_options()
        first = self.manifest
        newest = self.checkpoint.enter(self.outlets, self.plan, self._options, first)
        clear_all(self._store, self.checkpoint.alone)
        on_close(lambda: clear_all(self._store))  # what a failed batch left
        self.manifest = newest
        if newest.batch < 0:
            if self._until is not None:
                self.inputs.end_at(newest, self._until)
            return newest
        # The crash may have come between the commit and the end of publish. The batch counts, so
        # its rows must become visible; publishing is idempotent.
        lost = self.outlets.publish_again(newest)
        query = self.checkpoint.query
        assert query is not None
        if not lost:
            query.tell(newest)
            if self._until is None:
                self.inputs.restore(newest)
            else:
                self.inputs.end_at(newest, self._until)
            return newest
        query.refuse_replay(newest, next(iter(lost.values())))
        self._replay = replay = Replay.of(newest, lost, self._store, first)
        clear_all(self._store)  # an earlier try to run it again may have left files
        self.inputs.rewind(replay.before, newest)
        self.inputs.repeat(replay.before, newest)
        self.manifest = replay.before
        return newest

    def open(self, connections: Sequence[Connection]) -> None:
        """Connect the sources; after it the first batch may be prepared."""
        with self._told_of_loss():
            self.inputs.let_in(connections)
        if self.manifest.finished:
            check_finished(self._store.location, self.inputs.new_sources())
        self.checkpoint.clean()
        newest = self.manifest if self._replay is None else self._replay.after
        if self._until is None:
            self.tables.enter(newest)
        self.subqueries.enter(newest, again=self._replay is not None)

    def repeat(self, after: Manifest) -> None:
        """Make the next batch repeat a committed one: its cut, mappings, tables and shedding."""
        self._replay = Replay(self.manifest, after, frozenset(t.name for t in self.plan.targets))
        self.inputs.repeat(self.manifest, after)
        self.tables.repeat(after)

    def enough(self) -> bool:
        """Whether every output has all rows that its LIMIT allows; then nothing more is read."""
        if self._most_rows is None:
            return False
        return self.manifest.counters.get("rows_out", 0) >= self._most_rows

    def prepare(
        self,
        spans: Spans,
        start: Start,
        policy: Callable[[], Mapping[str, Any]],
    ) -> PreparedBatch | None:
        """Cut, run and stage the next batch; cut it smaller if it does not fit into memory.

        Return None if there is nothing to do now. `policy` gives the policy's part of the manifest.
        """
        batch = self.manifest.batch + 1
        with gathering() as due:
            work = self._fitting(batch, spans, start, due)
            if work is None:
                return None
            self.limit.fitted(work.cut.rows, work.rows_made)
            sources, files = self.inputs.saved(batch)
            manifest = next_manifest(
                self.manifest,
                work,
                self.subqueries,
                sources,
                files,
                streams=[stream.name for stream in self.plan.streams],
                policy=policy(),
                tables=self.tables,
                shedding=self.subqueries.shedding.recorded(),
                at_us=self._clock.utc_us() if self._options.keep_us is not None else 0,
            )
            manifest = self.checkpoint.completed(self.manifest, manifest)
            spans.mark("manifest")
            return PreparedBatch(manifest, work, due, spans)

    def commit(self, prepared: PreparedBatch) -> CommittedBatch:
        """Write the manifest of a batch: the commit."""
        replaced, self._replay = self._replay, None
        self.checkpoint.commit(prepared.manifest, prepared.due)
        return CommittedBatch(
            previous=self.manifest,
            manifest=prepared.manifest,
            plan=self.plan,
            work=prepared.work,
            spans=prepared.spans,
            committed_at=self._clock.now(),
            sync_s=prepared.due.waited_s,
            replaced=None if replaced is None or replaced.reason is None else replaced.after,
        )

    def publish(self, batch: CommittedBatch, rows_seen: RowsSeen) -> None:
        """Make the committed batch visible in the sinks, and pass its rows to `rows_seen`."""
        self.outlets.publish(batch.manifest)
        for target, output in zip(self.plan.targets, batch.work.staged.outputs, strict=True):
            rows_seen(target.name, output.rows)

    def close(self) -> None:
        """Release state, sinks and sources. Close the runner first: its tasks may use them."""
        with ExitStack() as closing:  # callbacks run in reverse order
            closing.callback(self.inputs.close)
            closing.callback(self.outlets.close)
            closing.callback(self.subqueries.close)

    def _fitting(self, batch: int, spans: Spans, start: Start, due: Due) -> BatchWork | None:
        while True:
            try:
                return self._tried(batch, spans, start, due)
            except (MemoryError, MemoryExceededError) as error:
                self._cut_smaller(batch, error)

    def _tried(self, batch: int, spans: Spans, start: Start, due: Due) -> BatchWork | None:
        """Try a batch once; None if there is nothing to do now."""
        self._seen("before gate", batch)
        self.rows_at_hand = self.limit.rows
        with self._told_of_loss():
            cut = self.inputs.cut(self.limit.rows, spans.started)
        if cut is None:
            return None
        self.rows_at_hand = cut.rows
        if self._replay is None:
            self.tables.refresh(batch, cut.previous_us)
        spans.mark("gate")
        _log.debug("batch %d begins with %d rows", batch, cut.rows)
        self._seen("after gate", batch)
        self.outlets.begin(batch, self._replay)
        drafts, epochs = self.subqueries.drafts(
            self.manifest, cut, self.outlets, self._clock, self._replay
        )
        spans.mark("draft")
        runner = start(drafts, spans)
        ahead = partial(self._begin_next, runner, drafts) if self._is_followed(cut) else None
        ahead = ahead if runner.maps_ahead(drafts) else None
        with self.inputs.read_ahead(self.limit.rows, runner.until_at_work, ahead):
            jobs, outcomes = runner.run_batch(drafts)
            self._seen("after operate", batch)
            spans.mark("operate")
            written = [outcome for found in outcomes for outcome in found]
            for outcome in written:
                due.add_names(outcome.due)
            # Sync the files of the state while the rows are staged. Not if tasks wrote the output:
            # staging may rename those files, and no file may be renamed while it is synced.
            if all(o.receipts is None for o in written):
                due.begin()
            staged = self.outlets.stage(outcomes)
            runner.release(jobs)
            spans.mark("collect")
        spans.mark("gate")  # the wait for the next batch to be read or cut ahead
        epochs = self.subqueries.with_loaded(epochs, self.manifest, jobs, outcomes)
        return BatchWork(cut, jobs, outcomes, staged, epochs)

    def _is_followed(self, cut: Cut) -> bool:
        """Whether the batch after this cut may be cut while this one runs.

        This cut must have been as large as allowed. Then the next is likely to be full too, and
        cutting it early does not make it miss rows that arrive meanwhile. The limit of the next
        batch must be known already, and no trigger may say when it begins.
        """
        whole = cut.rows >= self.limit.rows and not cut.exhausted
        known = not self.limit.follows_output and not self.cadence.trigger_s
        return whole and known and self._replay is None and self._until is None

    def _begin_next(self, runner: JobRunner, drafts: Sequence[Draft], cut: Cut) -> None:
        """Start the map tasks of the next batch, of this cut, while the current one runs."""
        runner.map_ahead(self.subqueries.drafts_ahead(drafts, cut))

    def _cut_smaller(self, batch: int, error: MemoryError | MemoryExceededError) -> None:
        """Halve the limit after a batch did not fit into memory, and undo its cut.

        That is safe because nothing of the larger batch counts, and the output is the same for any
        cut. A batch that runs again cannot be smaller: it has to end where it ended before.
        """
        rows, said = self.rows_at_hand, getattr(error, "got", None) or str(error)
        where = getattr(error, "where", "the driver")
        if self._replay is not None or not self.limit.shrink(rows):
            raise exceeded(f"{where}, batch {batch} of {rows:,} rows", MemoryError(said)) from error
        self.inputs.undo()
        _log.warning(
            "batch %d: %d rows did not fit into memory (%s: %s); it is tried again with %d, as "
            "later ones are. Lower --batch-rows or raise --memory-limit to have it so from the "
            "start.",
            batch,
            rows,
            where,
            said or "none that is free",
            self.limit.rows,
        )

    @contextmanager
    def _told_of_loss(self) -> Iterator[None]:
        """If a batch must run again and its input is missing, also say why it must run again."""
        try:
            yield
        except (SourceError, GateError) as error:
            if self._replay is None or self._replay.reason is None:
                raise
            raise hopeless(self._replay.reason, error) from error
