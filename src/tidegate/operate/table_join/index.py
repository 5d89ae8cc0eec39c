"""The rows of one version of a table, arranged so that those that fit a tuple are found at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.batch import MAX_US
from tidegate.cancellation import between_pieces
from tidegate.expression.tree import Expr, columns_of
from tidegate.operate.join.spec import EQUAL, PairInterval
from tidegate.operate.kernels.expression import evaluate
from tidegate.operate.kernels.order import Floats, Ints, coded, flat, floats
from tidegate.operate.table_join.candidate import ByInterval, ByKey, ByValue, Stretch
from tidegate.operate.table_join.key import NO_KEY, TableKeys
from tidegate.operate.table_join.lookup import TableLookup
from tidegate.schema import event_times

PIECE_PAIRS = 1_048_576
"""So many candidates are asked at once whether they fit."""

_ROW_BYTES = 40

Pairs = tuple[Ints, Ints]
"""Positions of tuples and of rows of the table that belong together, in the order of both."""

Search = Callable[[pa.Table, Ints, Ints], Stretch]
"""The stretch of candidates for tuples, given their columns, their keys and their event times."""


class TableIndex:
    """A table as one lookup needs it; built once for each version and lookup in a process.

    Holds the columns that the lookup reads, and at most `_ROW_BYTES` a row. A tuple costs a search
    among the keys, and with a range two more.
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
        self._keys = TableKeys(values, [i.null_safe for i in self._equal], count)
        self._search: Search
        if lookup.valid_from is not None:
            self._order, self._search = self._versioned(table.column(lookup.valid_from))
        else:
            self._order, self._search = self._ranged(rows)
        self._in_order = lookup.valid_from is not None or _range(lookup) is None
        """Whether the candidates of a tuple are in the order of the table."""
        single = (
            self._in_order and lookup.valid_from is None and len(self._order) == self._keys.size
        )
        self._row_of = self._order if single else None
        """By key its row, where each has one."""

    @property
    def nbytes(self) -> int:
        """About what it holds, rather more than less."""
        columns = 0 if self.rows is None else self.rows.nbytes
        return int(columns) + _ROW_BYTES * len(self._order)

    def pairs(self, tuples: pa.Table, times: Ints) -> Pairs:
        """The rows that fit each tuple; `tuples` has the columns that the lookup asks of them."""
        keys = self._keys.of([evaluate(i.left_value, tuples) for i in self._equal], len(times))
        if self._row_of is not None:
            p = np.arange(len(keys)) if (keys != NO_KEY).all() else np.flatnonzero(keys != NO_KEY)
            return self._fitting(tuples, p, keys if len(p) == len(keys) else keys[p])
        first, last = self._search(tuples, keys, times)
        found = [self._fitting(tuples, p, s) for p, s in _pieces(first, last)]
        if len(found) == 1:
            return found[0]
        return np.concatenate([p for p, _ in found]), np.concatenate([s for _, s in found])

    def _fitting(self, tuples: pa.Table, p: Ints, places: Ints) -> Pairs:
        """Those candidates that meet the other conditions, in order."""
        s = self._order[places]
        for condition in self._lookup.rest:
            fits = self._asked(condition, tuples, p, s)
            p, s = p[fits], s[fits]
        if not self._in_order and bool((p[1:] == p[:-1]).any()):
            order = np.lexsort((s, p))
            p, s = p[order], s[order]
        return p, s

    def _asked(self, condition: Expr, tuples: pa.Table, p: Ints, s: Ints) -> npt.NDArray[np.bool_]:
        between_pieces(len(p))
        columns, own = {}, self.rows
        for name in columns_of(condition):
            mine = own is not None and name in own.column_names
            side, at = (own, s) if own is not None and mine else (tuples, p)
            columns[name] = side.column(name).take(pa.array(at))
        if not columns:
            columns[""] = pa.array(p)
        fits = pc.fill_null(evaluate(condition, pa.table(columns)), False)
        result: npt.NDArray[np.bool_] = fits.to_numpy(zero_copy_only=False)
        return result

    def _ranged(self, rows: pa.Table) -> tuple[Ints, Search]:
        keys, interval = self._keys.numbers, _range(self._lookup)
        if interval is None:
            plain = ByKey(keys, self._keys.size)
            return plain.order, lambda tuples, of, times: plain.stretch(of)
        low, high = interval.left_low, interval.left_high
        if (
            interval.right_low is not None
            and interval.right_high is not None
            and not (low and high)
        ):
            ends = _doubles(interval.right_low, rows), _doubles(interval.right_high, rows)
            within, value = ByInterval(keys, *ends), interval.left_value
            return within.order, lambda tuples, of, times: within.stretch(
                of, _doubles(value, tuples)
            )
        by = ByValue(keys, _doubles(interval.right_value, rows))
        return by.order, lambda tuples, of, times: by.stretch(
            of, *(None if e is None else _doubles(e, tuples) for e in (low, high))
        )

    def _versioned(self, valid_from: pa.ChunkedArray) -> tuple[Ints, Search]:
        since, known = event_times(valid_from)
        keys = np.where(known, self._keys.numbers, NO_KEY)
        by = ByValue(keys, np.where(known, since, MAX_US))
        return by.order, lambda tuples, of, times: by.newest(of, times)


def _range(lookup: TableLookup) -> PairInterval | None:
    """The range that is searched: the first one with both ends, else the first."""
    ranges = [i for i in lookup.intervals if i.kind != EQUAL]
    return min(ranges, key=lambda i: i.kind, default=None)


def _doubles(expr: Expr, table: pa.Table) -> Floats:
    """Values as doubles, NaN for NULL."""
    values = evaluate(expr, table)
    return floats(values.fill_null(float("nan")) if values.null_count else values)


def _pieces(first: Ints, last: Ints) -> Iterator[Pairs]:
    """The tuples with the places of their candidates, some at a time."""
    counts = last - first
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    if total <= PIECE_PAIRS:
        yield _expanded(np.arange(len(first)), first, counts)
        return
    cuts = np.searchsorted(ends, np.arange(PIECE_PAIRS, total, PIECE_PAIRS), side="right")
    bounds = np.unique([0, *np.maximum(cuts, 1), len(first)])
    for start, stop in pairwise(bounds.tolist()):
        part = slice(start, stop)
        yield _expanded(np.arange(start, stop), first[part], counts[part])


def _expanded(tuples: Ints, first: Ints, counts: Ints) -> Pairs:
    if len(counts) and counts.min() == 1 == counts.max():
        return tuples, first
    p = np.repeat(tuples, counts)
    return p, np.arange(len(p)) + np.repeat(first - (np.cumsum(counts) - counts), counts)
