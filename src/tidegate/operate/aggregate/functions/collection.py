"""Implements ARRAY_AGG, STRING_AGG and COLLECT_SET: the values as a list or as one text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.operate.aggregate.definition import (
    ANYTHING,
    ORDERED,
    TEXT,
    AggregateFunction,
    OrderedFunction,
)
from tidegate.operate.aggregate.functions.holistic import DistinctValues
from tidegate.operate.aggregate.parameter import Text, Way
from tidegate.operate.kernels.family import Family, States
from tidegate.operate.kernels.group import Groups, rank
from tidegate.operate.kernels.lists import as_lists, inside_lists, list_sizes
from tidegate.operate.kernels.order import Ints, valid

_SOME_ONLY = "a list of some of the values is not one of all"
_SEPARATOR = Text("separator", "separator", "")
_PLACE = ("ts", "src", "seq")


@dataclass(frozen=True)
class Gathered:
    """The values that are not NULL, by keys and then in the total order; an empty list for none.

    Its columns are the value, a key for each of `ways`, then ts, src and seq. Its state is a sorted
    list of each of them, so that the state is the same for any division of the rows.
    """

    type: pa.DataType
    keys: tuple[pa.DataType, ...]
    ways: tuple[Way, ...]

    @property
    def state(self) -> tuple[tuple[str, pa.DataType], ...]:
        keys = ((f"k{i}", pa.list_(type_)) for i, type_ in enumerate(self.keys))
        return (("v", pa.list_(self.type)), *keys, *((n, pa.list_(pa.int64())) for n in _PLACE))

    @property
    def result(self) -> pa.DataType:
        return pa.list_(self.type)

    def fold(self, groups: Groups, columns: Sequence[pa.Array]) -> States:
        mask = valid(columns[0])
        if mask is not None:
            columns = [column.filter(pa.array(mask)) for column in columns]
        return self._lists(groups.where(mask), columns)

    def merge(self, groups: Groups, states: Sequence[pa.Array]) -> States:
        return self._lists(inside_lists(groups, states[0]), [s.flatten() for s in states])

    def finish(self, states: Sequence[pa.Array]) -> pa.Array:
        return states[0]

    def _lists(self, groups: Groups, columns: Sequence[pa.Array]) -> States:
        """The rows of each group as sorted lists; one pass if they are sorted already."""
        keys = [_placed(c, way) for c, way in zip(columns[1:], self.ways, strict=False)]
        sort_keys = [groups.codes, *keys, *(c.to_numpy() for c in columns[-len(_PLACE) :])]
        if not _ascending(sort_keys):
            picked = pa.array(np.lexsort(sort_keys[::-1]))
            columns = [column.take(picked) for column in columns]
        return as_lists(groups.counts, columns)


def _placed(column: pa.Array, way: Way) -> Ints:
    """Numbers in the order of a key with its direction; NULL is the lowest or the highest."""
    ranked = rank(column)
    codes = ranked.size - ranked.codes if way.descending else ranked.codes
    mask = valid(column)
    if mask is not None:
        codes = np.where(mask, codes, -1 if way.nulls_first else ranked.size + 1)
    return codes


def _ascending(keys: Sequence[Ints]) -> bool:
    """Whether rows are sorted by these keys already."""
    open_ = np.ones(max(len(keys[0]) - 1, 0), np.bool_)
    for key in keys:
        if bool(np.any(open_ & (key[1:] < key[:-1]))):
            return False
        open_ &= key[1:] == key[:-1]
    return True


@dataclass(frozen=True)
class JoinedTexts(Gathered):
    """The texts that are not NULL in one, with a separator between them; NULL for none."""

    separator: str

    @property
    def result(self) -> pa.DataType:
        return pa.string()

    def finish(self, states: Sequence[pa.Array]) -> pa.Array:
        return _joined(states[0], self.separator)


@dataclass(frozen=True)
class DistinctText(DistinctValues):
    """The different texts that are not NULL, ascending, with a separator between them."""

    separator: str

    @property
    def result(self) -> pa.DataType:
        return pa.string()

    def finish(self, states: Sequence[pa.Array]) -> pa.Array:
        return _joined(states[0], self.separator)


def _joined(lists: pa.Array, separator: str) -> pa.Array:
    texts = pc.binary_join(lists, separator)
    return pc.if_else(pa.array(list_sizes(lists) > 0), texts, pa.scalar(None, pa.string()))


def _listed(type_: pa.DataType, *rest: Any) -> Family:
    *keys, ways = rest
    return Gathered(type_, tuple(keys), ways)


def _joining(type_: pa.DataType, *rest: Any) -> Family:
    *keys, separator, ways = rest
    return JoinedTexts(type_, tuple(keys), ways, separator)


ARRAY_AGG = OrderedFunction(
    name="array_agg",
    python="array_agg",
    sql=("ARRAY_AGG", "COLLECT_LIST"),
    doc="A list of the values that are not NULL, by ORDER BY and then in the total order.",
    arguments=(ANYTHING,),
    distinct="collect_set",
    unscaled=_SOME_ONLY,
    family=_listed,
)
STRING_AGG = OrderedFunction(
    name="string_agg",
    python="string_agg",
    sql=("STRING_AGG", "LISTAGG"),
    doc="The texts that are not NULL, joined, by ORDER BY and then in the total order.",
    arguments=(TEXT,),
    parameters=(_SEPARATOR,),
    distinct="string_set",
    unscaled=_SOME_ONLY,
    family=_joining,
)
COLLECT_SET = AggregateFunction(
    name="collect_set",
    python="collect_set",
    sql=("COLLECT_SET",),
    doc="A list of the different values that are not NULL, ascending.",
    arguments=(ORDERED,),
    distinct="collect_set",
    holistic=True,
    unscaled=_SOME_ONLY,
    family=DistinctValues,
)
STRING_SET = AggregateFunction(
    name="string_set",
    python=None,
    doc="The different texts that are not NULL, joined, ascending.",
    arguments=(TEXT,),
    parameters=(_SEPARATOR,),
    holistic=True,
    unscaled=_SOME_ONLY,
    form="string_agg(DISTINCT {inside})",
    family=DistinctText,
)
TRACED = OrderedFunction(
    name="traced",
    python=None,
    doc="The ids of the input tuples that a result was made of, in one text.",
    arguments=(TEXT,),
    parameters=(_SEPARATOR,),
    family=_joining,
)
