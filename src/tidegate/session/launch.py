"""Makes a loop that is ready to run from a plan and options; used by Python and the command."""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike

from pyarrow.fs import FileSystem

from tidegate.clock import Clock
from tidegate.connector import Connector
from tidegate.driver.checkpoint.signing import ChainSigner, check_chain
from tidegate.driver.connection import Connection, connections_of
from tidegate.driver.journal.files import JournalFiles
from tidegate.driver.journal.picture import picture_of
from tidegate.driver.lineage.options import LineageOptions
from tidegate.driver.loop import Loop
from tidegate.driver.options import RunOptions
from tidegate.driver.pipeline import RowsSeen, StepSeen
from tidegate.driver.report.metrics import BatchReport
from tidegate.errors import OptionError
from tidegate.plan.physical import Plan
from tidegate.session.place import DeferredRunner, Place
from tidegate.session.recorded_script import RecordedScript, record_script
from tidegate.sink.protocol import Sink
from tidegate.state.manifest import Manifest
from tidegate.state.store import Store

_log = logging.getLogger(__name__)

Location = str | PathLike[str] | tuple[FileSystem, str]
"""The place of a checkpoint: a folder, a URI of `pyarrow.fs`, or a file system and a path."""


def _check_checkpoint(checkpoint: Location | None, options: RunOptions) -> None:
    if checkpoint == "":
        must = "must say where the state is kept"
        raise OptionError("--checkpoint", must, "''", "Give a folder, or leave it out.")
    if options.start_empty and checkpoint is None:
        remedy = "Leave it out: without a checkpoint everything begins empty."
        raise OptionError("--start-empty", "needs a checkpoint", "none", remedy)


def prepare(
    plan: Plan,
    place: Place,
    sinks: Mapping[str | None, Sink],
    options: RunOptions,
    checkpoint: Location | None = None,
    connectors: Mapping[str, Connector] | None = None,
    clock: Clock | None = None,
    observer: StepSeen | None = None,
    on_batch: Callable[[BatchReport], None] | None = None,
    on_rows: RowsSeen | None = None,
    lineage: LineageOptions | None = None,
    until: Manifest | None = None,
    connections: Sequence[Connection] | None = None,
    script: RecordedScript | None = None,
) -> Loop:
    """Open sources, checkpoint and sinks, and make the loop; reads no input yet.

    - `sinks` are by the names of the outputs; the name of an only output is None.
    - `connectors` are those of sources without a URI, by their names in the plan. `connections`
      replace all sources of the plan.
    - Without a `checkpoint` the state is in a temporary folder, which is deleted with the loop.
    - A loop with `until` only runs committed batches again, up to that manifest.
    - `script` is recorded in the checkpoint when the loop begins to run.
    """
    _check_checkpoint(checkpoint, options)
    if place.in_vain:
        _log.warning("%s is for Spark: with --master none it changes nothing", place.in_vain)
    for subquery in plan.subqueries:
        for warning in subquery.operator.traits.warnings:
            _log.warning("%s: %s", subquery.name, warning)
    if connections is None:
        connections = connections_of(plan.streams, connectors or {}, options)
    place.check()  # before the checkpoint is made: Spark itself starts with the first batch
    options = replace(
        options,
        default_instances=place.default_instances(),
        one_host=place.on_one_host,
        slots=place.cores(),
        memory=options.memory.among(place.cores()),
    )
    temporary = tempfile.mkdtemp(prefix="tidegate-") if checkpoint is None else None
    try:
        receiver = None if lineage is None else lineage.receiver()
        store = Store.open(checkpoint or str(temporary))
        before = None if lineage is None else lineage.run_before(store)
        if options.sign is not None:
            check_chain(store, options.sign)
        place.check_checkpoint(store.location, store.files.local)
        loop = Loop(
            plan,
            connections,
            store,
            sinks,
            DeferredRunner(place.titled(title_of(plan))),
            options,
            clock=clock,
            observer=observer,
            on_batch=on_batch,
            on_rows=on_rows,
            until=until,
        )
    except BaseException:
        _discard(temporary)
        raise
    loop.on_close(lambda: _discard(temporary))
    if checkpoint is not None and until is None:
        files = JournalFiles(store.files)
        loop.books.journal.keep(files, partial(picture_of, loop))
        loop.books.requests.keep(files)
        if script is not None:
            finished = loop.manifest.finished
            loop.on_run(partial(record_script, store, plan.fingerprint, script, finished=finished))
    if options.sign is not None:
        loop.books.observe(ChainSigner(store, options.sign, loop.manifest))
    if lineage is not None and receiver is not None:
        from tidegate.session.lineage import observe_lineage  # needs a client of HTTP

        observe_lineage(loop, lineage, receiver, sinks, before)
    return loop


def title_of(plan: Plan) -> str:
    """The title of a query without a file: its outputs, or its operators."""
    named = [target.name for target in plan.targets if target.name is not None]
    return ", ".join(named or plan.names.values())


def _discard(folder: str | None) -> None:
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
