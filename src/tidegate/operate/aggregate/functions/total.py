"""SUM and AVG: exact totals, which can be added in any order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.operate.aggregate import estimate
from tidegate.operate.aggregate.definition import NUMBER, AggregateFunction
from tidegate.operate.aggregate.functions.exact_sums import ExactSums
from tidegate.operate.kernels.family import Family, States
from tidegate.operate.kernels.group import Groups
from tidegate.operate.kernels.order import Ints, flat, valid
from tidegate.operate.kernels.sum.exact_sum import round_sums
from tidegate.operate.kernels.sum.total import (
    add_limbs,
    carry,
    divide_limbs,
    limb_decimals,
    limb_floats,
    limb_integers,
    slide_integers,
    sum_exact,
    sum_integers,
)


def _numbers(column: pa.Array) -> Ints:
    values: Ints = column.to_numpy()
    return values


@dataclass(frozen=True)
class FloatTotal(ExactSums):
    """SUM and AVG of float and double, as doubles; NULL for a group of NULLs.

    The sum is exact and rounded once; the mean is the rounded sum divided by the count.
    """

    mean: bool
    columns = "s"

    def finish(self, states: Sequence[pa.Array]) -> pa.Array:
        counts, sums = _numbers(states[0]), round_sums(states[1])
        return pa.array(sums / np.maximum(counts, 1) if self.mean else sums, mask=counts == 0)


@dataclass(frozen=True)
class ExactTotal:
    """SUM and AVG of integers and decimals, over exact totals; NULL for a group of NULLs.

    SUM of integers is a bigint and AVG a double; SUM of decimal(p, s) is decimal(p + 10, s) and
    AVG is decimal(p + 4, s + 4), with at most 38 digits. `finish` raises TaskError on overflow.
    """

    type: pa.DataType
    mean: bool

    @property
    def _decimal(self) -> bool:
        return bool(pa.types.is_decimal(self.type))

    @property
    def state(self) -> tuple[tuple[str, pa.DataType], ...]:
        limbs = 4 if self._decimal else 2
        return (("n", pa.int64()), *((f"s{i}", pa.int64()) for i in range(limbs)))

    @property
    def result(self) -> pa.DataType:
        if not self._decimal:
            return pa.float64() if self.mean else pa.int64()
        p, s = self.type.precision, self.type.scale
        if self.mean:
            return pa.decimal128(min(38, p + 4), min(38, s + 4))
        return pa.decimal128(min(38, p + 10), s)

    def fold(self, groups: Groups, columns: Sequence[pa.Array]) -> States:
        groups = groups.where(valid(columns[0]))
        limbs = sum_exact(groups, columns[0].drop_null())
        return [pa.array(groups.counts), *map(pa.array, limbs)]

    def merge(self, groups: Groups, states: Sequence[pa.Array]) -> States:
        counts = sum_integers(groups, _numbers(states[0]))
        limbs = add_limbs(groups, [_numbers(limb) for limb in states[1:]])
        return [pa.array(counts), *map(pa.array, limbs)]

    def finish(self, states: Sequence[pa.Array]) -> pa.Array:
        counts, limbs = _numbers(states[0]), [_numbers(limb) for limb in states[1:]]
        where = "AVG" if self.mean else "SUM"
        if self._decimal:
            if self.mean:
                limbs = divide_limbs(limbs, counts, self.result.scale - self.type.scale)
            return limb_decimals(limbs, self.result, counts > 0, where)
        if self.mean:
            return pa.array(limb_floats(limbs) / np.maximum(counts, 1), mask=counts == 0)
        return pa.array(limb_integers(limbs, where), mask=counts == 0)

    def slide(self, states: Sequence[pa.Array], first: Ints, last: Ints) -> pa.Array:
        counts, *limbs = (slide_integers(_numbers(state), first, last) for state in states)
        return self.finish([pa.array(counts), *map(pa.array, carry(limbs))])


def _total(type_: pa.DataType, mean: bool) -> Family:
    return FloatTotal(mean) if pa.types.is_floating(type_) else ExactTotal(type_, mean)


COUNTED_MEAN_FIELDS = ("mean", "values")
"""The fields of a COUNTED_MEAN."""


@dataclass(frozen=True)
class CountedMean:
    """A mean with the number of values that it is of; its state is that of the mean."""

    mean: Family

    @property
    def state(self) -> tuple[tuple[str, pa.DataType], ...]:
        return self.mean.state

    @property
    def result(self) -> pa.DataType:
        types = (self.mean.result, pa.int64())
        return pa.struct(list(zip(COUNTED_MEAN_FIELDS, types, strict=True)))

    def fold(self, groups: Groups, columns: Sequence[pa.Array]) -> States:
        return self.mean.fold(groups, columns)

    def merge(self, groups: Groups, states: Sequence[pa.Array]) -> States:
        return self.mean.merge(groups, states)

    def finish(self, states: Sequence[pa.Array]) -> pa.Array:
        return pa.StructArray.from_arrays(
            [self.mean.finish(states), flat(states[0])], COUNTED_MEAN_FIELDS
        )


SUM = AggregateFunction(
    name="sum",
    python="sum",
    sql=("SUM",),
    doc="The sum, exact; beyond 64 bits an integer sum is an error.",
    arguments=(NUMBER,),
    scales=True,
    estimate=estimate.SUM,
    family=lambda type_: _total(type_, mean=False),
)
MEAN = AggregateFunction(
    name="mean",
    python="mean",
    sql=("AVG", "MEAN"),
    doc="The mean, rounded once.",
    arguments=(NUMBER,),
    estimate=estimate.MEAN,
    family=lambda type_: _total(type_, mean=True),
)
COUNTED_MEAN = AggregateFunction(
    name="counted_mean",
    python=None,
    doc="The arithmetic mean, and the number of values that it is of.",
    arguments=(NUMBER,),
    family=lambda type_: CountedMean(_total(type_, mean=True)),
)
