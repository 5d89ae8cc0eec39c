"""APPROX_COUNT_DISTINCT: the number of different values, from sketches of a bounded size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.operate.aggregate.definition import ORDERED, AggregateFunction
from tidegate.operate.aggregate.parameter import Parameter
from tidegate.operate.kernels.family import States
from tidegate.operate.kernels.group import Groups
from tidegate.operate.kernels.hyperloglog import (
    LEAST_LG_K,
    MOST_LG_K,
    SKETCH,
    Sketches,
    Words,
)
from tidegate.operate.kernels.order import valid
from tidegate.route.bucket import hash_of

_ERROR = 1.04
"""The relative standard error of a sketch is this divided by the square root of its registers."""


@dataclass(frozen=True)
class ApproximateCount:
    """An estimate of how many different values are not NULL, from a HyperLogLog sketch.

    Its relative standard error is at most 1.04 / sqrt(registers) <= rsd, checked in
    `tests/operate/aggregate/test_approximate.py`; while there are at most 3/32 as many values as
    registers it is as good as exact. The estimate depends on the set of values alone, to the last
    bit. A sketch takes four bytes for each value until then, and one for each register after.
    """

    rsd: float
    state = (("sketch", SKETCH),)
    result = pa.int64()

    @property
    def sketches(self) -> Sketches:
        """The smallest sketches that keep the promise."""
        lg_k = math.ceil(2 * math.log2(_ERROR / self.rsd))
        return Sketches(min(max(lg_k, LEAST_LG_K), MOST_LG_K))

    def fold(self, groups: Groups, columns: Sequence[pa.Array]) -> States:
        groups = groups.where(valid(columns[0]))
        words = _words(columns[0].drop_null())
        return [self.sketches.made(groups.codes, words, groups.n)]

    def merge(self, groups: Groups, states: Sequence[pa.Array]) -> States:
        return [self.sketches.merged(groups.codes, states[0], groups.n)]

    def finish(self, states: Sequence[pa.Array]) -> pa.Array:
        estimates = self.sketches.estimates(states[0])
        return pa.array(np.floor(estimates + 0.5).astype(np.int64))


def _words(column: pa.Array) -> Words:
    """A 64-bit hash of every value; different texts are hashed once each.

    The hash must never change: a checkpoint has sketches that were made with it.
    """
    if len(column) == 0:
        return np.empty(0, np.uint64)
    if not (pa.types.is_string(column.type) or pa.types.is_binary(column.type)):
        return hash_of([column])
    encoded = column.dictionary_encode()
    words: Words = hash_of([encoded.dictionary])[encoded.indices.to_numpy()]
    return words


APPROX_COUNT_DISTINCT = AggregateFunction(
    name="approx_count_distinct",
    python="approx_count_distinct",
    sql=("APPROX_COUNT_DISTINCT",),
    doc="About how many different values there are; `rsd` is the relative deviation.",
    arguments=(ORDERED,),
    parameters=(Parameter("rsd", "relative standard deviation", 0.001, 0.39, default=0.05),),
    distinct="approx_count_distinct",
    unsampled="it is estimated from a sketch, whose error is its own parameter",
    unscaled="how many values only shed tuples have cannot be told from the others",
    family=lambda _, rsd: ApproximateCount(rsd),
)
