"""Runs a query again, in one process and a scratch folder, and compares it with its checkpoint.

The rows of a query depend on its input, its code, and sometimes on decisions of the wall clock or
of a person. Without such decisions the query runs from the beginning of its sources. With them its
recorded batches run again, as far back as their states are kept. If the published output and the
query are unchanged, different rows therefore mean that the input has changed.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.connector import Connector
from tidegate.driver.options import RunOptions
from tidegate.errors import OptionError, SourceError
from tidegate.plan.options import PlanOptions
from tidegate.plan.physical import Plan
from tidegate.query.output import Output
from tidegate.session.launch import prepare
from tidegate.session.place import Place
from tidegate.session.verification.rerun import RecordedRun
from tidegate.sink.digest.digest import Digest, row_hashes
from tidegate.sink.folder.files import FileSink
from tidegate.sink.folder.folder_reader import NONE, UNREADABLE
from tidegate.sink.folder.verify import past
from tidegate.sink.folder.written_rows import EventSpan, first_difference, rows_of
from tidegate.version import __version__

INPUT, CODE, OUTPUT = "input", "code", "output"

_SPAN = "--from, --to"


@dataclass
class _Made:
    """What a query emits now, by output: its files, and whether the digest is the recorded one.

    `after` is the batch before the first one that ran again.
    """

    folders: Mapping[str, str]
    again: dict[str, bool] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)
    differs: dict[str, int] = field(default_factory=dict)
    """The first batch that differs, if recorded batches ran again."""
    after: int = NONE
    rows_before: dict[str, int] = field(default_factory=dict)


def verified(
    checkpoint: str,
    outputs: Sequence[Output],
    span: EventSpan,
    retained: bool = False,
    options: PlanOptions | None = None,
    connectors: Mapping[str, Connector] | None = None,
) -> dict[str, Any]:
    """Run a query again and compare it with what its checkpoint recorded; returns plain data.

    Reads the sources from their beginning. If rows depend on more than the input, or with
    `retained`, it starts from the oldest state that is kept. In the result, `changed` names what
    has changed, `batches` are the recorded batches that ran again, and `outputs` has, by name, the
    digests, the files that differ from those published, and the first row that differs.
    """
    record = RecordedRun(checkpoint)
    record.check_digests()
    _check_span(record, span)
    plan = record.planned(outputs, options, connectors)
    same_query = record.fingerprint == plan.fingerprint
    by_record = retained or _depends_on_record(plan, record)
    with tempfile.TemporaryDirectory(prefix="tidegate-verify-") as scratch:
        names = [target.name for target in plan.targets]
        folders = {name or "": os.path.join(scratch, f"out-{i}") for i, name in enumerate(names)}
        sinks = {name: FileSink(folders[name or ""]) for name in names}
        if not by_record:
            limits = RunOptions(available_now=not record.newest.finished)
            prepare(plan, Place("none"), sinks, limits, connectors=connectors).run()
            made = _from_sources(record, folders)
        elif same_query:
            made = _from_record(record, plan, sinks, folders, scratch, connectors)
        else:
            made = _Made({}, dict.fromkeys(record.newest.digests, True))
        found = {name: _compared(record, name, made, span) for name in record.newest.digests}
    # Where the query gives the recorded rows again, an output that differs from them has changed.
    files = any(of["files"] or (of["difference"] and of["again"]) for of in found.values())
    other = any(of["difference"] and not of["again"] for of in found.values())
    code = not same_query or (other and record.meta.get("version") != __version__)
    changed = [OUTPUT] * files + [CODE] * code + [INPUT] * (other and not code)
    ran = by_record and same_query
    return {
        "checkpoint": record.store.location,
        "equal": not changed,
        "changed": changed,
        "batches": {"first": made.after + 1, "last": record.newest.batch} if ran else None,
        "fingerprint": {"recorded": record.fingerprint, "now": plan.fingerprint},
        "version": {"recorded": record.meta.get("version"), "now": __version__},
        "outputs": found,
    }


def _check_span(record: RecordedRun, span: EventSpan) -> None:
    """Refuse a span that cannot have rows, or whose rows cannot be read."""
    if span == EventSpan():
        return
    if span.from_us is not None and span.to_us is not None and span.from_us > span.to_us:
        raise OptionError(_SPAN, "must be a span of time", "one that ends before it begins")
    newest = record.newest
    elsewhere = [name or "the output" for name in newest.digests if name not in newest.places]
    if elsewhere:
        got = f"none of {', '.join(elsewhere)}"
        remedy = "Leave them out: then the digest of all rows is compared."
        raise OptionError(_SPAN, "must have files of all outputs to choose rows", got, remedy)


def _check_kept(uri: str, made: _Made, span: EventSpan) -> None:
    """Refuse a span with rows of batches whose states are not kept, so that they did not run."""
    if span == EventSpan() or made.after == NONE:
        return
    rows = rows_of(uri, span, may_be_empty=True, upto=made.after)
    if any(batch.num_rows for batch in rows):
        raise OptionError(
            _SPAN,
            f"must be of batches that run again, from {made.after + 1} on",
            "rows of earlier ones, whose states are not kept",
            "Choose a later --from, or use --keep in the next run.",
        )


def _depends_on_record(plan: Plan, record: RecordedRun) -> bool:
    """Whether rows depend on the wall clock or a person: then batches have to run as recorded."""
    idle = any(stream.idle_us is not None for stream in plan.streams)
    refreshed = any(table.refresh_us is not None for table in plan.tables)
    return idle or refreshed or record.was_changed is not None


def _from_sources(record: RecordedRun, folders: Mapping[str, str]) -> _Made:
    """After a run from the beginning: the digest of its rows, of as many as were committed.

    Of all of them where the checkpoint has finished: then there may be no more.
    """
    made = _Made(folders)
    for name, recorded in record.newest.digests.items():
        digest = Digest()
        rows = rows_of(folders[name], EventSpan(), may_be_empty=True) if name in folders else ()
        for batch in rows if record.newest.finished else _first(rows, recorded["rows"]):
            digest = digest.with_rows(row_hashes(batch)) if batch.num_rows else digest
        made.again[name], made.digests[name] = digest.to_dict() == recorded, digest.text
    return made


def _from_record(
    record: RecordedRun,
    plan: Plan,
    sinks: Mapping[str | None, FileSink],
    folders: Mapping[str, str],
    scratch: str,
    connectors: Mapping[str, Connector] | None,
) -> _Made:
    """Run the batches again that can, of the newest query, one after the other."""
    first = last = record.newest.batch
    there, changes = set(record.past.repeatable), record.newest.changes
    oldest = changes[-1]["batch"] if changes else 0
    while first > oldest and first - 1 in there:
        first -= 1
    made = _Made(folders, dict.fromkeys(record.newest.digests, True), after=first - 1)
    if record.newest.was_cut_over:  # and the new query has made nothing yet
        made.after, first = last, last + 1
    if first:
        digests = record.past.of(first - 1).digests
        made.rows_before = {name: of["rows"] for name, of in digests.items()}
    again = record.repeated(plan, first, last, sinks=sinks, scratch=scratch, connectors=connectors)
    for batch in again if first <= last else ():
        for name in made.again:
            made.digests[name] = batch.made.digests[name]["digest"]
            if not batch.again(name):
                made.again[name] = False
                made.differs.setdefault(name, batch.committed.batch)
    return made


def _compared(record: RecordedRun, name: str, made: _Made, span: EventSpan) -> dict[str, Any]:
    """One output: its files by their ledgers, then its rows beside those that were made now.

    `again` says whether the query gives the recorded digest once more.
    """
    newest, folder = record.newest, made.folders.get(name)
    uri, recorded = newest.places.get(name), newest.digests[name]
    files = [] if uri is None else _files(record, name, uri)
    difference: dict[str, Any] | None = None
    compared = [0]
    readable = uri is not None and folder is not None
    if uri is not None and folder is not None:
        before = made.rows_before.get(name, 0)
        count = recorded["rows"] - before
        most = None if newest.finished else count
        try:
            _check_kept(uri, made, span)
            was = _Side(uri, made.after, count, span)
            new = _Side(folder, made.after, most, span)
            at = first_difference(_counted(was.rows(), compared), new.rows())
            if at is not None:
                row = before + (new if at[1] is None else was).number(at[0])
                difference = {"row": row, "recorded": at[1], "now": at[2]}
        except (SourceError, pa.ArrowException, OSError) as error:
            readable = False
            files += _unread(error, files, span)
    if not readable and not made.again[name]:
        now = made.digests.get(name)
        difference = {"row": None, "recorded": recorded["digest"], "now": now}
    if difference is not None and name in made.differs:
        difference["batch"] = made.differs[name]
    facts = {"again": made.again[name], "files": files, "difference": difference}
    asked = {} if span == EventSpan() else {"compared": compared[0]}
    return {**recorded, **facts, **asked}


def _unread(error: Exception, files: Sequence[str], span: EventSpan) -> list[str]:
    """What to say of files that cannot be read, beside what is known of them."""
    if not isinstance(error, SourceError):
        return [] if files else [str(error)]
    if error.requirement == UNREADABLE:  # so they were written: the digest is compared alone
        if span != EventSpan():
            remedy = "Leave them out: then the digest of all rows is compared."
            raise OptionError(_SPAN, UNREADABLE, error.got, remedy) from error
        return []
    return [f"{error.where}: {error.got}"]


def _files(record: RecordedRun, name: str, uri: str) -> list[str]:
    """The files of an output that are not as published, are missing, or were added."""
    newest, rows = record.newest, int(record.newest.digests[name]["rows"])
    receipts = {m.batch: m.outputs[name] for m in record.kept if name in m.outputs}
    return list(past(uri, newest.batch, receipts, rows, record.newest_now).problems)


def _counted(batches: Iterable[pa.RecordBatch], rows: list[int]) -> Iterator[pa.RecordBatch]:
    """The batches, whose rows are counted in `rows[0]` as they are read."""
    for batch in batches:
        rows[0] += batch.num_rows
        yield batch


def _first(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """The first rows, as many as were committed."""
    for batch in batches:
        some = batch.slice(0, rows)
        rows -= some.num_rows
        yield some


@dataclass(frozen=True)
class _Side:
    """Rows of one side: at most `most` of those behind a batch, and of these those of a span."""

    place: str
    after: int
    most: int | None
    span: EventSpan

    def rows(self) -> Iterator[pa.RecordBatch]:
        """The rows of the span."""
        return (self.span.of(batch, self.place) for batch in self._all())

    def number(self, place: int) -> int:
        """The number of a row of the span among all rows; reads them again."""
        start = 0
        for batch in self._all():
            inside = np.flatnonzero(self.span.mask(batch, self.place))
            if place < len(inside):
                return start + int(inside[place])
            start, place = start + batch.num_rows, place - len(inside)
        return start + place

    def _all(self) -> Iterator[pa.RecordBatch]:
        rows = rows_of(self.place, EventSpan(), may_be_empty=True, after=self.after)
        return rows if self.most is None else _first(rows, self.most)
