"""Puts the tuples of a join in order: the total one, and that in which they are searched."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from tidegate.batch import ORDER, ints
from tidegate.operate.join.bound import Floats, key_of
from tidegate.operate.join.search import Ints
from tidegate.operate.join.spec import JoinSpec
from tidegate.operate.kernels.bisect import below
from tidegate.operate.kernels.order import flat, inverse

KEY = "key"
"""The column of the keys that the tuples of a segment are in the order of. It says nothing that the
tuples do not: one that is missing is computed."""


def arranged(spec: JoinSpec, side: int, table: pa.Table) -> tuple[pa.Table, Floats | None]:
    """Tuples of a side, given in the total order, in the order in which they are searched.

    And the keys of it, None where that is the total order itself.
    """
    if spec.in_time_order or not table.num_rows:
        return table, None
    key = key_of(spec.probe, side, table)
    order = np.argsort(key, kind="stable")
    return table.take(pa.array(order)), key[order]


def with_key(table: pa.Table, key: Floats | None) -> pa.Table:
    """Tuples with the column of their keys, if they have any."""
    return table if key is None else table.append_column(KEY, pa.array(key))


def without_key(table: pa.Table) -> tuple[pa.Table, Floats | None]:
    """Tuples without the column of their keys, and these, where they have it."""
    if KEY not in table.column_names:
        return table, None
    key: Floats = flat(table.column(KEY)).to_numpy()
    return table.drop_columns(KEY), key


def places(left: Sequence[Ints], right: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Where the tuples of two tables stand in the order of both, by their `order_columns`.

    Each is in the total order by itself.
    """
    sources = [left[1], right[1]]
    if all(map(len, sources)) and sources[0].max() < sources[1].min():
        # Tuples of one time are in the order of their sources: the left ones are before.
        first = np.arange(len(left[0])) + below(right[0], left[0])
        free = np.ones(len(left[0]) + len(right[0]), np.bool_)
        free[first] = False
        return first, np.flatnonzero(free)
    both = [np.concatenate(columns) for columns in zip(left, right, strict=True)]
    place = inverse(np.lexsort(both[::-1]))
    return place[: len(left[0])], place[len(left[0]) :]


def order_columns(table: pa.Table) -> list[Ints]:
    """What places the tuples of a table in the total order."""
    return [ints(table, c) for c in ORDER]


def total_order(table: pa.Table) -> Ints:
    """The places of tuples in the total order."""
    return np.lexsort(order_columns(table)[::-1])
