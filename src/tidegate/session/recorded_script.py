"""Records in a checkpoint what builds the query of a run again: its script and its options.

Commands that look into a checkpoint then need nothing else. There is a file for each query that a
checkpoint has had, ``script/FINGERPRINT.json``, written when a run begins, before its first batch;
of several runs of one query the newest counts. No state needs it: where it is missing, a command
has to be given the query.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, chdir, nullcontext
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from typing import Any

from tidegate.errors import CheckpointError, OptionError, StateError, near
from tidegate.plan.options import JoinOptions, PlanOptions
from tidegate.query.node.node import Input
from tidegate.query.output import Output
from tidegate.remote.scheme import scheme_of
from tidegate.session.input.sources import Sources
from tidegate.session.script import streams_of
from tidegate.source.backfill.address import is_backfill
from tidegate.sql.bind import bind
from tidegate.sql.script import read_script
from tidegate.state.seal import seal, unseal
from tidegate.state.store import Store

FOLDER = "script"

_GIVE = "Give QUERY.sql beside the checkpoint, with --stream and --time as the run had them."
_OF_PROGRAM = (
    "Give QUERY.sql that asks the same beside the checkpoint, with --stream NAME=URI; or ask in "
    "the program, with session.replay(...) and query.why(...)."
)


@dataclass(frozen=True)
class RecordedScript:
    """A query as text, with what else decides about its rows; all members are JSON values.

    `streams` and `times` are those of options, by name, and `given` the streams that a program gave
    by name. Paths are as they were written, relative to `folder`, since sources go by them in the
    state. `outputs` has, of each output, its number in the script and its name; none of them are
    those of the script. One without `sql` is of a program whose query cannot be recorded, for the
    `reason`.
    """

    sql: str = ""
    reason: str = ""
    folder: str = field(default_factory=os.getcwd)
    streams: Mapping[str, list[str]] = field(default_factory=dict)
    times: Mapping[str, str] = field(default_factory=dict)
    given: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    outputs: Sequence[Sequence[Any]] = ()
    planning: Mapping[str, Any] = field(default_factory=dict)

    def planned_with(self, options: PlanOptions) -> RecordedScript:
        """The same with the options that the query is planned with; buckets are in meta.json."""
        said = asdict(options)
        del said["join"]["buckets"]
        return replace(self, planning=said)

    def with_sources(
        self, streams: Mapping[str, list[str]], times: Mapping[str, str]
    ) -> RecordedScript:
        """The same over other sources; their paths count from the folder at hand."""
        self._check_names(streams)
        here = {name: [self._from_here(uri) for uri in uris] for name, uris in streams.items()}
        return replace(self, streams=_over(self.streams, here), times=_over(self.times, times))

    def in_folder(self) -> AbstractContextManager[Any]:
        """Work in the folder that the run began in, as long as it is there."""
        return chdir(self.folder) if self._is_elsewhere else nullcontext()

    def build(self) -> tuple[Output, ...]:
        """The outputs of the query, over its sources as they are now."""
        script = read_script(self.sql)
        uris, times, given = dict(self.streams), dict(self.times), {}
        for name, said in self.given.items():
            idle_us = said["idle_us"]
            given[name] = Input(
                Sources().define(
                    uris.pop(name, said["uris"]),
                    times.pop(name, said["time"]),
                    said["name"],
                    timedelta(microseconds=said["disorder_us"]),
                    None if idle_us is None else timedelta(microseconds=idle_us),
                )
            )
        found = bind(script, streams_of(script, given, uris, times))
        chosen = self.outputs or [(place, output.name) for place, output in enumerate(found)]
        return tuple(replace(found[place], name=name) for place, name in chosen)

    @property
    def plan_options(self) -> PlanOptions:
        """How the run had the query planned."""
        said = dict(self.planning)
        return PlanOptions(JoinOptions(**said.pop("join", {})), **said)

    def _check_names(self, streams: Iterable[str]) -> None:
        """Refuse streams that the query does not have: nothing would read them."""
        script = read_script(self.sql)
        made = [said.name for of in (script.creates, script.tables) for said in of]
        known = list(dict.fromkeys([*made, *self.streams, *self.given]))
        for name in streams:
            if name.lower() not in [one.lower() for one in known]:
                must = "must name a stream of the recorded query"
                raise OptionError("--stream", must, name, near(name, known))

    @property
    def _is_elsewhere(self) -> bool:
        folder = self.folder
        return os.path.isdir(folder) and not os.path.samefile(folder, os.curdir)

    def _from_here(self, uri: str) -> str:
        plain = scheme_of(uri) is None and not is_backfill(uri)
        return os.path.abspath(uri) if plain and self._is_elsewhere else uri


def record_script(
    store: Store, fingerprint: str, script: RecordedScript, *, finished: bool = False
) -> None:
    """Record the script of a run that begins; one that has `finished` before adds nothing."""
    try:
        there = _read(store, fingerprint)
    except StateError:  # damaged, and no state needs it
        there = None
    usable = there is not None and bool(there.sql)
    if there == script or (usable and (finished or not script.sql)):
        return
    store.write(_name(fingerprint), seal(_as_dict(script)).encode())


def recorded_script(store: Store, fingerprint: str | None) -> RecordedScript:
    """The script of a query that a checkpoint has had; a CheckpointError that says what to give."""
    try:
        found = None if fingerprint is None else _read(store, fingerprint)
    except StateError as error:
        raise StateError(error.where, error.requirement, error.got, _GIVE) from error
    requirement = "must have recorded the query, for a command that is not given one"
    if found is None:
        got = "none: an earlier version recorded no queries"
        raise CheckpointError(store.location, requirement, got, _GIVE)
    if not found.sql:
        got = f"a query of a program, {found.reason}"
        raise CheckpointError(store.location, requirement, got, _OF_PROGRAM)
    return found


def _over(recorded: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """What is recorded by name, replaced by what is given; SQL does not tell cases apart."""
    spelt = {name.lower(): name for name in recorded}
    return {**recorded, **{spelt.get(name.lower(), name): value for name, value in given.items()}}


def _name(fingerprint: str) -> str:
    return f"{FOLDER}/{fingerprint}.json"


def _as_dict(script: RecordedScript) -> dict[str, Any]:
    return {name: value for name, value in asdict(script).items() if value}


def _read(store: Store, fingerprint: str) -> RecordedScript | None:
    name = _name(fingerprint)
    if not store.has(name):
        return None
    return RecordedScript(**unseal(store.read(name), store.files.full(name)))
