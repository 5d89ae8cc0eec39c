"""Joins the tuples of a split to tables, one after the other, and numbers each tuple's rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.batch import SEQ, TS, ints
from tidegate.errors import TaskError
from tidegate.operate.join.kind import INNER, LEFT_OUTER, JoinKind
from tidegate.operate.kernels.expression.expression import evaluate
from tidegate.operate.kernels.order import Ints
from tidegate.operate.table_join.candidate import NO_ROW
from tidegate.operate.table_join.index import Pairs, TableIndex
from tidegate.operate.table_join.lookup import TableLookup

PART_BITS = 24
"""The sequence number of a tuple is shifted by so many bits, which number the rows made of it."""


class PlacedRows(NamedTuple):
    """Rows: `places` has the order columns of their tuples, `columns` all other columns."""

    places: pa.Table
    columns: pa.Table


def join_tables(
    lookups: Sequence[TableLookup],
    rows: PlacedRows,
    held: Callable[[TableLookup, pa.Table], TableIndex],
) -> PlacedRows:
    """The rows that tuples become, in the order of the tuples, then of the tables' rows.

    `held` gives the index for a lookup and some tuples. What a tuple becomes depends on the tuple
    and on its event time alone, never on the tuples beside it.
    """
    several = False
    for lookup in lookups:
        for condition in lookup.where:
            mask = pc.fill_null(evaluate(condition, rows.columns), False)
            rows = PlacedRows(rows.places.filter(mask), rows.columns.filter(mask))
        index = held(lookup, rows.columns)
        several |= lookup.multiplies and not index.single
        rows = _join(lookup, rows, index)
    return _numbered(rows, several) if any(one.multiplies for one in lookups) else rows


def _join(lookup: TableLookup, rows: PlacedRows, index: TableIndex) -> PlacedRows:
    times = ints(rows.places, TS)
    if index.single:
        p, s = _kept_partners(lookup.kind, index.partners(rows.columns, times))
    else:
        p, s = _kept_pairs(lookup.kind, len(times), index.pairs(rows.columns, times))
    if p is not None:
        where = pa.array(p)
        rows = PlacedRows(rows.places.take(where), rows.columns.take(where))
    columns = rows.columns
    if lookup.adds and index.rows is not None:
        at = pa.array(s, mask=s == NO_ROW) if lookup.kind.unmatched else pa.array(s)
        for name in lookup.adds:
            columns = columns.append_column(name, index.rows.column(name).take(at))
    return PlacedRows(rows.places, columns)


def _kept_partners(kind: JoinKind, partners: Ints) -> tuple[Ints | None, Ints]:
    """As `_kept_pairs`, where each tuple has one row or NO_ROW."""
    if kind == LEFT_OUTER:
        return None, partners
    keeps = (partners == NO_ROW) == kind.unmatched
    if keeps.all():
        return None, partners
    p = np.flatnonzero(keeps)
    return p, partners[p]


def _kept_pairs(kind: JoinKind, tuples: int, pairs: Pairs) -> tuple[Ints | None, Ints]:
    """The tuples of the output rows, and the table's row of each, NO_ROW for none.

    None in place of the tuples stands for all of them, each once.
    """
    p, s = pairs
    if kind != INNER:
        matched = np.zeros(tuples, np.bool_)
        matched[p] = True
        if not kind.pairs:
            return np.flatnonzero(matched != kind.unmatched), s
        alone = np.flatnonzero(~matched)
        at = np.searchsorted(p, alone)
        p, s = np.insert(p, at, alone), np.insert(s, at, NO_ROW)
    once = len(p) == tuples and bool((p == np.arange(tuples)).all())
    return None if once else p, s


def _numbered(rows: PlacedRows, several: bool) -> PlacedRows:
    """The rows with places of their own: the tuple's sequence number, then a number in the tuple.

    The total order has no room for a fourth column, so both are in one integer. The number is 0
    where no tuple can have `several` rows.
    """
    times, seq = ints(rows.places, TS), ints(rows.places, SEQ)
    most, placed = 0, seq << PART_BITS
    if several and len(seq):
        begins = np.flatnonzero(np.r_[True, (seq[1:] != seq[:-1]) | (times[1:] != times[:-1])])
        if len(begins) < len(seq):
            number = np.arange(len(seq)) - np.repeat(begins, np.diff(np.r_[begins, len(seq)]))
            most, placed = int(number.max()), placed + number
    if most >> PART_BITS or int(seq.max(initial=0)) >> (63 - PART_BITS):
        raise TaskError(
            "table join",
            f"a tuple may have at most {1 << PART_BITS:,} rows of a table, and a source "
            f"{1 << 63 - PART_BITS:,} tuples",
            f"{most + 1:,} rows of a tuple at position {int(seq.max()):,}",
            "Add a condition to the join.",
        )
    at = rows.places.column_names.index(SEQ)
    return PlacedRows(rows.places.set_column(at, SEQ, pa.array(placed)), rows.columns)
