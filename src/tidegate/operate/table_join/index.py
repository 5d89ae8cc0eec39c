"""Indexes the rows of one version of a table for one lookup."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.batch import MAX_US
from tidegate.cancellation import between_pieces
from tidegate.expression.tree import Expr, columns_of
from tidegate.operate.join.spec import EQUAL, PairInterval
from tidegate.operate.kernels.expression.expression import evaluate
from tidegate.operate.kernels.key_code import NO_KEY, KeyCodes
from tidegate.operate.kernels.order import Floats, Ints, Mask, coded, flat, floats
from tidegate.operate.table_join.candidate import (
    NO_ROW,
    ByInterval,
    ByKey,
    ByValue,
    Stretch,
    expanded,
)
from tidegate.operate.table_join.lookup import TableLookup
from tidegate.schema import event_times

PIECE_PAIRS = 1_048_576
"""Conditions are evaluated on about so many candidates at a time."""

ROW_BYTES = 64
"""The most that an index holds for each row besides its columns."""

Pairs = tuple[Ints, Ints]
"""Positions of tuples and of rows of the table, pair by pair, in the order of both."""

Search = Callable[[pa.Table, Ints, Ints], Stretch]
"""From the columns of tuples, their keys and their event times to the stretch of candidates."""

Find = Callable[[pa.Table, Ints, Ints], Ints]
"""From the same to the place of the only candidate of each tuple, NO_ROW for none."""

Arrangement = tuple[Ints, Search | None, Find | None]
"""The rows in the order in which they are searched, and exactly one of both ways to do so."""


class TableIndex:
    """The rows of a table as one lookup searches them.

    The rows are the whole table, indexed once for each version and lookup in a process; or those
    rows of a large table that some tuples may meet, indexed for these. Holds the columns that the
    lookup reads, and at most `ROW_BYTES` a row. A tuple costs a search among the keys, and two more
    with a range.
    """

    def __init__(self, lookup: TableLookup, table: pa.Table) -> None:
        names = dict(lookup.reads)
        self._lookup = lookup
        columns = {name: flat(table.column(column)) for name, column in names.items()}
        columns |= {name: coded(columns[name]) for name in lookup.coded}
        self.rows = pa.table(columns) if columns else None
        """The columns of the table by their names in expressions; None where none is read."""
        self._equal = [i for i in lookup.intervals if i.kind == EQUAL]
        count = table.num_rows
        rows = self.rows if self.rows is not None else table.select([])
        values = [evaluate(i.right_value, rows) for i in self._equal]
        self._keys = KeyCodes.of(values, count, [i.null_safe for i in self._equal])
        if lookup.valid_from is not None:
            found = self._versioned(table.column(lookup.valid_from))
        elif (interval := _range(lookup)) is None:
            found = self._keyed()
        else:
            found = self._ranged(rows, interval)
        self._order, self._search, self._find = found
        self._row_at = np.append(self._order, NO_ROW)
        self._in_order = _range(lookup) is None
        """Whether the candidates of a tuple are in the order of the table."""

    @property
    def single(self) -> bool:
        """Whether a tuple has at most one row, whatever the tuple."""
        return self._find is not None

    def partners(self, tuples: pa.Table, times: Ints) -> Ints:
        """The row of each tuple, NO_ROW for none; only where the index is `single`."""
        assert self._find is not None
        s = self._row_at[self._find(tuples, self._key_numbers(tuples, len(times)), times)]
        for condition in self._lookup.rest:
            p = None if s.min(initial=0) > NO_ROW else np.flatnonzero(s != NO_ROW)
            fits = self._asked(condition, tuples, p, s if p is None else s[p])
            s[~fits if p is None else p[~fits]] = NO_ROW
        return s

    def pairs(self, tuples: pa.Table, times: Ints) -> Pairs:
        """The rows that fit each tuple; `tuples` must have the columns that conditions read."""
        if self.single:
            s = self.partners(tuples, times)
            p = np.flatnonzero(s != NO_ROW)
            return p, s[p]
        assert self._search is not None
        first, last = self._search(tuples, self._key_numbers(tuples, len(times)), times)
        found = [self._fitting(tuples, p, s) for p, s in _pieces(first, last)]
        if len(found) == 1:
            return found[0]
        return np.concatenate([p for p, _ in found]), np.concatenate([s for _, s in found])

    def _key_numbers(self, tuples: pa.Table, count: int) -> Ints:
        return self._keys.find([evaluate(i.left_value, tuples) for i in self._equal], count)

    def _fitting(self, tuples: pa.Table, p: Ints, places: Ints) -> Pairs:
        """The candidates that meet the other conditions, by tuple and then by row."""
        s = self._order[places]
        for condition in self._lookup.rest:
            fits = self._asked(condition, tuples, p, s)
            p, s = p[fits], s[fits]
        if not self._in_order and bool((p[1:] == p[:-1]).any()):
            order = np.lexsort((s, p))
            p, s = p[order], s[order]
        return p, s

    def _asked(self, condition: Expr, tuples: pa.Table, p: Ints | None, s: Ints) -> Mask:
        """Which pairs meet a condition; `p` are the tuples (None: all, once), `s` the rows."""
        between_pieces(len(s))
        columns, own = {"": pa.array(s)}, self.rows
        for name in columns_of(condition):
            if own is not None and name in own.column_names:
                columns[name] = own.column(name).take(columns[""])
            else:
                column = tuples.column(name)
                columns[name] = column if p is None else column.take(pa.array(p))
        fits = pc.fill_null(evaluate(condition, pa.table(columns)), False)
        result: Mask = fits.to_numpy(zero_copy_only=False)
        return result

    def _keyed(self) -> Arrangement:
        by = ByKey(self._keys.codes, self._keys.n)
        if by.unique:
            return by.order, None, lambda tuples, keys, times: keys
        return by.order, lambda tuples, keys, times: by.stretch(keys), None

    def _ranged(self, rows: pa.Table, interval: PairInterval) -> Arrangement:
        low, high, value = interval.left_low, interval.left_high, interval.left_value
        ends = interval.right_low, interval.right_high
        if ends[0] is None or ends[1] is None or (low and high):
            by = ByValue(self._keys.codes, _doubles(interval.right_value, rows))

            def search(tuples: pa.Table, keys: Ints, times: Ints) -> Stretch:
                bounds = (None if e is None else _doubles(e, tuples) for e in (low, high))
                return by.stretch(keys, *bounds)

            return by.order, search, None
        within = ByInterval(self._keys.codes, _doubles(ends[0], rows), _doubles(ends[1], rows))
        if within.apart:
            return within.order, None, lambda t, keys, _: within.only(keys, _doubles(value, t))
        return within.order, lambda t, keys, _: within.stretch(keys, _doubles(value, t)), None

    def _versioned(self, valid_from: pa.ChunkedArray) -> Arrangement:
        since, known = event_times(valid_from)
        keys = np.where(known, self._keys.codes, NO_KEY)
        by = ByValue(keys, np.where(known, since, MAX_US))
        return by.order, None, lambda tuples, keys, times: by.newest(keys, times)


def _range(lookup: TableLookup) -> PairInterval | None:
    """The range that is searched: the first one with both ends (a band), else the first."""
    ranges = [i for i in lookup.intervals if i.kind != EQUAL]
    return min(ranges, key=lambda i: i.kind, default=None)


def _doubles(expr: Expr, table: pa.Table) -> Floats:
    """Values as doubles, NaN for NULL."""
    values = evaluate(expr, table)
    return floats(values.fill_null(float("nan")) if values.null_count else values)


def _pieces(first: Ints, last: Ints) -> Iterator[Pairs]:
    """Pairs of tuples and the places of their candidates, a bounded number at a time."""
    counts = last - first
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    if total <= PIECE_PAIRS:
        yield expanded(np.arange(len(first)), first, counts)
        return
    cuts = np.searchsorted(ends, np.arange(PIECE_PAIRS, total, PIECE_PAIRS), side="right")
    bounds = np.unique([0, *np.maximum(cuts, 1), len(first)])
    for start, stop in pairwise(bounds.tolist()):
        part = slice(start, stop)
        yield expanded(np.arange(start, stop), first[part], counts[part])
