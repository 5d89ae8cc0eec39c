"""Finds a row of an output, by number or by a condition, and says as plain data why it is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.calendar.microsecond import time_text
from tidegate.connector import Connector
from tidegate.errors import OptionError, SourceError, near
from tidegate.operate.kernels.expression.expression import evaluate
from tidegate.query.output import Output
from tidegate.session.verification.rerun import RecordedRun
from tidegate.session.verification.row_difference import value_of
from tidegate.session.why.explanation import Explanation, Wanted, explained, hashes
from tidegate.session.why.runs import Seen, TracedQuery
from tidegate.session.why.span import TupleSpan
from tidegate.session.why.version import with_versions
from tidegate.sink.folder.written_rows import EventSpan, rows_of
from tidegate.sink.json import encoded
from tidegate.sql.condition import read_condition
from tidegate.state.manifest import Manifest
from tidegate.state.store import Store

Row = int | str
"""A row by its number, from 0 on, or by a condition: the first for which it is true."""


def why_committed(
    checkpoint: str, outputs: Sequence[Output], output: str | None, row: Row
) -> dict[str, Any]:
    """Why a row of a checkpoint's output is there; the query is `outputs`. Changes nothing."""
    record = RecordedRun(checkpoint)
    record.check_digests()
    record.check_unchanged()
    return why(record.newest, record.store, outputs, {}, output, row)


def why(
    manifest: Manifest,
    store: Store,
    outputs: Sequence[Output],
    connectors: Mapping[str, Connector],
    output: str | None,
    row: Row,
) -> dict[str, Any]:
    """The same of a manifest of a store; `connectors` are those of sources without a URI."""
    chosen = _output(outputs, output)
    name = chosen.name or ""
    traced = partial(
        TracedQuery,
        connectors=connectors,
        available_now=not manifest.finished,
        late_at=manifest.places.get(outputs[0].name or ""),
    )
    runs = traced(chosen.node)
    committed = manifest.digests[name]["rows"] if name in manifest.digests else None
    place = manifest.places.get(name)
    wanted, written = _wanted(runs, place, row, committed)
    span = TupleSpan.of_row(chosen.node, wanted.values)
    node = with_versions(chosen.node, manifest, store, span) if written else chosen.node
    if node is not chosen.node:
        runs = traced(node)
    # Where a table was another one, or a source silent, earlier rows may be others in a new run.
    if written and (node is not chosen.node or runs.reads_idle):
        wanted = replace(wanted, nth=_equal_before(str(place), wanted))
    return {"output": name, **_facts(explained(runs, wanted))}


def _output(outputs: Sequence[Output], name: str | None) -> Output:
    names = [output.name or "" for output in outputs]
    if name is None and len(outputs) == 1:
        return outputs[0]
    if name not in names:
        got = "none" if name is None else name
        remedy = near(got, names) if any(names) else "Leave it out: there is one, without a name."
        raise OptionError("--output", "must be an output of the query", got, remedy)
    return outputs[names.index(name)]


def _wanted(
    runs: TracedQuery, place: str | None, row: Row, committed: int | None
) -> tuple[Wanted, bool]:
    """The row as it was committed, and true; as the query gives it where it cannot be read."""
    negative = isinstance(row, int) and row < 0
    if isinstance(row, bool) or not isinstance(row, int | str) or negative:
        raise OptionError("why", "takes the number of a row, from 0 on, or a condition", repr(row))
    where = "--row" if isinstance(row, int) else "--where"
    test = _numbered(row) if isinstance(row, int) else _true_of(row)
    found: list[Wanted] = []
    before = 0

    def seen(rows: pa.Table) -> bool:
        nonlocal before
        left = rows.num_rows if committed is None else max(committed - before, 0)
        some = rows.slice(0, left)
        at = test(some, before)
        if at is not None:
            found.append(Wanted(before + at, some.slice(at, 1)))
        before += some.num_rows
        return bool(found) or left < rows.num_rows

    read = place is not None and _read(place, seen)
    written = bool(found)
    if not found and (not read or (committed is not None and before < committed)):
        before = 0  # its output is not whole
        runs.rows(seen)
    if not found:
        got = f"{row}, of {before:,} rows" if isinstance(row, int) else f"none of {before:,} rows"
        must = "must be the number of a row" if isinstance(row, int) else "must be true of a row"
        raise OptionError(where, must, got, "Rows count from 0.")
    return found[0], written


def _equal_before(place: str, wanted: Wanted) -> int:
    """How many rows of an output before this one are equal to it; reads it once more."""
    counted = before = 0

    def seen(rows: pa.Table) -> bool:
        nonlocal counted, before
        some = rows.slice(0, wanted.number - before)
        counted += int(np.sum(hashes(some) == hashes(wanted.values)))
        before += rows.num_rows
        return bool(before >= wanted.number)

    _read(place, seen)
    return counted


def _read(place: str, seen: Seen) -> bool:
    """Show the rows of an output that can be read again; whether this one can."""
    try:
        for batch in rows_of(place, EventSpan(), may_be_empty=True):
            if seen(pa.Table.from_batches([batch])):
                break
    except (SourceError, OptionError, pa.ArrowException, OSError):
        return False
    return True


def _numbered(number: int) -> Callable[[pa.Table, int], int | None]:
    return lambda rows, before: number - before if number < before + rows.num_rows else None


def _true_of(text: str) -> Callable[[pa.Table, int], int | None]:
    """Finds the first row for which a condition is true."""

    def first(rows: pa.Table, _: int) -> int | None:
        mask = evaluate(read_condition(text, rows.schema, "--where"), rows)
        places = np.flatnonzero(mask.fill_null(False).to_numpy(zero_copy_only=False))
        return int(places[0]) if len(places) else None

    return first


def _facts(found: Explanation) -> dict[str, Any]:
    return {
        "row": found.row,
        "values": _values(found.values),
        "tuples": [
            {
                "stream": each.stream,
                **each.place,
                "ts": time_text(each.ts_us),
                "values": _values(each.values),
            }
            for each in found.tuples
        ],
        "table_rows": [
            {"table": each.table, "row": each.row, "values": _values(each.values)}
            for each in found.table_rows
        ],
        "again": {"equal": True, "tuples": found.tuples_again, "rows": found.rows_again},
        "notes": list(found.notes),
    }


def _values(row: pa.Table) -> dict[str, Any]:
    """The cells of one row as plain data."""
    cells: Iterator[pa.Array] = (column.combine_chunks() for column in row.columns)
    texts = [encoded(cell)[0].as_py() for cell in cells]
    return {name: value_of(text) for name, text in zip(row.column_names, texts, strict=True)}
