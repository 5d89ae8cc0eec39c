"""Represented: the functions of a query that sheds by concept, as one aggregate function.

A group is answered from the tuples with a priority below the rate; where these are fewer than a
few, from the few of lowest priority. Either is a uniform sample of the group, and together they are
the longer beginning of its tuples in the order of priorities (`approx.sample`). Those below the
rate are folded as they come, so that the state of a group does not grow with what is kept of it.
The others are `spare`: rows that wait until the window closes, and of a group that turns out to
have enough without them they are let go of. Panes, merging, handovers, partitioners and restarts
treat it as any function.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.approx.sample import lowest
from tidegate.errors import QueryError
from tidegate.operate.aggregate.definition import ANYTHING, AggregateFunction
from tidegate.operate.kernels.family import States
from tidegate.operate.kernels.group import Groups
from tidegate.operate.kernels.order import Ints, Mask, flat
from tidegate.operate.kernels.total import sum_integers
from tidegate.operate.sieve import limit_of

if TYPE_CHECKING:
    from tidegate.operate.aggregate.function import Function

KEPT = "kept"
TUPLES = "tuples"
"""The fields of a result beside those of the functions: how many tuples of the group were looked
at, and how many there were."""

_MOST_ARGUMENTS = 128


@dataclass(frozen=True)
class Representation:
    """Which functions are answered, at which rate, and from how many tuples at least.

    `inputs` are the columns that the functions take, each once.
    """

    functions: tuple[Function, ...]
    inputs: tuple[str, ...]
    rate: float
    fewest: int


@dataclass(frozen=True)
class Represented:
    """Functions over the tuples that represent a group.

    The columns are the priorities and what each tuple counts for (`operate.sieve`), then the inputs
    of the functions, which have these types.
    """

    types: tuple[pa.DataType, ...]
    rule: Representation

    @cached_property
    def _columns(self) -> list[slice]:
        """Where the state columns of each function stand."""
        ends = np.cumsum([2, *(len(f.state) for f in self.rule.functions)])
        return [slice(first, last) for first, last in pairwise(ends.tolist())]

    @property
    def _spare(self) -> int:
        """Where the columns of the spare rows begin."""
        return 2 + sum(len(f.state) for f in self.rule.functions)

    @property
    def state(self) -> tuple[tuple[str, pa.DataType], ...]:
        inner = (
            (f"{f.name}_{part}", type_)
            for f in self.rule.functions
            for part, type_ in f.family.state
        )
        named = zip(self.rule.inputs, self.types, strict=True)
        spare = ((f"spare_{name}", pa.list_(type_)) for name, type_ in named)
        counts = ((TUPLES, pa.int64()), (KEPT, pa.int64()))
        return (*counts, *inner, ("spare", pa.list_(pa.uint64())), *spare)

    @property
    def result(self) -> pa.DataType:
        results = ((f.name, f.result) for f in self.rule.functions)
        return pa.struct([(TUPLES, pa.int64()), (KEPT, pa.int64()), *results])

    def fold(self, groups: Groups, columns: Sequence[pa.Array]) -> States:
        priority, counts, *arguments = columns
        tuples = sum_integers(groups, counts.to_numpy())
        words = priority.to_numpy()
        below: Mask = words < np.uint64(limit_of(self.rule.rate))
        kept = groups.where(below)
        states: States = [pa.array(tuples), pa.array(kept.counts)]
        states += self._folded(kept, _those(arguments, below))
        codes = groups.codes[~below]
        spare = [pa.array(words[~below]), *_those(arguments, ~below)]
        return [*states, *self._spared(codes, kept.counts, spare)]

    def merge(self, groups: Groups, states: Sequence[pa.Array]) -> States:
        """Most groups of a stream with many have one state, which stays as it is."""
        several = groups.counts > 1
        rows = several[groups.codes]
        if rows.all():
            return self._joined(groups, states)
        last = groups.rows
        if not rows.any():
            return [state.take(pa.array(last)) for state in states]
        numbers = np.cumsum(several) - 1
        some = Groups(numbers[groups.codes[rows]], int(numbers[-1]) + 1)
        merged = self._joined(some, [_filtered(state, rows) for state in states])
        places = pa.array(np.where(several, len(rows) + numbers, last))
        pairs = zip(states, merged, strict=True)
        return [pa.concat_arrays([flat(a), flat(b)]).take(places) for a, b in pairs]

    def _joined(self, groups: Groups, states: Sequence[pa.Array]) -> States:
        tuples, kept = (sum_integers(groups, state.to_numpy()) for state in states[:2])
        has = states[1].to_numpy() > 0
        inner = self._merged(
            groups.where(has), [_filtered(s, has) for s in states[2 : self._spare]]
        )
        lists = states[self._spare :]
        codes = np.repeat(groups.codes, _sizes(lists[0]))
        spare = self._spared(codes, kept, [column.flatten() for column in lists])
        return [pa.array(tuples), pa.array(kept), *inner, *spare]

    def finish(self, states: Sequence[pa.Array]) -> pa.Array:
        """A struct of the results, how many tuples they are from, and of how many."""
        count, kept = len(states[0]), states[1].to_numpy()
        lists = states[self._spare :]
        sizes = _sizes(lists[0])
        inner = states[2 : self._spare]
        if int(sizes.sum()):
            # What is left of the spare rows is needed: `_spared` keeps no others.
            has = np.flatnonzero(kept > 0)
            codes = np.repeat(np.arange(count), sizes)
            rows = [column.flatten() for column in lists[1:]]
            represented, extra = _compact(codes, count)
            folded = [
                state
                for f in self.rule.functions
                for state in f.family.fold(extra, self._inputs(f, rows))
            ]
            both = Groups(np.concatenate([has, represented]), count)
            parts = zip(inner, folded, strict=True)
            taken = [flat(pa.chunked_array([a.take(pa.array(has)), b], a.type)) for a, b in parts]
            inner = self._merged(both, taken)
        results = [
            f.family.finish(inner[part.start - 2 : part.stop - 2])
            for f, part in zip(self.rule.functions, self._columns, strict=True)
        ]
        looked_at = pa.array(kept + sizes)
        fields = [field.name for field in self.result]
        return pa.StructArray.from_arrays([states[0], looked_at, *map(flat, results)], fields)

    def _inputs(self, function: Function, arguments: Sequence[pa.Array]) -> list[pa.Array]:
        named = dict(zip(self.rule.inputs, arguments, strict=True))
        return [named[name] for name in function.inputs]

    def _folded(self, groups: Groups, arguments: Sequence[pa.Array]) -> States:
        """The states of the functions; NULL for groups without a row, which no family is asked."""
        present, some = _compact(groups.codes, groups.n)
        states: States = []
        for function in self.rule.functions:
            made = function.family.fold(some, self._inputs(function, arguments))
            states += [_spread(state, present, groups.n) for state in made]
        return states

    def _merged(self, groups: Groups, states: Sequence[pa.Array]) -> States:
        """The same from other states."""
        present, some = _compact(groups.codes, groups.n)
        merged: States = []
        for function, part in zip(self.rule.functions, self._columns, strict=True):
            made = function.family.merge(some, states[part.start - 2 : part.stop - 2])
            merged += [_spread(state, present, groups.n) for state in made]
        return merged

    def _spared(self, codes: Ints, kept: Ints, columns: Sequence[pa.Array]) -> States:
        """Of each group as many rows of lowest priority as it still lacks, as lists.

        `codes` are the groups of rows, whose priorities are the first column. Other parts of a
        group can only make it lack fewer, so that what is left out here is never needed.
        """
        lacking = np.maximum(self.rule.fewest - kept, 0)
        rows = np.flatnonzero(lacking[codes] > 0)
        codes, words = codes[rows], columns[0].to_numpy()[rows]
        order = lowest(codes, len(kept), words, self.rule.fewest)
        codes = codes[order]
        sizes = np.bincount(codes, minlength=len(kept))
        ranks = np.arange(len(codes)) - (np.cumsum(sizes) - sizes)[codes]
        picked = ranks < lacking[codes]
        sizes = np.minimum(sizes, lacking)
        offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32))
        chosen = pa.array(rows[order[picked]])
        return [pa.ListArray.from_arrays(offsets, column.take(chosen)) for column in columns]


def _those(columns: Sequence[pa.Array], mask: Mask) -> list[pa.Array]:
    return [_filtered(column, mask) for column in columns]


def _filtered(column: pa.Array, mask: Mask) -> pa.Array:
    return column.filter(pa.array(mask))


def _sizes(lists: pa.Array) -> Ints:
    sizes: Ints = pc.list_value_length(lists).to_numpy().astype(np.int64)
    return sizes


def _compact(codes: Ints, count: int) -> tuple[Ints, Groups]:
    """The groups that have rows, ascending, and the rows by the numbers of these."""
    has = np.zeros(count, np.bool_)
    has[codes] = True
    present = np.flatnonzero(has)
    if len(present) == count:
        return present, Groups(codes, count)
    return present, Groups((np.cumsum(has) - 1)[codes], len(present))


def _spread(states: pa.Array, present: Ints, count: int) -> pa.Array:
    """States of some groups as states of all; the others are NULL."""
    if len(present) == count:
        return states
    places = np.zeros(count, np.int64)
    places[present] = np.arange(len(present))
    missing = np.ones(count, np.bool_)
    missing[present] = False
    return flat(states).take(pa.array(places, mask=missing))


class RepresentedFunction(AggregateFunction):
    """The row of represented functions: its only parameter is the Representation."""

    @property
    def star(self) -> bool:
        return False

    def completed(self, parameters: Sequence[Any]) -> tuple[Any, ...]:
        if [isinstance(value, Representation) for value in parameters] != [True]:
            raise QueryError("aggregate", "what is represented must be said", self.name)
        return tuple(parameters)

    def inside(self, parameters: Sequence[Any]) -> tuple[Function, ...]:
        functions: tuple[Function, ...] = parameters[0].functions
        return functions


REPRESENTED = RepresentedFunction(
    name="represented",
    python=None,
    doc="Functions over the tuples that represent a group, where others are shed.",
    arguments=(ANYTHING,) * _MOST_ARGUMENTS,
    least=0,
    skips_null=False,
    family=lambda *given: Represented(given[2:-1], given[-1]),
)
