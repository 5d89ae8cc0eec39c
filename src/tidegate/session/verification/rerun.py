"""Runs committed batches again, in this process and beside their checkpoint.

Each begins with the state that the checkpoint has of the batch before it, and ends where it ended:
with the rows, the frontier, the versions of tables and the shares of its own manifest. So whatever
was decided by the wall clock or by a person is decided as it was. What runs has a checkpoint of its
own, in a scratch folder, in which the files of a state are links.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from tidegate.connector import Connector
from tidegate.driver.checkpoint.change import made_by
from tidegate.driver.options import RunOptions
from tidegate.driver.report.metrics import BatchReport
from tidegate.errors import CheckpointError
from tidegate.plan.options import PlanOptions
from tidegate.plan.physical import Plan
from tidegate.query.output import Output
from tidegate.session.launch import prepare
from tidegate.session.place import Place
from tidegate.session.planning import plan_for
from tidegate.session.recorded_script import RecordedScript, recorded_script
from tidegate.sink.protocol import Sink
from tidegate.state.archive.past import PastStates, batches_text
from tidegate.state.manifest import Manifest
from tidegate.state.name import META, manifest_name
from tidegate.state.store import Store


@dataclass(frozen=True)
class RepeatedBatch:
    """The manifests of a batch: as it was committed, and as it was made again."""

    committed: Manifest
    made: Manifest
    report: BatchReport

    def again(self, output: str) -> bool:
        """Whether an output has the same rows up to the end of the batch."""
        return self.committed.digests.get(output) == self.made.digests.get(output)


class RecordedRun:
    """A checkpoint's record of a query and its batches; it is only read."""

    def __init__(self, checkpoint: str) -> None:
        self.store = store = Store.open(checkpoint)
        self.past = PastStates(store)
        meta, kept = store.meta(), store.kept()
        if meta is None or not kept or kept[-1].batch < 0:
            got = "no checkpoint" if meta is None else "one without a batch"
            raise CheckpointError(store.location, "must be a checkpoint with batches", got)
        self.meta: Mapping[str, Any] = meta
        self.kept = kept
        self.newest = kept[-1]

    def newest_now(self) -> int:
        """The newest batch that is committed by now, by a run that goes on."""
        newest = self.store.latest()
        return self.newest.batch if newest is None else newest.batch

    @cached_property
    def fingerprint(self) -> str | None:
        """The fingerprint of the query that made the newest batch."""
        return self._made_by(self.newest)

    def script(self, batch: int | None = None) -> RecordedScript:
        """The script of the query that made a batch (default: the newest); an error without one."""
        manifest = self.newest if batch is None else self.past.of(batch)
        return recorded_script(self.store, self._made_by(manifest))

    def _made_by(self, manifest: Manifest) -> str | None:
        old = made_by(self.meta, manifest)
        found: str | None = self.meta.get("fingerprint") if old is None else old.fingerprint
        return found

    @property
    def was_changed(self) -> str | None:
        """What a person changed while the query ran, else None; a share alone is no change."""
        if self.newest.changes:
            return "a query"
        return "a share that is shed" if self.newest.shedding.get("changes") else None

    def check_digests(self) -> None:
        """Refuse a checkpoint that cannot be compared."""
        if not self.newest.digests:
            got = "one that an earlier version began without digests"
            remedy = "Run the query with another --checkpoint to have them."
            raise CheckpointError(self.store.location, "must have recorded digests", got, remedy)

    def check_unchanged(self) -> None:
        """Refuse a checkpoint whose rows do not depend on the input alone."""
        if self.was_changed is not None:
            got = f"{self.was_changed} that was changed while it ran"
            raise CheckpointError(self.store.location, "must follow from the input alone", got)

    def check_repeatable(self, batch: int) -> None:
        """Refuse a batch that cannot run again; the error lists those that can."""
        there = self.past.repeatable
        if self.newest.was_cut_over and batch == self.newest.batch:
            there.remove(batch)  # its state is that of the query that follows it
        if batch not in there:
            raise CheckpointError(
                self.store.location,
                f"must have the states before and after batch {batch} to run it again",
                f"those of {batches_text(there) or 'no batch'}",
                "Choose one of these; a run with --keep '24 hours' keeps those of that time.",
            )

    def planned(
        self,
        outputs: Sequence[Output],
        options: PlanOptions | None,
        connectors: Mapping[str, Connector] | None,
    ) -> Plan:
        """The plan of a query for this process, with the buckets of the checkpoint."""
        options = options or PlanOptions()
        joins = replace(options.join, buckets=self.meta["buckets"])
        place = Place.at("none", None, "auto", {}, "auto")
        return plan_for(outputs, place, replace(options, join=joins), connectors)

    def repeated(
        self,
        plan: Plan,
        first: int,
        last: int,
        *,
        sinks: Mapping[str | None, Sink],
        scratch: str,
        connectors: Mapping[str, Connector] | None = None,
    ) -> Iterator[RepeatedBatch]:
        """Run consecutive batches again, and yield each; writes to the scratch folder only."""
        self.check_repeatable(first)
        until = self.past.of(last)
        self._check_query(plan, self.past.of(first))
        beside = _Beside(self.store, os.path.join(scratch, "checkpoint"))
        beside.begin(self.past.of(first - 1) if first else None)
        beside.take(until.files)
        options = RunOptions(
            buckets=self.meta["buckets"],
            available_now=not self.newest.finished,
            start_empty=True,  # where a change asked for it, somebody said so then
        )
        loop = prepare(plan, Place("none"), sinks, options, beside.place, connectors, until=until)
        try:
            for after in self.past.course(first, last):
                beside.take(after.files)
                report = loop.repeat(after)
                yield RepeatedBatch(after, loop.manifest, report)
        finally:
            loop.close()

    def _check_query(self, plan: Plan, manifest: Manifest) -> None:
        if self._made_by(manifest) != plan.fingerprint:
            raise CheckpointError(
                self.store.location,
                f"batch {manifest.batch} must run with the query that made it",
                "another query",
                "Give that one, with the options it was planned with; `tidegate state` shows it.",
            )


class _Beside:
    """A checkpoint in a scratch folder that starts with the state of another after a batch."""

    def __init__(self, store: Store, place: str) -> None:
        self.place = place
        self._from, self._to = store, Store.open(place)

    def begin(self, before: Manifest | None) -> None:
        """Continue from a state; None is the state before the first batch."""
        self._to.make()
        self._to.write(META, self._from.read(META))
        if before is None:
            return
        self._from.check_present(before)
        self.take(before.names())
        # Nothing of its output is there, and nothing of it is to be published.
        written: dict[str, list[int]] = {name: [] for name in before.outputs}
        outputs: Mapping[str, tuple[Any, ...]] = dict.fromkeys(before.outputs, ())
        state = replace(before, outputs=outputs, written=written, places={}, signed=False)
        self._to.write(manifest_name(state.number), state.to_json().encode())

    def take(self, names: Iterable[str]) -> None:
        """Link files of the other checkpoint; copy them if it is on another file system."""
        for name in names:
            if not self._from.files.local:
                self._to.write(name, self._from.read(name))
                continue
            link = self._to.files.full(name)
            os.makedirs(os.path.dirname(link), exist_ok=True)
            if not os.path.lexists(link):
                os.symlink(self._from.files.full(name), link)
