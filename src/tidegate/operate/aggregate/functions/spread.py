"""SPREAD: how far apart values are, for what is said of estimates; no user can call it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.operate.aggregate.definition import NUMBER, AggregateFunction
from tidegate.operate.aggregate.functions.moment import Moment
from tidegate.operate.kernels.exact_sum import covariances, round_sums
from tidegate.operate.kernels.order import Ints

VALUES, MEAN, VARIANCE = FIELDS = "values", "mean", "variance"
"""The fields of a result: how many values there are, their mean, and their sample variance."""


@dataclass(frozen=True)
class Spread(Moment):
    """The number of values, their mean and their variance; NaN where there are too few for it."""

    root: bool = False
    result = pa.struct([(VALUES, pa.int64()), (MEAN, pa.float64()), (VARIANCE, pa.float64())])

    def finish(self, states: Sequence[pa.Array]) -> pa.Array:
        counts: Ints = states[0].to_numpy()
        _, x, xx = states
        with np.errstate(all="ignore"):
            mean = round_sums(x) / counts
        variance = np.where(counts < 2, np.nan, covariances(counts, 1, x, x, xx))
        return pa.StructArray.from_arrays([states[0], pa.array(mean), pa.array(variance)], FIELDS)


SPREAD = AggregateFunction(
    name="spread",
    python=None,
    doc="How many values there are, their mean and their variance.",
    arguments=(NUMBER,),
    family=lambda _: Spread(),
)
