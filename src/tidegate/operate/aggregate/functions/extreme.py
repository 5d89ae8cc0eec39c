"""MIN, MAX, BOOL_AND and BOOL_OR: a pane keeps one value of each group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.operate.aggregate.definition import BOOLEAN, ORDERED, AggregateFunction
from tidegate.operate.aggregate.functions.edge import ChosenValue
from tidegate.operate.kernels.family import States
from tidegate.operate.kernels.group import Groups
from tidegate.operate.kernels.order import ordered, spread, valid

_INT = np.iinfo(np.int64)


@dataclass(frozen=True)
class Extreme(ChosenValue):
    """The smallest or largest value that is not NULL; NaN is greatest, -0.0 below 0.0."""

    largest: bool

    @property
    def state(self) -> tuple[tuple[str, pa.DataType], ...]:
        return (("v", self.type),)

    def fold(self, groups: Groups, columns: Sequence[pa.Array]) -> States:
        groups = groups.where(valid(columns[0]))
        values = ordered(columns[0].drop_null())
        best = np.full(groups.n, _INT.min if self.largest else _INT.max, np.int64)
        (np.maximum if self.largest else np.minimum).at(best, groups.codes, values.keys)
        has = groups.counts > 0
        return [spread(values.decode(best[has]), has)]


MIN = AggregateFunction(
    name="min",
    python="min",
    sql=("MIN",),
    doc="The smallest value.",
    arguments=(ORDERED,),
    distinct="min",
    family=lambda type_: Extreme(type_, largest=False),
)
MAX = AggregateFunction(
    name="max",
    python="max",
    sql=("MAX",),
    doc="The greatest value; NaN is greater than any number.",
    arguments=(ORDERED,),
    distinct="max",
    family=lambda type_: Extreme(type_, largest=True),
)
BOOL_AND = AggregateFunction(
    name="bool_and",
    python="bool_and",
    sql=("BOOL_AND", "EVERY"),
    doc="Whether the condition holds in all rows in which it is not NULL.",
    arguments=(BOOLEAN,),
    distinct="bool_and",
    family=MIN.family,
)
BOOL_OR = AggregateFunction(
    name="bool_or",
    python="bool_or",
    sql=("BOOL_OR", "SOME", "ANY"),
    doc="Whether the condition holds in at least one row.",
    arguments=(BOOLEAN,),
    distinct="bool_or",
    family=MAX.family,
)
