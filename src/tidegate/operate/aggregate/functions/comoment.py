"""CORR, COVAR_SAMP and COVAR_POP, from the exact sums of values and products that panes keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from tidegate.operate.aggregate.definition import NUMBER, AggregateFunction
from tidegate.operate.kernels.exact_sum import (
    KEPT_SUM,
    add_sums,
    correlations,
    covariances,
    slide_sums,
    sum_products,
    sum_values,
)
from tidegate.operate.kernels.family import States
from tidegate.operate.kernels.group import Groups
from tidegate.operate.kernels.order import Ints, floats, valid
from tidegate.operate.kernels.total import slide_integers, sum_integers

_X, _Y = 0, 1


class Comoment:
    """Exact sums of x, of y and of products, over pairs in which neither is NULL."""

    products: ClassVar[tuple[tuple[int, int], ...]]
    """Which sums are kept: of (x, y), of (x, x), of (y, y)."""

    result = pa.float64()

    @property
    def state(self) -> tuple[tuple[str, pa.DataType], ...]:
        sums = ("xy"[a] + "xy"[b] for a, b in self.products)
        return (("n", pa.int64()), *((name, KEPT_SUM) for name in ("x", "y", *sums)))

    def fold(self, groups: Groups, columns: Sequence[pa.Array]) -> States:
        masks = [mask for mask in map(valid, columns) if mask is not None]
        if masks:
            both = np.logical_and.reduce(masks)
            groups, columns = groups.where(both), [c.filter(pa.array(both)) for c in columns]
        values = [floats(column) for column in columns]
        sums = [sum_values(groups, column) for column in values]
        sums += [sum_products(groups, values[a], values[b]) for a, b in self.products]
        return [pa.array(groups.counts), *sums]

    def merge(self, groups: Groups, states: Sequence[pa.Array]) -> States:
        counts = sum_integers(groups, states[0].to_numpy())
        return [pa.array(counts), *(add_sums(groups, sums) for sums in states[1:])]

    def slide(self, states: Sequence[pa.Array], first: Ints, last: Ints) -> pa.Array:
        counts = slide_integers(states[0].to_numpy(), first, last)
        sums = [slide_sums(column, first, last) for column in states[1:]]
        return self.finish([pa.array(counts), *sums])

    def finish(self, states: Sequence[pa.Array]) -> pa.Array:
        raise NotImplementedError


@dataclass(frozen=True)
class Covariance(Comoment):
    """The covariance of a sample, NULL below two pairs, or of a population, NULL without pairs.

    It is the double nearest to that of the doubles.
    """

    sample: bool
    products = ((_X, _Y),)

    def finish(self, states: Sequence[pa.Array]) -> pa.Array:
        counts: Ints = states[0].to_numpy()
        less = 1 if self.sample else 0
        return pa.array(covariances(counts, less, *states[1:]), mask=counts <= less)


@dataclass(frozen=True)
class Correlation(Comoment):
    """Pearson's correlation; NULL below two pairs and where one column does not vary.

    It is off by a few units in the last place, and exactly 1 or -1 where y is k * x, k a power of
    two or its negative.
    """

    products = ((_X, _Y), (_X, _X), (_Y, _Y))

    def finish(self, states: Sequence[pa.Array]) -> pa.Array:
        counts: Ints = states[0].to_numpy()
        found = correlations(counts, *states[1:])
        return pa.array(found, mask=(counts < 2) | np.isinf(found))


CORR = AggregateFunction(
    name="corr",
    python="corr",
    sql=("CORR",),
    doc="Pearson's correlation of two columns; NULL where one of them does not vary.",
    arguments=(NUMBER, NUMBER),
    decides=0,
    family=lambda *_: Correlation(),
)
COVAR_SAMP = AggregateFunction(
    name="covar_samp",
    python="covar_samp",
    sql=("COVAR_SAMP",),
    doc="The covariance of two columns of a sample; NULL for a single pair.",
    arguments=(NUMBER, NUMBER),
    decides=0,
    family=lambda *_: Covariance(sample=True),
)
COVAR_POP = AggregateFunction(
    name="covar_pop",
    python="covar_pop",
    sql=("COVAR_POP",),
    doc="The covariance of two columns of a population.",
    arguments=(NUMBER, NUMBER),
    decides=0,
    family=lambda *_: Covariance(sample=False),
)
