"""Reads the published rows of an output again: their digest, and where two outputs differ."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.errors import OptionError, SinkError, SourceError, TidegateError
from tidegate.remote.scheme import is_remote_uri
from tidegate.sink.digest.digest import Digest, row_hashes
from tidegate.sink.folder.batch_ledger import LEDGER, batch_numbers
from tidegate.sink.folder.files import FileSink
from tidegate.sink.folder.folder_reader import (
    ALL_FORMATS,
    DAMAGED_PART,
    NONE,
    UNREADABLE,
    Published,
)
from tidegate.sink.folder.past import is_result
from tidegate.sink.folder.verify import past, sink_at

_TIMES = ("window_end", "ts")


@dataclass(frozen=True)
class EventSpan:
    """A closed interval of event times; None is an open end."""

    from_us: int | None = None
    to_us: int | None = None

    def of(self, batch: pa.RecordBatch, where: str) -> pa.RecordBatch:
        """The rows within, by the first column that is named window_end or ts."""
        return batch if self == EventSpan() else batch.filter(self.mask(batch, where))

    def mask(self, batch: pa.RecordBatch, where: str) -> pa.Array:
        """Which rows are within."""
        if self == EventSpan():
            return pa.array(np.ones(batch.num_rows, np.bool_))
        name = next((name for name in batch.schema.names if name in _TIMES), None)
        if name is None:
            got = f"columns {', '.join(batch.schema.names)}"
            raise OptionError(where, "a span of time needs a column window_end or ts", got)
        times = batch.column(name).cast(pa.int64())
        inside = pa.array(np.ones(len(times), np.bool_))
        for end, compare in ((self.from_us, pc.greater_equal), (self.to_us, pc.less_equal)):
            if end is not None:
                inside = pc.and_(inside, pc.fill_null(compare(times, end), False))
        return inside


def rows_of(
    place: str,
    span: EventSpan,
    *,
    may_be_empty: bool = False,
    after: int = NONE,
    upto: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """The published rows at a path or URI, in the output order.

    `after` (exclusive) and `upto` (inclusive) choose batches.
    """
    published = Published(_uri(place), ALL_FORMATS)
    newest = published.newest()
    if newest == NONE and may_be_empty:
        return
    if newest == NONE:
        raise OptionError(
            place,
            "must be a checkpoint, or an output folder with batches",
            "neither" if os.path.isdir(place) else "no such folder",
            "Name what a run had as --checkpoint or --out, with the folder of a named output.",
        )
    last = newest if upto is None else min(newest, upto)
    for part in published.parts(after, last, skip_missing=False):
        for batch in published.read(part):
            yield span.of(batch, place)


def _uri(place: str) -> str:
    """A path as sinks name it; URIs as they are."""
    known = is_remote_uri(place) or place.startswith("file:")
    return place if known else FileSink(place).uri


def outputs_in(place: str) -> dict[str, str]:
    """The named outputs below a folder, by name where they are; none where it is an output itself.

    A folder of several outputs has one for each, and theirs have batches. Results beside them are
    a SinkError.
    """
    names = sink_at(_uri(place)).batch_names("")
    if LEDGER in names:
        return {}
    results = [name for name in names if is_result(name)]
    below = {n: f"{place.rstrip('/')}/{n}" for n in names if n[0] != "_" and n not in results}
    if not any(map(_has_batches, below.values())):
        return {}
    if results:
        requirement = "must have its results in the folders of its outputs"
        remedy = "Move it away, or name the folder of one output."
        raise SinkError(place, requirement, results[0], remedy)
    return {name: at for name, at in below.items() if _has_batches(at) or _is_without_rows(at)}


def _has_batches(place: str) -> bool:
    names = sink_at(_uri(place)).batch_names("")
    return LEDGER in names or bool(batch_numbers(names))


def _is_without_rows(place: str) -> bool:
    """Whether a folder has nothing, or side outputs alone: so is an output without rows."""
    return os.path.isdir(place) and all(name.startswith("_") for name in os.listdir(place))


def digest_of(place: str, span: EventSpan) -> Digest:
    """The digest of the published rows at a place; reads all of them."""
    found = Digest()
    for batch in rows_of(place, span):
        if batch.num_rows:
            found = found.with_rows(row_hashes(batch))
    return found


def checked_digest(place: str, span: EventSpan) -> Digest:
    """The same of an output alone: a SinkError names files that differ from its ledgers.

    Without any ledger only the files are read.
    """
    if _is_without_rows(place) and not _has_batches(place):
        return Digest()
    uri = _uri(place)
    wrong = past(uri).problems if sink_at(uri).batch_names(LEDGER) else ()
    if wrong:
        more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        remedy = "Restore it from a copy. `tidegate verify CHECKPOINT` names all that has changed."
        raise SinkError(place, "must be as it was published", wrong[0] + more, remedy)
    try:
        return digest_of(place, span)
    except SourceError as error:
        kinds: dict[str, type[TidegateError]] = {DAMAGED_PART: SinkError, UNREADABLE: OptionError}
        kind = kinds.get(error.requirement, SourceError)
        raise kind(error.where, error.requirement, error.got, error.remedy) from error


def first_difference(
    one: Iterator[pa.RecordBatch], other: Iterator[pa.RecordBatch]
) -> tuple[int, Any, Any] | None:
    """The number of the first row that differs, and both rows; None where all are equal.

    A row is None where one output ends before the other.
    """
    left, right, place = _Rows(one), _Rows(other), 0
    while True:
        count = min(left.fill(), right.fill())
        if not count:
            ends = left.row(0), right.row(0)
            return None if ends == (None, None) else (place, *ends)
        differ = left.hashes[:count] != right.hashes[:count]
        if differ.any():
            at = int(np.argmax(differ))
            return place + at, left.row(at), right.row(at)
        left.skip(count)
        right.skip(count)
        place += count


class _Rows:
    """A sequence of rows that holds one batch at a time, with the hashes of its rows."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._batch: pa.RecordBatch | None = None
        self.hashes = np.zeros(0, np.uint64)

    def fill(self) -> int:
        """Load the next batch if none is held; the number of rows held, 0 at the end."""
        while not len(self.hashes):
            self._batch = next(self._batches, None)
            if self._batch is None:
                return 0
            self.hashes = row_hashes(self._batch)
        return len(self.hashes)

    def skip(self, count: int) -> None:
        assert self._batch is not None
        self._batch, self.hashes = self._batch.slice(count), self.hashes[count:]

    def row(self, at: int) -> dict[str, str | None] | None:
        """A row as texts, because Python has no times of far years."""
        if self._batch is None or at >= len(self.hashes):
            return None
        row = self._batch.slice(at, 1)
        names, columns = row.schema.names, row.columns
        return {n: _text(c) for n, c in zip(names, columns, strict=True)}


def _text(cell: pa.Array) -> str | None:
    if pa.types.is_nested(cell.type) or pa.types.is_binary(cell.type):
        return str(cell[0].as_py())
    text: str | None = pc.cast(cell, pa.string())[0].as_py()
    return text
