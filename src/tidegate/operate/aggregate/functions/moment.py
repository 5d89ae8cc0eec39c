"""VAR and STDDEV, from the (count, mean, squared deviations) that panes keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.operate.aggregate.definition import NUMBER, AggregateFunction
from tidegate.operate.kernels.family import States
from tidegate.operate.kernels.group import Groups
from tidegate.operate.kernels.order import floats, valid
from tidegate.operate.kernels.total import sum_floats


@dataclass(frozen=True)
class Moment:
    """The sample variance or its root, of any numbers as doubles; NULL below two values.

    A fold makes two passes (the mean, then deviations from it); merges use Chan's formula.
    """

    root: bool
    state = (("n", pa.int64()), ("mean", pa.float64()), ("m2", pa.float64()))
    result = pa.float64()

    def fold(self, groups: Groups, columns: Sequence[pa.Array]) -> States:
        groups = groups.where(valid(columns[0]))
        values = floats(columns[0].drop_null())
        counts = np.maximum(groups.counts, 1)
        with np.errstate(invalid="ignore", over="ignore"):
            mean = sum_floats(groups, values) / counts
            away = values - mean[groups.codes]
            drift = sum_floats(groups, away)
            m2 = sum_floats(groups, away * away) - drift * drift / counts
            mean = mean + drift / counts
        return [pa.array(groups.counts), pa.array(mean), pa.array(np.maximum(m2, 0.0))]

    def merge(self, groups: Groups, states: Sequence[pa.Array]) -> States:
        counts = np.zeros(groups.n, np.int64)
        mean, m2 = np.zeros(groups.n), np.zeros(groups.n)
        other_counts = states[0].to_numpy()
        other_mean, other_m2 = floats(states[1]), floats(states[2])
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            for group, row in groups.rounds():
                na, nb = counts[group], other_counts[row]
                n = na + nb
                step = other_mean[row] - mean[group]
                joined = mean[group] + step * (nb / n)
                spread = m2[group] + other_m2[row] + step * step * (na * (nb / n))
                take, keep = na == 0, nb == 0
                mean[group] = np.where(take, other_mean[row], np.where(keep, mean[group], joined))
                m2[group] = np.where(take, other_m2[row], np.where(keep, m2[group], spread))
                counts[group] = n
        return [pa.array(counts), pa.array(mean), pa.array(m2)]

    def finish(self, states: Sequence[pa.Array]) -> pa.Array:
        counts = states[0].to_numpy()
        variance = floats(states[2]) / np.maximum(counts - 1, 1)
        return pa.array(np.sqrt(variance) if self.root else variance, mask=counts < 2)


VAR = AggregateFunction(
    name="var",
    python="var",
    sql=("VAR", "VARIANCE", "VAR_SAMP"),
    doc="The sample variance; NULL for a single value.",
    arguments=(NUMBER,),
    family=lambda _: Moment(root=False),
)
STDDEV = AggregateFunction(
    name="stddev",
    python="stddev",
    sql=("STDDEV", "STDDEV_SAMP", "STD"),
    doc="The sample standard deviation; NULL for a single value.",
    arguments=(NUMBER,),
    family=lambda _: Moment(root=True),
)
