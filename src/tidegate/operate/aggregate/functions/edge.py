"""FIRST and LAST: the value of one tuple, chosen by its place in the total order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.batch import MAX_US, MIN_US
from tidegate.operate.aggregate.definition import ANYTHING, AggregateFunction
from tidegate.operate.kernels.family import States
from tidegate.operate.kernels.group import Groups
from tidegate.operate.kernels.order import Ints


@dataclass(frozen=True)
class ChosenValue:
    """The base of functions whose value is that of one tuple: to merge states is to fold rows."""

    type: pa.DataType

    @property
    def state(self) -> tuple[tuple[str, pa.DataType], ...]:
        """The value first, then what decides between tuples."""
        raise NotImplementedError

    @property
    def result(self) -> pa.DataType:
        return self.type

    def fold(self, groups: Groups, columns: Sequence[pa.Array]) -> States:
        raise NotImplementedError

    def merge(self, groups: Groups, states: Sequence[pa.Array]) -> States:
        return self.fold(groups, states)

    def finish(self, states: Sequence[pa.Array]) -> pa.Array:
        return states[0]


@dataclass(frozen=True)
class EdgeValue(ChosenValue):
    """The first or last value in the order (ts, src, seq), NULL or not, of any type.

    Its columns are the value, ts, src and seq, in rows and in states alike.
    """

    last: bool

    @property
    def state(self) -> tuple[tuple[str, pa.DataType], ...]:
        return (("v", self.type), ("ts", pa.int64()), ("src", pa.int64()), ("seq", pa.int64()))

    def fold(self, groups: Groups, columns: Sequence[pa.Array]) -> States:
        ts, src, seq = (column.to_numpy() for column in columns[1:])
        if not len(ts):  # any tuple counts before none
            never = pa.array(np.full(groups.n, MIN_US if self.last else MAX_US))
            return [pa.nulls(groups.n, self.type), never, never, never]
        rows = rows_in_order(ts, src, seq)
        rows = rows if self.last else rows[::-1]
        chosen = np.empty(groups.n, np.int64)
        chosen[groups.codes[rows]] = rows  # the last row of a group stays
        picked = pa.array(chosen)
        return [column.take(picked) for column in columns]


def rows_in_order(ts: Ints, src: Ints, seq: Ints) -> Ints:
    """The permutation that sorts rows by (ts, src, seq); one pass if they are sorted already."""
    same = ts[1:] == ts[:-1]
    later = (src[1:] > src[:-1]) | ((src[1:] == src[:-1]) & (seq[1:] >= seq[:-1]))
    if bool(np.all((ts[1:] > ts[:-1]) | (same & later))):
        return np.arange(len(ts))
    return np.lexsort((seq, src, ts))


FIRST = AggregateFunction(
    name="first",
    python="first",
    sql=("FIRST", "FIRST_VALUE"),
    doc="The value of the first row in the total order, even if it is NULL.",
    arguments=(ANYTHING,),
    skips_null=False,
    filtered="min_by",
    in_order=True,
    edge=0,
    family=lambda type_: EdgeValue(type_, last=False),
)
LAST = AggregateFunction(
    name="last",
    python="last",
    sql=("LAST", "LAST_VALUE"),
    doc="The value of the last row in the total order, even if it is NULL.",
    arguments=(ANYTHING,),
    skips_null=False,
    filtered="last_by",
    in_order=True,
    edge=-1,
    family=lambda type_: EdgeValue(type_, last=True),
)
