"""Runs one committed batch again for debugging, and says whether it gives the same rows."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from tidegate.connector import Connector
from tidegate.errors import OptionError, SourceError
from tidegate.plan.options import PlanOptions
from tidegate.query.output import Output
from tidegate.session.verification.rerun import RecordedRun, RepeatedBatch
from tidegate.sink.folder.files import FileSink
from tidegate.sink.folder.written_rows import EventSpan, first_difference, rows_of
from tidegate.storage import disk


def replayed(
    checkpoint: str,
    outputs: Sequence[Output],
    batch: int,
    *,
    out: str | None = None,
    options: PlanOptions | None = None,
    connectors: Mapping[str, Connector] | None = None,
) -> dict[str, Any]:
    """One batch of a checkpoint as it was and as it is now, as plain data.

    It runs in this process, in the calling thread, with the state of that moment, and changes
    neither checkpoint nor output. `outputs` has by name how many rows the batch gives and gave,
    `again` whether they are the same, and the first that differs, where the output can be read.
    The rows go to the folder `out`, if one is given.
    """
    record = RecordedRun(checkpoint)
    record.check_repeatable(batch)
    plan = record.planned(outputs, options, connectors)
    with tempfile.TemporaryDirectory(prefix="tidegate-replay-") as scratch:
        folder = _free(out) if out is not None else os.path.join(scratch, "out")
        names = [target.name for target in plan.targets]
        folders = {name or "": os.path.join(folder, name or "") for name in names}
        sinks = {name: FileSink(folders[name or ""], sides=folder) for name in names}
        (repeated,) = record.repeated(
            plan, batch, batch, sinks=sinks, scratch=scratch, connectors=connectors
        )
        before = record.past.of(batch - 1).digests if batch else {}
        rows = {name: before.get(name, {"rows": 0})["rows"] for name in folders}
        found = {name: _compared(repeated, name, folders[name], rows[name]) for name in folders}
    return {
        "checkpoint": record.store.location,
        "batch": batch,
        "equal": all(of["again"] for of in found.values()),
        "rows_in": repeated.report.rows_in,
        "frontier_us": repeated.committed.frontier_us,
        "out": out,
        "outputs": found,
    }


def _free(out: str) -> str:
    """The folder to write to; an OptionError if it is not empty."""
    if disk.exists(out) and (not disk.is_folder(out) or disk.current().names(out)):
        remedy = "Choose a folder that is new: what a query has published is never written over."
        raise OptionError("--out", "must be a new or an empty folder", out, remedy)
    return out


def _compared(repeated: RepeatedBatch, name: str, folder: str, before: int) -> dict[str, Any]:
    """The row counts of one output; `before` is the count of all earlier batches."""
    committed, made = repeated.committed, repeated.made
    was, now = committed.digests.get(name), made.digests.get(name)
    again = was is not None and repeated.again(name)
    difference = None
    if not again and name in committed.places:
        rows = partial(
            rows_of,
            span=EventSpan(),
            may_be_empty=True,
            after=committed.batch - 1,
            upto=committed.batch,
        )
        try:
            at = first_difference(rows(committed.places[name]), rows(folder))
        except (SourceError, pa.ArrowException, OSError):  # gone, or not as they were written
            at = None
        if at is not None:
            difference = {"row": before + at[0], "recorded": at[1], "now": at[2]}
    return {
        "rows": None if now is None else now["rows"] - before,
        "rows_recorded": None if was is None else was["rows"] - before,
        "digest": None if now is None else now["digest"],
        "digest_recorded": None if was is None else was["digest"],
        "again": again,
        "difference": difference,
    }
