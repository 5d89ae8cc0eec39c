"""MODE: the value that occurs most often; of several such values the smallest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.operate.aggregate.definition import ORDERED, DescendingFunction, WithinFunction
from tidegate.operate.kernels.family import States
from tidegate.operate.kernels.group import Groups, run_starts
from tidegate.operate.kernels.lists import as_lists, inside_lists, list_sizes
from tidegate.operate.kernels.order import Ints, canonical, ordered, valid
from tidegate.operate.kernels.sort import sorted_rows
from tidegate.operate.kernels.sum.total import sum_integers


@dataclass(frozen=True)
class Mode:
    """The most frequent value that is not NULL, the smallest or the greatest of those that tie.

    NaN equals NaN and -0.0 equals 0.0. The state has the different values, ascending, and how often
    each occurs.
    """

    type: pa.DataType
    greatest: bool = False

    @property
    def state(self) -> tuple[tuple[str, pa.DataType], ...]:
        return (("values", pa.list_(self.type)), ("counts", pa.list_(pa.int64())))

    @property
    def result(self) -> pa.DataType:
        return self.type

    def fold(self, groups: Groups, columns: Sequence[pa.Array]) -> States:
        groups = groups.where(valid(columns[0]))
        values = canonical(columns[0].drop_null())
        return _counted(groups, values, np.ones(len(values), np.int64))

    def merge(self, groups: Groups, states: Sequence[pa.Array]) -> States:
        values, counts = (state.flatten() for state in states)
        return _counted(inside_lists(groups, states[0]), values, counts.to_numpy())

    def finish(self, states: Sequence[pa.Array]) -> pa.Array:
        sizes = list_sizes(states[0])
        counts: Ints = states[1].flatten().to_numpy()
        codes = np.repeat(np.arange(len(sizes)), sizes)
        most = np.zeros(len(sizes), np.int64)
        np.maximum.at(most, codes, counts)
        found = np.flatnonzero(counts == most[codes])
        found = found if self.greatest else found[::-1]
        chosen = np.full(len(sizes), -1, np.int64)
        chosen[codes[found]] = found  # the last value of a group stays
        return states[0].flatten().take(pa.array(chosen, mask=chosen < 0))


def _counted(groups: Groups, values: pa.Array, counts: Ints) -> States:
    """The different values of each group, ascending, and the sums of their counts."""
    if len(values) == 0:
        return as_lists(np.zeros(groups.n, np.int64), [values, pa.array(counts)])
    coded = ordered(values)
    order = sorted_rows(groups, coded.keys)
    codes, keys = groups.codes[order], coded.keys[order]
    new = run_starts(codes, keys)
    runs = Groups(np.cumsum(new) - 1, int(new.sum()))
    totals = pa.array(sum_integers(runs, counts[order]))
    sizes = np.bincount(codes[new], minlength=groups.n)
    return as_lists(sizes, [coded.decode(keys[new]), totals])


MODE = WithinFunction(
    name="mode",
    python="mode",
    sql=("MODE",),
    doc="The most frequent value; of several the smallest, with DESC the greatest.",
    arguments=(ORDERED,),
    descending="mode_desc",
    holistic=True,
    family=Mode,
)
MODE_DESC = DescendingFunction(
    name="mode_desc",
    word="MODE",
    doc="The most frequent value; of several the greatest.",
    arguments=(ORDERED,),
    holistic=True,
    family=lambda type_: Mode(type_, greatest=True),
)
