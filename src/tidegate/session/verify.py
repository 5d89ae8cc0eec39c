"""Runs a query once more, in one process and a scratch folder, and compares it with a checkpoint.

The rows of a query depend on its input and its code alone. So where the output is as it was
committed and the query is the one that was recorded, other rows mean that the input has changed.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from tidegate.driver.change import made_by
from tidegate.driver.options import RunOptions
from tidegate.errors import CheckpointError, SourceError
from tidegate.plan.options import PlanOptions
from tidegate.query.output import Output
from tidegate.session.launch import prepare
from tidegate.session.place import Place
from tidegate.session.planning import plan_for
from tidegate.sink.digest import Digest, row_hashes
from tidegate.sink.files import FileSink
from tidegate.sink.published import PARQUET_ONLY
from tidegate.sink.verify import past
from tidegate.sink.written_rows import EventSpan, first_difference, rows_of
from tidegate.state.manifest import Manifest
from tidegate.state.store import Store
from tidegate.version import __version__

INPUT, CODE, OUTPUT = "input", "code", "output"


def verified(checkpoint: str, outputs: Sequence[Output], span: EventSpan) -> dict[str, Any]:
    """What a query gives now beside what a checkpoint has recorded, as plain data.

    Reads the sources from their beginning. `changed` names the sides that changed, `outputs` has
    by name the digests, files that are not as published, and the first row that differs.
    """
    store = Store.open(checkpoint)
    manifest, meta = recorded_in(store)
    place = Place.at("none", None, "auto", {}, "auto")
    plan = plan_for(outputs, place, PlanOptions())
    old = made_by(meta, manifest)
    recorded = meta.get("fingerprint") if old is None else old.fingerprint
    options = RunOptions(available_now=not manifest.finished)
    with tempfile.TemporaryDirectory(prefix="tidegate-verify-") as scratch:
        names = [target.name for target in plan.targets]
        folders = {name or "": os.path.join(scratch, f"out-{i}") for i, name in enumerate(names)}
        sinks = {name: FileSink(folders[name or ""]) for name in names}
        prepare(plan, place, sinks, options).run()
        found = {
            name: _compared(manifest, name, folders.get(name), span) for name in manifest.digests
        }
    files = any(of["files"] for of in found.values())
    other = any(of["difference"] and not of["again"] for of in found.values())
    same_query = recorded == plan.fingerprint
    code = not same_query or (other and meta.get("version") != __version__)
    changed = [OUTPUT] * files + [CODE] * code + [INPUT] * (other and not code)
    return {
        "checkpoint": store.location,
        "equal": not changed,
        "changed": changed,
        "fingerprint": {"recorded": recorded, "now": plan.fingerprint},
        "version": {"recorded": meta.get("version"), "now": __version__},
        "outputs": found,
    }


def recorded_in(store: Store) -> tuple[Manifest, dict[str, Any]]:
    meta, kept = store.meta(), store.kept()
    if meta is None or not kept or kept[-1].batch < 0:
        got = "no checkpoint" if meta is None else "one without a batch"
        raise CheckpointError(store.location, "must be a checkpoint with batches", got)
    if not kept[-1].digests:
        got = "one that an earlier version began without digests"
        remedy = "Run the query with another --checkpoint to have them."
        raise CheckpointError(store.location, "must have recorded digests", got, remedy)
    if kept[-1].shedding.get("changes") or kept[-1].changes:
        of = "a query" if kept[-1].changes else "a share that is shed, and that"
        got = f"{of} changed while it ran"
        raise CheckpointError(store.location, "must follow from the input alone", got)
    return kept[-1], meta


def _compared(manifest: Manifest, name: str, folder: str | None, span: EventSpan) -> dict[str, Any]:
    """One output: its files by their ledgers, then its rows beside those that were made now.

    `again` says whether the query gives the recorded digest once more.
    """
    uri, recorded = manifest.places.get(name), manifest.digests[name]
    rows, made = recorded["rows"], Digest()
    files = [] if uri is None else list(past(uri, manifest.batch + 1).problems)
    for batch in () if folder is None else _first(folder, rows, EventSpan()):
        made = made.with_rows(row_hashes(batch)) if batch.num_rows else made
    again = made.to_dict() == recorded
    difference: dict[str, Any] | None = None
    readable = uri is not None and folder is not None
    if uri is not None and folder is not None:
        try:
            at = first_difference(_first(uri, rows, span), _first(folder, rows, span))
            if at is not None:
                difference = {"row": at[0], "recorded": at[1], "now": at[2]}
        except (SourceError, pa.ArrowException, OSError) as error:
            readable = False
            if getattr(error, "requirement", "") != PARQUET_ONLY and not files:
                files.append(str(error))
    if not readable and not again:
        difference = {"row": None, "recorded": recorded["digest"], "now": made.text}
    return {**recorded, "again": again, "files": files, "difference": difference}


def _first(place: str, rows: int, span: EventSpan) -> Iterator[pa.RecordBatch]:
    """The first rows of an output, as many as were committed, those of a span."""
    for batch in rows_of(place, EventSpan(), may_be_empty=True):
        some = batch.slice(0, rows)
        rows -= some.num_rows
        yield span.of(some, place)
