"""VAR and STDDEV, from the exact sums of values and of their squares that panes keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.operate.aggregate import estimate
from tidegate.operate.aggregate.definition import NUMBER, AggregateFunction
from tidegate.operate.kernels.exact_sum import (
    KEPT_SUM,
    add_sums,
    covariances,
    slide_sums,
    sum_products,
    sum_values,
)
from tidegate.operate.kernels.family import States
from tidegate.operate.kernels.group import Groups
from tidegate.operate.kernels.order import Ints, floats, valid
from tidegate.operate.kernels.total import slide_integers, sum_integers


@dataclass(frozen=True)
class Moment:
    """The sample variance or its root, of any numbers as doubles; NULL below two values.

    The variance is the double nearest to that of the doubles, the root that of the variance.
    """

    root: bool
    state = (("n", pa.int64()), ("x", KEPT_SUM), ("xx", KEPT_SUM))
    result = pa.float64()

    def fold(self, groups: Groups, columns: Sequence[pa.Array]) -> States:
        groups = groups.where(valid(columns[0]))
        values = floats(columns[0].drop_null())
        sums = sum_values(groups, values), sum_products(groups, values, values)
        return [pa.array(groups.counts), *sums]

    def merge(self, groups: Groups, states: Sequence[pa.Array]) -> States:
        counts = sum_integers(groups, states[0].to_numpy())
        return [pa.array(counts), *(add_sums(groups, sums) for sums in states[1:])]

    def finish(self, states: Sequence[pa.Array]) -> pa.Array:
        counts: Ints = states[0].to_numpy()
        _, x, xx = states
        variance = covariances(counts, 1, x, x, xx)
        return pa.array(np.sqrt(variance) if self.root else variance, mask=counts < 2)

    def slide(self, states: Sequence[pa.Array], first: Ints, last: Ints) -> pa.Array:
        counts = slide_integers(states[0].to_numpy(), first, last)
        sums = [slide_sums(column, first, last) for column in states[1:]]
        return self.finish([pa.array(counts), *sums])


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
