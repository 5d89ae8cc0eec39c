"""Turns the rows of a batch into changes of a table that has one row for each key.

A change is a row with one more column at the end: `OP` says whether the row replaces the one with
its key (UPSERT) or removes it (DELETE). Of several changes of a key only the last one counts. So a
batch has each key once, and applying a batch twice is the same as applying it once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.errors import OptionError
from tidegate.order import alike, sort_indices
from tidegate.sink.protocol import PartWriter
from tidegate.sink.receipt import Part, Receipt

OP = "_op"
UPSERT, DELETE = "upsert", "delete"


def newest(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """The last row of each key, in the order of the rows."""
    columns = [rows.column(name).combine_chunks() for name in key]
    places = sort_indices(columns)
    begins = ~alike([column.take(places) for column in columns], rows.num_rows)
    last = np.append(begins[1:], True)[: rows.num_rows]
    return rows.take(pa.array(np.sort(places.to_numpy()[last])))


def applied(held: pa.Table, changes: pa.Table, key: Sequence[str]) -> pa.Table:
    """A table after changes; its rows are in the order in which they came."""
    marked = held.append_column(OP, pa.array([UPSERT] * held.num_rows, pa.string()))
    found = newest(pa.concat_tables([marked, changes]), key)
    return found.filter(pc.equal(found.column(OP), UPSERT)).drop_columns([OP])


def check_key(where: str, schema: pa.Schema, key: Sequence[str], lack: str) -> None:
    """Refuse a query whose rows cannot be changes; `lack` says in the message what they lack."""
    if not key:
        raise OptionError(
            where,
            "keeps the newest row of each key, so the rows of the query must have one",
            lack,
            "Write an aggregate over windows of time or sessions, with all of GROUP BY in the "
            "select list, or DISTINCT ON (columns); else use a sink that keeps all rows.",
        )
    if OP in schema.names:
        raise OptionError(
            where,
            f"has a column {OP} of its own, which says what is done with a row",
            f"a query with a column {OP}",
            "Give the column another name with AS.",
        )


@dataclass(frozen=True)
class ChangeParts:
    """A part writer that turns rows into changes and hands them to another writer."""

    writer: PartWriter
    key: tuple[str, ...]

    def write(self, part: Part, rows: pa.Table) -> Receipt:
        if part.side:
            return self.writer.write(part, rows)
        rows = newest(rows, self.key)
        op = pa.array([UPSERT] * rows.num_rows, pa.string())
        return self.writer.write(part, rows.append_column(OP, op))
