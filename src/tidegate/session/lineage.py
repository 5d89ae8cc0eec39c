"""Has the lineage of a run told: gathers what it reads and writes, and observes its loop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tidegate import schedule
from tidegate.driver.lineage.dataset import dataset_of
from tidegate.driver.lineage.delivery import EventDelivery, Receiver
from tidegate.driver.lineage.event import DatasetUse, JobName, LineageRun, run_id
from tidegate.driver.lineage.observer import LineageObserver
from tidegate.driver.lineage.options import LineageOptions
from tidegate.driver.loop import Loop
from tidegate.plan.physical import Plan
from tidegate.sink.protocol import Sink
from tidegate.source.backfill.address import places_of


def observe_lineage(
    loop: Loop,
    options: LineageOptions,
    receiver: Receiver,
    sinks: Mapping[str | None, Sink],
    before: str | None,
) -> None:
    """Post the events of a loop that is about to run; of a finished one there is nothing to tell.

    `before` is the id of the run that it continues.
    """
    manifest = loop.manifest
    if manifest.finished:
        return
    checkpoint = {
        "location": loop.store.location,
        "owner": manifest.owner,
        "firstBatch": manifest.batch + 1,
    }
    run = LineageRun(
        id=run_id(loop.store.location, manifest),
        job=JobName.of_environment(options.job),
        inputs=list(_inputs(loop.plan, manifest.sources)),
        outputs=_outputs(loop.plan, sinks),
        sql=options.sql,
        streaming=loop.options.follow,
        checkpoint=checkpoint if before is None else {**checkpoint, "previousRunId": before},
    )
    clock = schedule.current().clock
    delivery = EventDelivery(receiver, clock)
    loop.books.observe(LineageObserver(run, delivery, loop.summary, clock, options.every_s))


def _inputs(plan: Plan, joined: Iterable[Mapping[str, Any]]) -> Iterable[DatasetUse]:
    """Every dataset once, also where several streams or tables read it."""
    found: dict[object, DatasetUse] = {}
    read = [
        (place, stream.schema)
        for stream in plan.streams
        for uri in stream.uris
        for place in places_of(uri)
    ]
    read += [
        (source["uri"], plan.streams[source["stream"]].schema)
        for source in joined
        if source.get("uri") is not None
    ]
    read += [(uri, table.schema) for table in plan.tables for uri in table.uris]
    for uri, schema in read:
        dataset = dataset_of(uri)
        if dataset is not None:
            found.setdefault(dataset, DatasetUse(dataset, schema))
    return found.values()


def _outputs(plan: Plan, sinks: Mapping[str | None, Sink]) -> dict[str, DatasetUse]:
    """The outputs that others can read, by name."""
    found = {}
    for target in plan.targets:
        uri = sinks[target.name].uri
        dataset = None if uri is None else dataset_of(uri)
        if dataset is not None:
            found[target.name or ""] = DatasetUse(dataset, plan.port(target.edge).schema)
    return found
