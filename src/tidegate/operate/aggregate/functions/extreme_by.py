"""MIN_BY and MAX_BY: one column of the tuple in which another is smallest or greatest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.operate.aggregate.definition import ANYTHING, ORDERED, AggregateFunction
from tidegate.operate.aggregate.functions.edge import ChosenValue, rows_in_order
from tidegate.operate.kernels.family import States
from tidegate.operate.kernels.group import Groups
from tidegate.operate.kernels.order import canonical, integers, ordered, valid

_INT = np.iinfo(np.int64)


@dataclass(frozen=True)
class ExtremeBy(ChosenValue):
    """The value, NULL or not, beside the smallest or largest key that is not NULL.

    Of tuples with equal keys (NaN equals NaN, -0.0 equals 0.0) the first in the total order wins,
    for the largest key too, or with `last` the last: the result is that of one tuple, whatever the
    cut and the order of merging. Its columns are the value, the key, ts, src and seq, in rows and
    in states alike; in the state of a group without keys all are NULL.
    """

    key: pa.DataType
    largest: bool
    last: bool = False

    @property
    def state(self) -> tuple[tuple[str, pa.DataType], ...]:
        order = ((name, pa.int64()) for name in ("ts", "src", "seq"))
        return (("v", self.type), ("k", self.key), *order)

    def fold(self, groups: Groups, columns: Sequence[pa.Array]) -> States:
        mask = valid(columns[1])
        rows = np.arange(len(columns[1])) if mask is None else np.flatnonzero(mask)
        codes = groups.codes[rows]
        keys = ordered(canonical(columns[1].drop_null())).keys
        best = np.full(groups.n, _INT.min if self.largest else _INT.max, np.int64)
        (np.maximum if self.largest else np.minimum).at(best, codes, keys)
        tied = np.flatnonzero(keys == best[codes])
        picked = pa.array(rows[tied])
        places = (integers(column.take(picked)) for column in columns[2:])
        order = rows_in_order(*places)
        winner_last = tied[order if self.last else order[::-1]]
        chosen = np.full(groups.n, -1, np.int64)
        chosen[codes[winner_last]] = rows[winner_last]  # the last row of a group stays
        without = chosen < 0
        winners = pa.array(chosen, mask=without if bool(without.any()) else None)
        return [column.take(winners) for column in columns]


MIN_BY = AggregateFunction(
    name="min_by",
    python="min_by",
    sql=("MIN_BY", "ARG_MIN"),
    doc="The first column in the row with the smallest second; of several such rows, in the first.",
    arguments=(ANYTHING, ORDERED),
    decides=1,
    distinct="min_by",
    in_order=True,
    family=lambda type_, key: ExtremeBy(type_, key, largest=False),
)
MAX_BY = AggregateFunction(
    name="max_by",
    python="max_by",
    sql=("MAX_BY", "ARG_MAX"),
    doc="The first column in the row with the greatest second; of several such rows, in the first.",
    arguments=(ANYTHING, ORDERED),
    decides=1,
    distinct="max_by",
    in_order=True,
    family=lambda type_, key: ExtremeBy(type_, key, largest=True),
)
LAST_BY = AggregateFunction(
    name="last_by",
    python=None,
    doc="The first column in the row with the greatest second; of several such rows, in the last.",
    arguments=(ANYTHING, ORDERED),
    decides=1,
    in_order=True,
    family=lambda type_, key: ExtremeBy(type_, key, largest=True, last=True),
)
