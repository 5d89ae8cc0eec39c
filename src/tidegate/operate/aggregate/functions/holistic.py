"""QUANTILE, MEDIAN and COUNT(DISTINCT): exact, over the sorted lists of values that panes keep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.operate.aggregate.definition import (
    NUMBER,
    ORDERED,
    AggregateFunction,
)
from tidegate.operate.aggregate.estimate import QUANTILES
from tidegate.operate.aggregate.parameter import Parameter
from tidegate.operate.kernels.family import States
from tidegate.operate.kernels.group import Groups, rank_integers, run_starts
from tidegate.operate.kernels.lists import as_lists, inside_lists, list_bounds, list_sizes
from tidegate.operate.kernels.order import (
    Floats,
    Ints,
    Mask,
    canonical,
    floats,
    one_zero,
    ordered,
    valid,
)
from tidegate.operate.kernels.sort import sorted_rows, sorted_values
from tidegate.operate.kernels.window.slide import Sliding, distinct_counts


@dataclass(frozen=True)
class Quantile:
    """Spark's `percentile`: exact, linear between neighbours, of any numbers as doubles."""

    fraction: float
    state = (("values", pa.list_(pa.float64())),)
    result = pa.float64()

    def fold(self, groups: Groups, columns: Sequence[pa.Array]) -> States:
        groups = groups.where(valid(columns[0]))
        return _sorted_lists(groups, one_zero(floats(columns[0].drop_null())))

    def merge(self, groups: Groups, states: Sequence[pa.Array]) -> States:
        return _sorted_lists(inside_lists(groups, states[0]), floats(states[0].flatten()))

    def finish(self, states: Sequence[pa.Array]) -> pa.Array:
        sizes = list_sizes(states[0])
        values = floats(states[0].flatten())
        starts = np.cumsum(sizes) - sizes

        def places(place: Ints) -> tuple[Floats, Floats]:
            at = np.minimum(starts + place, len(values) - 1)
            return values[at], values[np.minimum(at + 1, len(values) - 1)]

        if len(values) == 0:
            return pa.nulls(len(sizes), pa.float64())
        return self.of_places(sizes, places)

    def slide(self, states: Sequence[pa.Array], first: Ints, last: Ints) -> pa.Array:
        first, last = list_bounds(states[0], first), list_bounds(states[0], last)
        values = floats(states[0].flatten())
        return self.of_places(last - first, Sliding(values, first, last).places)

    def of_places(self, sizes: Ints, places: Callable[[Ints], tuple[Floats, Floats]]) -> pa.Array:
        """The quantiles of groups of these sizes.

        `places` gives the values at places among the sorted values of the groups, and the next
        values.
        """
        place = self._place(sizes)
        below, above = places(np.floor(place).astype(np.int64))
        return self._between(below, above, place, sizes == 0)

    def _place(self, sizes: Ints) -> Floats:
        """The place of the quantile among the sorted values, which may be between two of them."""
        place: Floats = np.maximum(sizes - 1, 0) * self.fraction
        return place

    def _between(self, below: Floats, above: Floats, place: Floats, empty: Mask) -> pa.Array:
        low, high = np.floor(place), np.ceil(place)
        above = np.where(low == high, below, above)
        with np.errstate(invalid="ignore", over="ignore"):
            between = (high - place) * below + (place - low) * above
        return pa.array(np.where(below == above, below, between), mask=empty)


@dataclass(frozen=True)
class DistinctValues:
    """The different values that are not NULL, ascending; NaN equals NaN and -0.0 equals 0.0."""

    type: pa.DataType

    @property
    def result(self) -> pa.DataType:
        return pa.list_(self.type)

    @property
    def state(self) -> tuple[tuple[str, pa.DataType], ...]:
        return (("values", pa.list_(self.type)),)

    def fold(self, groups: Groups, columns: Sequence[pa.Array]) -> States:
        groups = groups.where(valid(columns[0]))
        return _distinct_lists(groups, columns[0].drop_null())

    def merge(self, groups: Groups, states: Sequence[pa.Array]) -> States:
        return _distinct_lists(inside_lists(groups, states[0]), states[0].flatten())

    def finish(self, states: Sequence[pa.Array]) -> pa.Array:
        return states[0]


@dataclass(frozen=True)
class Distinct(DistinctValues):
    """How many different values that are not NULL."""

    @property
    def result(self) -> pa.DataType:
        return pa.int64()

    def finish(self, states: Sequence[pa.Array]) -> pa.Array:
        return pa.array(list_sizes(states[0]))

    def slide(self, states: Sequence[pa.Array], first: Ints, last: Ints) -> pa.Array:
        codes = rank_integers(ordered(states[0].flatten()).keys)
        bounds = list_bounds(states[0], first), list_bounds(states[0], last)
        return pa.array(distinct_counts(codes.codes, codes.size, *bounds))


def _sorted_lists(groups: Groups, values: Floats) -> States:
    return as_lists(groups.counts, [pa.array(sorted_values(groups, values))])


def _distinct_lists(groups: Groups, column: pa.Array) -> States:
    values = ordered(canonical(column))
    order = sorted_rows(groups, values.keys)
    codes, keys = groups.codes[order], values.keys[order]
    new = run_starts(codes, keys)
    counts = np.bincount(codes[new], minlength=groups.n)
    return as_lists(counts, [values.decode(keys[new])])


QUANTILE = AggregateFunction(
    name="quantile",
    python="quantile",
    sql=("QUANTILE", "PERCENTILE"),
    doc="The exact quantile, interpolated linearly between two values.",
    arguments=(NUMBER,),
    parameters=(Parameter("fraction", "fraction", 0, 1),),
    holistic=True,
    estimate=QUANTILES,
    family=lambda _, fraction: Quantile(fraction),
)
MEDIAN = AggregateFunction(
    name="median",
    python="median",
    sql=("MEDIAN",),
    doc="The quantile at 0.5.",
    arguments=(NUMBER,),
    means=("quantile", (0.5,)),
    holistic=True,
    family=lambda _: Quantile(0.5),
)
DISTINCT = AggregateFunction(
    name="distinct",
    python="count_distinct",
    doc="The exact number of different values that are not NULL.",
    arguments=(ORDERED,),
    holistic=True,
    unscaled="how many values only shed tuples have cannot be told from the others",
    unsampled="a sample does not hold the values that are rare",
    form="count(DISTINCT {inside})",
    family=Distinct,
)
