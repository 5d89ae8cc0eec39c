"""Orders the pairs of a join by their later tuple, then by the earlier one.

Hidden columns of the rows carry the order columns of both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.collect.order import HIDDEN, without_hidden
from tidegate.order import Direction

Ints = npt.NDArray[np.int64]

LATER = tuple(f"{HIDDEN}later_{c}" for c in ("ts", "src", "seq"))
EARLIER = tuple(f"{HIDDEN}earlier_{c}" for c in ("ts", "src", "seq"))
_BITS = 62


@dataclass(frozen=True)
class PairOrder:
    """The order of pairs; `what` is its text."""

    what: str = "ts, later tuple, earlier tuple"

    def merge(
        self, outputs: Sequence[pa.Table], directions: Sequence[Direction], limit: int | None
    ) -> pa.Table:
        some = [t for t in outputs if t.num_rows] or outputs[:1]
        rows = pa.concat_tables(some)
        shown = without_hidden(rows)
        if len(some) == 1:
            return shown
        later, earlier = ([_ints(rows, c) for c in columns] for columns in (LATER, EARLIER))
        # Where an instance has several pieces, `take` would look for the piece of every row.
        return shown.combine_chunks().take(pa.array(pair_order(_numbers(later), earlier)))

    def text(self, ordered: bool) -> str:
        return self.what


def pair_rows(columns: Mapping[str, pa.Array], later: pa.Table, earlier: pa.Table) -> pa.Table:
    """Output rows with the order columns of their later and of their earlier tuple, hidden."""
    hidden = {n: later.column(i) for i, n in enumerate(LATER)}
    hidden |= {n: earlier.column(i) for i, n in enumerate(EARLIER)}
    return pa.table({**columns, **hidden})


def sorted_pairs(rows: pa.Table, later: Ints) -> pa.Table:
    """Rows in the output order; `later` ranks their later tuples."""
    rows = rows.combine_chunks()
    earlier = [_ints(rows, c) for c in EARLIER]
    return rows.take(pa.array(pair_order(later, earlier)))


def _numbers(columns: Sequence[Ints]) -> Ints:
    """The dense ranks of rows of several columns, in lexicographic order.

    Equal neighbours are ranked together, as the pairs of one later tuple are: so about one row for
    each later tuple is sorted.
    """
    new = np.ones(len(columns[0]), np.bool_)
    new[1:] = False
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    starts = np.flatnonzero(new)
    heads = [c[starts] for c in columns]
    order = np.lexsort(heads[::-1])
    changes = np.zeros(len(order), np.bool_)
    for head in heads:
        ranked = head[order]
        changes[1:] |= ranked[1:] != ranked[:-1]
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(changes)
    return np.repeat(number, np.diff(np.append(starts, len(columns[0]))))


def pair_order(later: Ints, earlier: Sequence[Ints]) -> Ints:
    """The permutation that sorts pairs by later tuple, then by earlier tuple.

    `later` ranks the later tuples, `earlier` has the order columns of the earlier ones. The rank
    and the earlier tuple's time are packed into one integer where they fit. Only pairs that are
    equal in it are sorted by all columns.
    """
    if not len(later):
        return np.empty(0, np.int64)
    ts = earlier[0]
    low = int(ts.min())
    bits = (int(ts.max()) - low).bit_length()
    if int(later.max()).bit_length() + bits <= _BITS:
        word = (later << bits) | (ts - low)
        order: Ints = np.argsort(word)
        ranked = word[order]
        same = ranked[1:] == ranked[:-1]
        if same.any():
            tied = np.append(same, False) | np.append(False, same)
            rows = order[tied]
            order[tied] = rows[np.lexsort([*(c[rows] for c in reversed(earlier)), word[rows]])]
        return order
    return np.lexsort([*reversed(earlier), later])


def _ints(rows: pa.Table, column: str) -> Ints:
    values: Ints = rows.column(column).to_numpy()
    return values
