"""Runs a new query in the shadow of a checkpoint, and switches the checkpoint over to it.

The shadow reads the sources itself, up to exactly where a batch of the checkpoint has ended: the
same tuples of each source, the same watermark. So its rows and those that were published are of the
same input, and its state can take the place of the other. The run at work is not disturbed.

Switching over is one step: a manifest, under the next number, that has the new query, its state,
and the outputs of the old one as they are. A crash before it leaves the old query, one after it the
new one. A run that commits meanwhile takes the number, and then nothing was switched.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import Any

from tidegate import schedule
from tidegate.batch import MIN_US
from tidegate.control.client import ask
from tidegate.control.message import STOP
from tidegate.driver.checkpoint.change import QUERY
from tidegate.driver.checkpoint.recovery import this_process
from tidegate.driver.metric.registry import COUNTERS
from tidegate.driver.options import RunOptions
from tidegate.errors import CheckpointError, OptionError, RunError, TidegateError
from tidegate.plan.compatibility.change import compared
from tidegate.plan.options import PlanOptions
from tidegate.plan.physical import Plan
from tidegate.query.output import Output
from tidegate.route import mapping as route
from tidegate.session.launch import prepare
from tidegate.session.place import NO_SPARK, Place
from tidegate.session.planning import plan_for
from tidegate.session.recorded_script import RecordedScript, record_script
from tidegate.session.verification.compare import (
    ComparedOutput,
    ComparedSide,
    compare_outputs,
    output_pairs,
)
from tidegate.session.verification.rerun import RecordedRun
from tidegate.sink.folder.files import FileSink
from tidegate.sink.folder.verify import found
from tidegate.sink.folder.written_rows import EventSpan, rows_of
from tidegate.state.identity import IDENTITY, new_identity
from tidegate.state.lock import Lock
from tidegate.state.manifest import Manifest
from tidegate.state.name import manifest_name
from tidegate.state.store import Store
from tidegate.storage import disk
from tidegate.version import __version__

_OWNERS = 1_000_000
"""More runs than a checkpoint ever has: names with a greater owner are of no run of it."""

_STOP_S = 300.0
"""How long a batch that runs may take until the checkpoint is free."""

_LOOK_S = 0.05


@dataclass(frozen=True)
class ShadowFacts:
    """What a shadow has shown: up to which batch, and the outputs that were compared.

    `first` is the first batch whose rows were compared; None where none could be, for `reason`.
    """

    batch: int
    frontier_us: int
    first: int | None
    reason: str
    outputs: tuple[ComparedOutput, ...]
    switched: bool = False

    @property
    def equal(self) -> bool:
        return self.first is not None and all(output.equal for output in self.outputs)

    def as_dict(self) -> dict[str, Any]:
        return {
            "equal": self.equal,
            "batch": self.batch,
            "frontier_us": self.frontier_us,
            "first_compared": self.first,
            "not_compared": self.reason or None,
            "switched": self.switched,
            "outputs": [output.as_dict() for output in self.outputs],
        }


class Shadow:
    """A new query beside the run of a checkpoint, in a scratch folder of the caller.

    `begin` is a folder in which `switch_over` has kept a state of this query; without, the shadow
    begins with the sources. It takes their tuples in batches within the `limits`.
    """

    def __init__(
        self,
        checkpoint: str,
        old: Sequence[Output],
        new: Sequence[Output],
        planning: PlanOptions,
        scratch: str,
        limits: RunOptions,
        begin: str | None = None,
    ) -> None:
        self.record = record = RecordedRun(checkpoint)
        record.check_digests()
        self._place = Place.at(NO_SPARK)
        joins = replace(planning.join, buckets=record.meta["buckets"])
        planning = replace(planning, join=joins)
        self._old = plan_for(old, self._place, planning)
        self.plan = plan_for(new, self._place, planning)
        _check_fits(record, self._old, self.plan)
        self._base = (record.newest.owner + 1) * _OWNERS
        buckets = record.meta["buckets"]
        self._options = replace(limits, buckets=buckets, available_now=True, default_instances=1)
        self._scratch = scratch
        self.store = Store.open(os.path.join(scratch, "checkpoint"))
        names = [target.name for target in self.plan.targets]
        self._folders = {
            name: os.path.join(scratch, "out", str(number)) for number, name in enumerate(names)
        }
        if begin is None:
            self._begin_at_sources()
        else:
            self._begin_with(Store.open(begin))
        self._first = self.manifest.batch + 1

    @property
    def manifest(self) -> Manifest:
        """Its newest state."""
        return self.store.manifest(self.store.numbers()[-1])

    def run_to(self, goal: Manifest) -> None:
        """Go on to exactly where a batch of the checkpoint has ended."""
        now = self.manifest
        if now.frontier_us == goal.frontier_us and _rows_in(now) == _rows_in(goal):
            return
        sinks = {name: FileSink(folder) for name, folder in self._folders.items()}
        location = self.store.location
        for name in goal.files:  # names of sources that were listed, by which they are found again
            if self.record.store.has(name) and not self.store.has(name):
                self.store.write(name, self.record.store.read(name))
        loop = prepare(self.plan, self._place, sinks, self._options, location, until=goal)
        try:
            tables = loop.pipeline.tables
            tables.enter(loop.manifest)
            while _rows_in(goal) - _rows_in(loop.manifest) > loop.pipeline.limit.rows:
                if loop.step() is None:
                    break
            # What the goal says of sources, and of all else what this query has.
            loop.repeat(
                replace(
                    loop.manifest,
                    batch=loop.manifest.batch + 1,
                    sources=goal.sources,
                    frontier_us=goal.frontier_us,
                    finished=goal.finished,
                    counters={"rows_in": _rows_in(goal)},
                    tables=tables.recorded(),
                )
            )
        finally:
            loop.close()

    def compare(self, goal: Manifest, most: int) -> ShadowFacts:
        """Its rows beside those that the checkpoint has published, up to the goal."""
        changes = [change["batch"] for change in self.record.newest.changes]
        reason = ""
        if any(self._first < batch <= goal.batch for batch in changes):
            reason = f"batches before {changes[-1]} were made by another query than the newest"
        outputs: tuple[ComparedOutput, ...] = ()
        if not reason:
            pairs = output_pairs(self._old, self.plan)
            outputs = tuple(self._compared(a, b, goal, most) for a, b in pairs)
        first = None if reason else self._first
        return ShadowFacts(goal.batch, goal.frontier_us, first, reason, outputs)

    def _compared(self, a: Any, b: Any, goal: Manifest, most: int) -> ComparedOutput:
        uri = goal.places.get(a.name or "")
        if uri is None:
            got = "another kind of output"
            remedy = "Compare two .sql files over the same input."
            raise CheckpointError(self.record.store.location, "must have files", got, remedy)
        old = rows_of(uri, EventSpan(), may_be_empty=True, after=self._first - 1, upto=goal.batch)
        new = rows_of(self._folders[b.name], EventSpan(), may_be_empty=True)
        return compare_outputs(
            ComparedSide(self._old, a, old), ComparedSide(self.plan, b, new), most
        )

    def _begin_at_sources(self) -> None:
        """A checkpoint before its first batch, whose files have names that no other run uses."""
        buckets = self.record.meta["buckets"]
        mapping = RunOptions(buckets=buckets).first_mapping()
        standing = dict.fromkeys(self.plan.names, route.recorded(mapping))
        self._write(Manifest(-1, standing, MIN_US, owner=self._base))

    def _begin_with(self, kept: Store) -> None:
        meta, newest = kept.meta(), None if kept.meta() is None else kept.latest()
        if meta is None or newest is None or newest.batch > self.record.newest.batch:
            got = "none" if newest is None else f"one after batch {newest.batch}"
            requirement = "must be a state that --cutover has kept of this checkpoint"
            raise CheckpointError(kept.location, requirement, got, "Leave --begin out.")
        if meta.get("of") != self.record.meta.get(IDENTITY) or newest.query != _recorded(self.plan):
            got = "that of another checkpoint or query"
            raise CheckpointError(kept.location, "must be of this query", got, "Leave --begin out.")
        # What it has published is not here, and is not looked for.
        nothing: dict[str, Any] = dict.fromkeys(newest.outputs, ())
        written: dict[str, list[int]] = {name: [] for name in newest.outputs}
        state = replace(
            newest, owner=self._base, outputs=nothing, written=written, places={}, signed=False
        )
        self._write(state, kept)

    def _write(self, first: Manifest, source: Store | None = None) -> None:
        plan, buckets = self.plan, self.record.meta["buckets"]
        meta = {"fingerprint": plan.fingerprint, "buckets": buckets, "version": __version__}
        self.store.create({**meta, IDENTITY: new_identity(), QUERY: _recorded(plan)})
        if source is not None:
            _copy(source, first, self.store)
        self.store.write(manifest_name(first.number), first.to_json().encode())


def shadowed(shadow: Shadow, most: int) -> ShadowFacts:
    """Run a shadow to the newest batch of its checkpoint, and compare."""
    newest = shadow.record.newest
    shadow.run_to(newest)
    return shadow.compare(newest, most)


def switch_over(shadow: Shadow, script: RecordedScript, keep: str, most: int) -> ShadowFacts:
    """Let the checkpoint go on with the new query, from the batch after its newest one on.

    First the shadow catches up beside the run; then the run is stopped, and the shadow does the
    rest. The state of the old query is kept in the folder `keep`, with which a shadow can begin.
    """
    store = shadow.record.store
    kept = _new_store(keep)
    if shadow.record.fingerprint == shadow.plan.fingerprint:
        got, remedy = "the query that it has", "There is nothing to switch: give another NEW.sql."
        raise OptionError("--cutover", "must be to another query", got, remedy)
    shadow.run_to(shadow.record.newest)
    with _alone(store):
        newest = store.latest()
        assert newest is not None, "it had batches"
        _check_published(store, newest)
        shadow.run_to(newest)
        facts = shadow.compare(newest, most)
        meta = {**(store.meta() or {}), "of": (store.meta() or {}).get(IDENTITY)}
        old = newest.query or meta.get(QUERY, {})
        kept.create({**meta, IDENTITY: new_identity()})
        _copy(store, newest, kept)
        state = replace(newest, query=old)
        kept.write(manifest_name(state.number), state.to_json().encode())
        made = shadow.manifest
        _copy(shadow.store, made, store)
        record_script(store, shadow.plan.fingerprint, script)
        entry = _entry(shadow, newest, made)
        if not store.files.put_new(manifest_name(entry.number), entry.to_json().encode()):
            raise _taken(store, "another run that has gone on meanwhile")
    return replace(facts, switched=True)


def _new_store(place: str) -> Store:
    """The store of a folder that is new or empty; an OptionError for another one."""
    store = Store.open(place)
    files = store.files
    if files.local:
        path = Path(files.full(""))
        taken = disk.exists(path) and (not disk.is_folder(path) or bool(disk.current().names(path)))
    else:
        taken = bool(files.list("", recursive=True))
    if taken:
        got, remedy = f"{place}, which has files", "Choose a folder that is new."
        raise OptionError("--cutover", "must be a new or an empty folder", got, remedy)
    return store


def _entry(shadow: Shadow, newest: Manifest, made: Manifest) -> Manifest:
    """The state of the shadow as that of the checkpoint, after the same batch."""
    old, new = shadow._old.recorded, shadow.plan.recorded
    assert old is not None, "it was looked at"
    assert new is not None, "it was looked at"
    parts = compared(old, new).parts
    text = "; ".join(["cut over", *(f"{name}: {', '.join(lines)}" for name, lines in parts)])
    change = {"batch": newest.batch + 1, "changed": text}
    return replace(
        made,
        batch=newest.batch,
        owner=newest.owner + 1,
        holder=this_process(),
        query=new.to_dict(),
        changes=(*newest.changes, change)[-20:],
        outputs=newest.outputs,
        written=newest.written,
        places=newest.places,
        digests=newest.digests,
        counters=_counters(newest, made),
        sides=newest.sides,
        at_us=newest.at_us,
        signed=newest.signed,
    )


def _counters(newest: Manifest, made: Manifest) -> dict[str, int]:
    """Totals of what the checkpoint has put out so far, and the counts that the state is of."""
    totals = {metric.name for metric in COUNTERS}
    own = {name: count for name, count in made.counters.items() if name not in totals}
    return own | {name: n for name, n in newest.counters.items() if name in totals}


@contextmanager
def _alone(store: Store) -> Iterator[None]:
    """Have a checkpoint alone; a run that is at work is asked to end after its batch."""
    lock, clock, never = Lock(store), schedule.current().clock, Event()
    try:
        lock.take()
    except CheckpointError:
        ask(store.location, {"command": STOP})
        until = clock.now() + _STOP_S
        while True:
            try:
                lock.take()
                break
            except CheckpointError as error:
                if clock.now() > until:
                    raise _taken(store, "a run that does not end") from error
                clock.wait(never, _LOOK_S)
    try:
        yield
    finally:
        lock.release()


def _check_fits(record: RecordedRun, old: Plan, new: Plan) -> None:
    """Refuse what cannot run in the shadow of a checkpoint to exactly the same rows."""
    where = record.store.location
    if record.newest.finished:
        got, remedy = "one that is finished", "Compare two .sql files over the same input."
        raise CheckpointError(where, "must have a run that goes on", got, remedy)
    if old.recorded is None or new.recorded is None:
        got = "a query whose state cannot be compared"
        raise CheckpointError(where, "must have recorded its query", got)
    both = [
        [(s.name, s.uris, s.time, s.disorder_us, s.idle_us) for s in plan.streams]
        for plan in (old, new)
    ]
    if both[0] != both[1]:
        names = [", ".join(f"{s.name} {list(s.uris)}" for s in p.streams) for p in (old, new)]
        got, remedy = f"{names[1]}, where it has {names[0]}", "Name the same sources in both."
        raise OptionError("compare", "must read the streams of the checkpoint", got, remedy)
    idle = any(stream.idle_us is not None for stream in old.streams)
    refreshed = any(table.refresh_us is not None for table in (*old.tables, *new.tables))
    shed = bool(record.newest.shedding)
    if idle or refreshed or shed:
        got = "rows that depend on the clock or a person"
        remedy = "Compare two .sql files over the same input."
        raise CheckpointError(where, "must follow from its input alone", got, remedy)
    if old.hold != new.hold:  # the checkpoint has tuples that wait, or it has none
        timed, other = "an aggregate over windows of time", "a query of another kind"
        sides = (other, timed) if old.hold else (timed, other)
        must = "must have a query of the same kind as NEW.sql"
        got = "{} there, and {} in NEW.sql".format(*sides)
        remedy = (
            "Compare two .sql files over the same input, or start NEW.sql with another "
            "--checkpoint and --out."
        )
        raise CheckpointError(where, must, got, remedy)
    missing = {t.name for t in old.targets} - {t.name for t in new.targets}
    if missing:
        got = f"none for {', '.join(str(name) for name in missing)}"
        raise OptionError("compare", "must have all outputs of the checkpoint", got, "Add them.")


def _check_published(store: Store, newest: Manifest) -> None:
    """The old query alone can make its newest batch again, so that has to be where it belongs."""
    for name, uri in newest.places.items():
        seen = found(uri, newest.batch, newest.outputs.get(name, ()))
        if not seen.published or seen.problems:
            got = ", ".join(seen.problems) or f"batch {newest.batch}, which is not"
            remedy = "Start the old query once more: it publishes the batch, or makes it again."
            raise RunError(store.location, "must have published its newest batch", got, remedy)


def _copy(source: Store, manifest: Manifest, target: Store) -> None:
    """Have all files that a state needs; names are never written over with something else."""
    source.check_present(manifest)
    for name in sorted(manifest.names()):
        if not target.has(name):
            target.write(name, source.read(name))


def _recorded(plan: Plan) -> dict[str, Any]:
    return {} if plan.recorded is None else plan.recorded.to_dict()


def _rows_in(manifest: Manifest) -> int:
    return manifest.counters.get("rows_in", 0)


def _taken(store: Store, got: str) -> TidegateError:
    remedy = "Nothing was switched, and the old query can go on. Try again."
    return RunError(store.location, "must be free to be switched over", got, remedy)
