"""SPREAD: mean and variance of values, for the figures of estimates; users cannot call it.

No result depends on it, so its sums need not be exact: they are doubles, which cost little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.operate.aggregate.definition import NUMBER, AggregateFunction
from tidegate.operate.kernels.family import States
from tidegate.operate.kernels.group import Groups
from tidegate.operate.kernels.order import Floats, floats, valid
from tidegate.operate.kernels.sum.total import sum_integers

VALUES, MEAN, VARIANCE = FIELDS = "values", "mean", "variance"
"""The fields of a result: how many values there are, their mean, and their sample variance."""


@dataclass(frozen=True)
class Spread:
    """The number of values, their mean and their variance; NaN where there are too few for it."""

    state = (("n", pa.int64()), ("x", pa.float64()), ("xx", pa.float64()))
    result = pa.struct([(VALUES, pa.int64()), (MEAN, pa.float64()), (VARIANCE, pa.float64())])

    def fold(self, groups: Groups, columns: Sequence[pa.Array]) -> States:
        groups = groups.where(valid(columns[0]))
        values = floats(columns[0].drop_null())
        with np.errstate(all="ignore"):
            sums = (_sums(groups, values), _sums(groups, values * values))
        return [pa.array(groups.counts), *map(pa.array, sums)]

    def merge(self, groups: Groups, states: Sequence[pa.Array]) -> States:
        counts = sum_integers(groups, states[0].to_numpy())
        return [pa.array(counts), *(pa.array(_sums(groups, s.to_numpy())) for s in states[1:])]

    def finish(self, states: Sequence[pa.Array]) -> pa.Array:
        counts, x, xx = (state.to_numpy().astype(np.float64) for state in states)
        with np.errstate(all="ignore"):
            mean = x / counts
            variance = np.maximum(xx - x * mean, 0.0) / (counts - 1)
        variance[counts < 2] = np.nan
        return pa.StructArray.from_arrays([states[0], pa.array(mean), pa.array(variance)], FIELDS)


def _sums(groups: Groups, values: Floats) -> Floats:
    sums = np.bincount(groups.codes, weights=values, minlength=groups.n)
    return sums.astype(np.float64, copy=False)  # of no values they would be integers


SPREAD = AggregateFunction(
    name="spread",
    python=None,
    doc="How many values there are, their mean and their variance.",
    arguments=(NUMBER,),
    family=lambda _: Spread(),
)
