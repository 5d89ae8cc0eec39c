"""Keeps the arguments of a user's aggregate: they are folded only where a sample fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.operate.aggregate.definition import ANYTHING, MOST_ARGUMENTS, AggregateFunction
from tidegate.operate.kernels.family import States
from tidegate.operate.kernels.group import Groups
from tidegate.operate.kernels.lists import as_lists
from tidegate.operate.kernels.order import Ints


@dataclass(frozen=True)
class Unfolded:
    """All tuples of a group, a list for each argument, in any order; its result is their number.

    The order must not matter to the function that folds them later.
    """

    types: tuple[pa.DataType, ...]
    result = pa.int64()

    @property
    def state(self) -> tuple[tuple[str, pa.DataType], ...]:
        return (("n", pa.int64()), *((f"x{i}", pa.list_(t)) for i, t in enumerate(self.types)))

    def fold(self, groups: Groups, columns: Sequence[pa.Array]) -> States:
        return listed(groups, columns)

    def merge(self, groups: Groups, states: Sequence[pa.Array]) -> States:
        sizes: Ints = states[0].to_numpy()
        inside = Groups(np.repeat(groups.codes, sizes), groups.n)
        return listed(inside, [column.flatten() for column in states[1:]])

    def finish(self, states: Sequence[pa.Array]) -> pa.Array:
        return states[0]


def unfolded_rows(states: Sequence[pa.Array]) -> tuple[Groups, list[pa.Array]]:
    """The tuples in states, with the number of its state as the group of each."""
    sizes: Ints = states[0].to_numpy()
    codes = np.repeat(np.arange(len(sizes)), sizes)
    return Groups(codes, len(sizes)), [column.flatten() for column in states[1:]]


def listed(groups: Groups, columns: Sequence[pa.Array]) -> States:
    """The number of rows of each group, and a list of its rows for each column, in their order.

    Nothing is copied if the rows of each group are adjacent already.
    """
    codes, counts = groups.codes, groups.counts
    if not bool(np.all(codes[1:] >= codes[:-1])):
        picked = pa.array(groups.order)
        columns = [pc.take(column, picked) for column in columns]
    return [pa.array(counts), *as_lists(counts, columns)]


UNFOLDED = AggregateFunction(
    name="unfolded",
    python=None,
    doc="What a user's aggregate is given, kept to be folded where a sample will not do.",
    arguments=(ANYTHING,) * MOST_ARGUMENTS,
    least=0,
    skips_null=False,
    holistic=True,
    family=lambda *types: Unfolded(types),
)
