"""PERCENTILE_CONT, PERCENTILE_DISC and APPROX_PERCENTILE: exact, over sorted lists of values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.operate.aggregate.definition import (
    NUMBER,
    TIME_OR_NUMBER,
    AggregateFunction,
    DescendingFunction,
    WithinFunction,
)
from tidegate.operate.aggregate.functions.holistic import Quantile
from tidegate.operate.aggregate.parameter import Parameter
from tidegate.operate.kernels.family import States
from tidegate.operate.kernels.group import Groups
from tidegate.operate.kernels.lists import as_lists, inside_lists, list_sizes
from tidegate.operate.kernels.order import Floats, Ints, canonical, floats, ordered, valid
from tidegate.operate.kernels.sort import sorted_rows

_FRACTION = Parameter("fraction", "fraction", 0, 1)


@dataclass(frozen=True)
class QuantileFromAbove(Quantile):
    """The quantile of the values in descending order."""

    def of_places(self, sizes: Ints, places: Callable[[Ints], tuple[Floats, Floats]]) -> pa.Array:
        place = self._place(sizes)
        below = np.maximum(sizes - 1 - np.ceil(place).astype(np.int64), 0)
        second, first = places(below)
        first = np.where(place == np.floor(place), second, first)
        return self._between(first, second, place, sizes == 0)


@dataclass(frozen=True)
class DiscretePercentile:
    """The first value v, in this order, such that at least this share of the values are up to v.

    For any type with an order; NULL for a group of NULLs. The state has the sorted values, with one
    kind of NaN and of zero.
    """

    type: pa.DataType
    fraction: float
    descending: bool = False

    @property
    def state(self) -> tuple[tuple[str, pa.DataType], ...]:
        return (("values", pa.list_(self.type)),)

    @property
    def result(self) -> pa.DataType:
        return self.type

    def fold(self, groups: Groups, columns: Sequence[pa.Array]) -> States:
        values = columns[0].drop_null()
        if values.type != self.type:  # Arrow would round decimals twice
            values = pa.array(floats(values))
        return self._sorted(groups.where(valid(columns[0])), canonical(values))

    def merge(self, groups: Groups, states: Sequence[pa.Array]) -> States:
        return self._sorted(inside_lists(groups, states[0]), states[0].flatten())

    def finish(self, states: Sequence[pa.Array]) -> pa.Array:
        sizes = list_sizes(states[0])
        place = np.maximum(np.ceil(sizes * self.fraction).astype(np.int64) - 1, 0)
        place = sizes - 1 - place if self.descending else place
        at = np.cumsum(sizes) - sizes + place
        return states[0].flatten().take(pa.array(at, mask=sizes == 0))

    def _sorted(self, groups: Groups, values: pa.Array) -> States:
        order = sorted_rows(groups, ordered(values).keys)
        return as_lists(groups.counts, [values.take(pa.array(order))])


PERCENTILE_CONT = WithinFunction(
    name="percentile_cont",
    python="percentile_cont",
    sql=("PERCENTILE_CONT",),
    doc="The quantile, interpolated; with DESC it counts from the greatest value on.",
    arguments=(NUMBER,),
    parameters=(_FRACTION,),
    means=("quantile", ()),
    descending="percentile_cont_desc",
    holistic=True,
    family=lambda _, fraction: Quantile(fraction),
)
PERCENTILE_CONT_DESC = DescendingFunction(
    name="percentile_cont_desc",
    word="PERCENTILE_CONT",
    doc="The quantile that counts from the greatest value on.",
    arguments=(NUMBER,),
    parameters=(_FRACTION,),
    holistic=True,
    family=lambda _, fraction: QuantileFromAbove(fraction),
)
PERCENTILE_DISC = WithinFunction(
    name="percentile_disc",
    python="percentile_disc",
    sql=("PERCENTILE_DISC",),
    doc="The smallest value that reaches this share of the values, as a double.",
    arguments=(NUMBER,),
    parameters=(_FRACTION,),
    descending="percentile_disc_desc",
    holistic=True,
    family=lambda _, fraction: DiscretePercentile(pa.float64(), fraction),
)
PERCENTILE_DISC_DESC = DescendingFunction(
    name="percentile_disc_desc",
    word="PERCENTILE_DISC",
    doc="The value that reaches this share of the values from the greatest on, as a double.",
    arguments=(NUMBER,),
    parameters=(_FRACTION,),
    holistic=True,
    family=lambda _, fraction: DiscretePercentile(pa.float64(), fraction, descending=True),
)
APPROX_PERCENTILE = AggregateFunction(
    name="approx_percentile",
    python="approx_percentile",
    sql=("APPROX_PERCENTILE", "PERCENTILE_APPROX"),
    doc="As PERCENTILE_DISC, in the type of its argument; exact, whatever the accuracy.",
    arguments=(TIME_OR_NUMBER,),
    parameters=(_FRACTION, Parameter("accuracy", "accuracy", 1, 2**31 - 1, default=10_000)),
    holistic=True,
    family=lambda type_, fraction, _: DiscretePercentile(type_, fraction),
)
