"""CORR, COVAR_SAMP and COVAR_POP, from the exact sums of values and products that panes keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.operate.aggregate.definition import NUMBER, AggregateFunction
from tidegate.operate.aggregate.functions.exact_sums import ExactSums
from tidegate.operate.kernels.order import Ints
from tidegate.operate.kernels.sum.exact_sum import correlations, covariances

_X, _Y = 0, 1


@dataclass(frozen=True)
class Covariance(ExactSums):
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
class Correlation(ExactSums):
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
    doc="Pearson's correlation of two columns; NULL if one of them does not vary.",
    arguments=(NUMBER, NUMBER),
    decides=0,
    family=lambda *_: Correlation(),
)
COVAR_SAMP = AggregateFunction(
    name="covar_samp",
    python="covar_samp",
    sql=("COVAR_SAMP",),
    doc="The sample covariance of two columns; NULL for a single pair.",
    arguments=(NUMBER, NUMBER),
    decides=0,
    family=lambda *_: Covariance(sample=True),
)
COVAR_POP = AggregateFunction(
    name="covar_pop",
    python="covar_pop",
    sql=("COVAR_POP",),
    doc="The population covariance of two columns.",
    arguments=(NUMBER, NUMBER),
    decides=0,
    family=lambda *_: Covariance(sample=False),
)
