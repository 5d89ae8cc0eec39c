"""COUNT and COUNT_IF: how many tuples there are, or of a kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from tidegate.operate.aggregate.definition import ANYTHING, BOOLEAN, AggregateFunction
from tidegate.operate.kernels.family import States
from tidegate.operate.kernels.group import Groups
from tidegate.operate.kernels.order import Ints, Mask, valid
from tidegate.operate.kernels.sum.total import slide_integers, sum_integers


@dataclass(frozen=True)
class Count:
    """COUNT(*) without columns; with columns, the rows in which none of them is NULL."""

    state = (("n", pa.int64()),)
    result = pa.int64()

    def fold(self, groups: Groups, columns: Sequence[pa.Array]) -> States:
        mask: Mask | None = None
        for column in columns:
            present = valid(column)
            if present is not None:
                mask = present if mask is None else mask & present
        return [pa.array(groups.where(mask).counts)]

    def merge(self, groups: Groups, states: Sequence[pa.Array]) -> States:
        return [pa.array(sum_integers(groups, states[0].to_numpy()))]

    def finish(self, states: Sequence[pa.Array]) -> pa.Array:
        return states[0]

    def slide(self, states: Sequence[pa.Array], first: Ints, last: Ints) -> pa.Array:
        return pa.array(slide_integers(states[0].to_numpy(), first, last))


class CountTrue(Count):
    """The rows in which the column is true."""

    def fold(self, groups: Groups, columns: Sequence[pa.Array]) -> States:
        mask: Mask = columns[0].fill_null(False).to_numpy(zero_copy_only=False)
        return [pa.array(groups.where(mask).counts)]


COUNT = AggregateFunction(
    name="count",
    python="count",
    sql=("COUNT",),
    doc="The number of rows; with an argument, of those in which it is not NULL.",
    arguments=(ANYTHING,),
    least=0,
    distinct="distinct",
    scales=True,
    family=lambda *_: Count(),
)
COUNT_IF = AggregateFunction(
    name="count_if",
    python="count_if",
    sql=("COUNT_IF",),
    doc="The number of rows in which the condition holds.",
    arguments=(BOOLEAN,),
    scales=True,
    family=lambda _: CountTrue(),
)
