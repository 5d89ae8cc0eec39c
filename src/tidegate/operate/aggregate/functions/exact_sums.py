"""The base of functions that are computed from exact sums, which can be added in any order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import pyarrow as pa

from tidegate.operate.kernels.family import States
from tidegate.operate.kernels.group import Groups
from tidegate.operate.kernels.order import Ints, floats, valid
from tidegate.operate.kernels.sum.exact_sum import (
    KEPT_SUM,
    add_sums,
    slide_sums,
    sum_products,
    sum_values,
)
from tidegate.operate.kernels.sum.total import slide_integers, sum_integers


class ExactSums:
    """Exact sums of one or two columns and of products, over tuples in which none is NULL."""

    columns: ClassVar[str] = "xy"
    """The names of the columns in the state, one letter each."""

    products: ClassVar[tuple[tuple[int, int], ...]] = ()
    """The pairs of columns whose sum of products is kept."""

    result = pa.float64()

    @property
    def state(self) -> tuple[tuple[str, pa.DataType], ...]:
        sums = (self.columns[a] + self.columns[b] for a, b in self.products)
        return (("n", pa.int64()), *((name, KEPT_SUM) for name in (*self.columns, *sums)))

    def fold(self, groups: Groups, columns: Sequence[pa.Array]) -> States:
        if any(column.null_count == len(column) for column in columns):
            groups = Groups(np.empty(0, np.int64), groups.n)
            columns = [column.slice(0, 0) for column in columns]
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
