"""From a plan and options to a loop that is ready to run; used by every surface."""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from os import PathLike

from pyarrow.fs import FileSystem

from tidegate.clock import Clock
from tidegate.driver.connection import connections_of
from tidegate.driver.loop import Loop, Observer, RowsSeen
from tidegate.driver.metrics import BatchReport
from tidegate.driver.options import RunOptions
from tidegate.plan.physical import Plan
from tidegate.session.place import DeferredExecutor, Place
from tidegate.sink.protocol import Sink
from tidegate.source.protocol import Connector
from tidegate.state.store import Store

_log = logging.getLogger(__name__)

Location = str | PathLike[str] | tuple[FileSystem, str]
"""Where a checkpoint is: a folder, a URI of `pyarrow.fs`, or a file system and a path in it."""


def prepare(
    plan: Plan,
    place: Place,
    sinks: Mapping[str | None, Sink],
    options: RunOptions,
    checkpoint: Location | None = None,
    connectors: Mapping[str, Connector] | None = None,
    clock: Clock | None = None,
    observer: Observer | None = None,
    on_batch: Callable[[BatchReport], None] | None = None,
    on_rows: RowsSeen | None = None,
) -> Loop:
    """Open sources, checkpoint and sinks, and make the loop; nothing has been read yet.

    `sinks` are by the names of the outputs, None for the only one. `connectors` are those of
    sources that are not named by a URI, by the name they have in the plan. Without a checkpoint the
    state lives in a temporary folder that ends with the loop.
    """
    for subquery in plan.subqueries:
        for warning in subquery.operator.warnings:
            _log.warning("%s: %s", subquery.name, warning)
    connections = connections_of(plan.streams, connectors or {}, options)
    place.check()  # else a checkpoint would be begun before the first batch asks for Spark
    options = replace(
        options,
        default_instances=place.default_instances(),
        one_host=place.on_one_host,
        slots=place.cores(),
        memory=options.memory.among(place.cores()),
    )
    temporary = tempfile.mkdtemp(prefix="tidegate-") if checkpoint is None else None
    try:
        store = Store.open(checkpoint or str(temporary))
        place.check_checkpoint(store.location, store.files.local)
        loop = Loop(
            plan,
            connections,
            store,
            sinks,
            DeferredExecutor(place.titled(_title(plan))),
            options,
            clock=clock,
            observer=observer,
            on_batch=on_batch,
            on_rows=on_rows,
        )
    except BaseException:
        _discard(temporary)
        raise
    loop.on_close(lambda: _discard(temporary))
    return loop


def _title(plan: Plan) -> str:
    """What a query is called that has no file: by its outputs, or by what it does."""
    named = [target.name for target in plan.targets if target.name is not None]
    return ", ".join(named or plan.names.values())


def _discard(folder: str | None) -> None:
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
