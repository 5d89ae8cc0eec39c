"""VAR and STDDEV, from the exact sums of values and of their squares that panes keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.operate.aggregate import estimate
from tidegate.operate.aggregate.definition import NUMBER, AggregateFunction
from tidegate.operate.aggregate.functions.exact_sums import ExactSums
from tidegate.operate.kernels.order import Ints
from tidegate.operate.kernels.sum.exact_sum import covariances


@dataclass(frozen=True)
class Moment(ExactSums):
    """The sample variance or its root, of any numbers as doubles; NULL below two values.

    The variance is the double nearest to that of the doubles, the root that of the variance.
    """

    root: bool
    columns = "x"
    products = ((0, 0),)

    def finish(self, states: Sequence[pa.Array]) -> pa.Array:
        counts: Ints = states[0].to_numpy()
        _, x, xx = states
        variance = covariances(counts, 1, x, x, xx)
        return pa.array(np.sqrt(variance) if self.root else variance, mask=counts < 2)


VAR = AggregateFunction(
    name="var",
    python="var",
    sql=("VAR", "VARIANCE", "VAR_SAMP"),
    doc="The sample variance; NULL for a single value.",
    arguments=(NUMBER,),
    estimate=estimate.VARIANCE,
    family=lambda _: Moment(root=False),
)
STDDEV = AggregateFunction(
    name="stddev",
    python="stddev",
    sql=("STDDEV", "STDDEV_SAMP", "STD"),
    doc="The sample standard deviation; NULL for a single value.",
    arguments=(NUMBER,),
    estimate=estimate.DEVIATION,
    family=lambda _: Moment(root=True),
)
