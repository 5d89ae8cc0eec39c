"""Joins the tuples of a split to tables, one after the other, and numbers what comes of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.batch import SEQ, TS, ints
from tidegate.errors import TaskError
from tidegate.operate.kernels.expression import evaluate
from tidegate.operate.kernels.order import Ints
from tidegate.operate.table_join.index import Pairs, TableIndex
from tidegate.operate.table_join.lookup import ANTI, LEFT, SEMI, TableLookup

PART_BITS = 24
"""The positions of tuples are shifted by so many bits, which number the rows made of one tuple."""


class PlacedRows(NamedTuple):
    """Rows: the places of their tuples in the total order, and the columns they have."""

    places: pa.Table
    columns: pa.Table


def join_tables(
    lookups: Sequence[TableLookup],
    rows: PlacedRows,
    held: Callable[[TableLookup], TableIndex],
) -> PlacedRows:
    """The rows that tuples become, in the order of the tuples, then of the tables' rows.

    `held` gives the table of a lookup. Whatever a tuple becomes depends on it and on its event time
    alone.
    """
    for lookup in lookups:
        for condition in lookup.where:
            mask = pc.fill_null(evaluate(condition, rows.columns), False)
            rows = PlacedRows(rows.places.filter(mask), rows.columns.filter(mask))
        rows = _join(lookup, rows, held(lookup))
    return _numbered(rows) if any(lookup.multiplies for lookup in lookups) else rows


def _join(lookup: TableLookup, rows: PlacedRows, index: TableIndex) -> PlacedRows:
    count = rows.places.num_rows
    p, s = index.pairs(rows.columns, ints(rows.places, TS))
    same = _is_each_once(p, count)
    if not same or lookup.how == ANTI:
        p, s = _kept(lookup.how, count, (p, s))
        same = _is_each_once(p, count)
    if not same:
        where = pa.array(p)
        rows = PlacedRows(rows.places.take(where), rows.columns.take(where))
    columns = rows.columns
    if lookup.adds and index.rows is not None:
        at = pa.array(s, mask=s < 0) if lookup.how == LEFT else pa.array(s)
        for name in lookup.adds:
            columns = columns.append_column(name, index.rows.column(name).take(at))
    return PlacedRows(rows.places, columns)


def _is_each_once(p: Ints, count: int) -> bool:
    return len(p) == count and bool((p == np.arange(count)).all())


def _kept(how: str, tuples: int, pairs: Pairs) -> Pairs:
    """The tuples that stay, once for each row of theirs, and that row; -1 for none."""
    p, s = pairs
    if how not in (SEMI, ANTI, LEFT):
        return p, s
    matched = np.zeros(tuples, np.bool_)
    matched[p] = True
    if how == LEFT:
        alone = np.flatnonzero(~matched)
        p = np.concatenate([p, alone])
        order = np.argsort(p, kind="stable")
        return p[order], np.concatenate([s, np.full(len(alone), -1)])[order]
    p = np.flatnonzero(matched if how == SEMI else ~matched)
    return p, np.full(len(p), -1)


def _numbered(rows: PlacedRows) -> PlacedRows:
    """The rows with places of their own in the total order: position, then number in the tuple."""
    times, seq = ints(rows.places, TS), ints(rows.places, SEQ)
    number = np.zeros(len(seq), np.int64)
    if len(seq):
        begins = np.flatnonzero(np.r_[True, (seq[1:] != seq[:-1]) | (times[1:] != times[:-1])])
        if len(begins) < len(seq):
            number = np.arange(len(seq)) - np.repeat(begins, np.diff(np.r_[begins, len(seq)]))
    if len(seq) and (int(number.max()) >> PART_BITS or int(seq.max()) >> (63 - PART_BITS)):
        raise TaskError(
            "table join",
            f"a tuple may have at most {1 << PART_BITS:,} rows of a table, and a source "
            f"{1 << 63 - PART_BITS:,} tuples",
            f"{int(number.max()) + 1:,} rows of a tuple at position {int(seq.max()):,}",
            "Add a condition to the join.",
        )
    at = rows.places.column_names.index(SEQ)
    placed = rows.places.set_column(at, SEQ, pa.array((seq << PART_BITS) + number))
    return PlacedRows(placed, rows.columns)
