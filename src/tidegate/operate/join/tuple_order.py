"""Sorts the tuples of a join: in the total order, and in the order in which they are searched."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from tidegate.batch import ORDER, ints
from tidegate.operate.join.predicate.bound import Floats, key_of
from tidegate.operate.join.search import Ints
from tidegate.operate.join.spec import JoinSpec
from tidegate.operate.kernels.join.bisect import below
from tidegate.operate.kernels.order import flat, inverse

KEY = "key"
"""The column of a segment with the keys that its tuples are sorted by. It follows from the tuples,
so a segment without it is read as well, and its keys are computed."""


def arranged(spec: JoinSpec, side: int, table: pa.Table) -> tuple[pa.Table, Floats | None]:
    """Tuples, given in the total order, in the order in which they are searched, and their keys.

    Keys are None where tuples are searched in the total order itself.
    """
    if spec.in_time_order or not table.num_rows:
        return table, None
    key = key_of(spec.probe, side, table)
    order = np.argsort(key, kind="stable")
    return table.take(pa.array(order)), key[order]


def with_key(table: pa.Table, key: Floats | None) -> pa.Table:
    """Tuples with their keys as a column, if there are keys."""
    return table if key is None else table.append_column(KEY, pa.array(key))


def without_key(table: pa.Table) -> tuple[pa.Table, Floats | None]:
    """Tuples without the column of keys, and the keys; None where they have no such column."""
    if KEY not in table.column_names:
        return table, None
    key: Floats = flat(table.column(KEY)).to_numpy()
    return table.drop_columns(KEY), key


def places(left: Sequence[Ints], right: Sequence[Ints]) -> tuple[Ints, Ints]:
    """The places of the tuples of two tables in the total order of both, by their `order_columns`.

    Each table is in the total order. Costs a sort of both only where their sources interleave.
    """
    sources = [left[1], right[1]]
    if all(map(len, sources)) and sources[0].max() < sources[1].min():
        # All left sources are before all right ones, so times decide alone: a left tuple comes
        # after the right tuples of earlier times, and before those of its own time.
        first = np.arange(len(left[0])) + below(right[0], left[0])
        free = np.ones(len(left[0]) + len(right[0]), np.bool_)
        free[first] = False
        return first, np.flatnonzero(free)
    both = [np.concatenate(columns) for columns in zip(left, right, strict=True)]
    place = inverse(np.lexsort(both[::-1]))
    return place[: len(left[0])], place[len(left[0]) :]


def order_columns(table: pa.Table) -> list[Ints]:
    """The columns of a table that make the total order: time, source, sequence."""
    return [ints(table, c) for c in ORDER]


def total_order(table: pa.Table) -> Ints:
    """The permutation that puts tuples into the total order."""
    return np.lexsort(order_columns(table)[::-1])
