"""Represented: the functions of a query that sheds by concept, as one aggregate function.

A group is answered from its tuples with a priority below the rate. If there are fewer than
`fewest`, it is answered from the `fewest` tuples of lowest priority. Both are the first tuples of
the group in the order of priorities, so both are uniform samples (`approx.sample`). Tuples below
the rate are folded as they come, so the state does not grow with them. The others are `spare`: rows
that wait until the window closes. They are dropped as soon as the group has enough without them.
Panes, merging, handovers, partitioners and restarts treat it as any function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from tidegate.approx.rate import limit_of
from tidegate.approx.stratum import lowest_lacking
from tidegate.operate.aggregate.definition import ANYTHING, RuledFunction
from tidegate.operate.kernels.family import States
from tidegate.operate.kernels.group import Groups
from tidegate.operate.kernels.lists import as_lists, inside_lists, list_sizes
from tidegate.operate.kernels.order import Ints, Mask, flat
from tidegate.operate.kernels.total import sum_integers

if TYPE_CHECKING:
    from tidegate.operate.aggregate.function import Function

KEPT = "kept"
TUPLES = "tuples"
"""The fields of a result beside those of the functions: how many tuples of the group were used, and
how many it had."""


MOST_INPUTS = 256
"""The functions inside one take at most so many columns together."""


@dataclass(frozen=True)
class Representation:
    """Which functions are answered, at which rate, and from at least how many tuples.

    `inputs` are the columns that the functions read, each once.
    """

    functions: tuple[Function, ...]
    inputs: tuple[str, ...]
    rate: float
    fewest: int


@dataclass(frozen=True)
class Represented:
    """Functions over the tuples that represent a group.

    Its columns are the priorities, the number of tuples that each one counts for (`sieve.TUPLES`),
    and the inputs of the functions, which have these `types`.
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
        spare = ((f"spare_{i}", pa.list_(type_)) for i, type_ in enumerate(self.types))
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
        kept = groups if below.all() else groups.where(below)
        states: States = [pa.array(tuples), pa.array(kept.counts)]
        states += self._folded(kept, _those(arguments, below))
        above = ~below
        spare = [pa.array(words[above]), *_those(arguments, above)]
        return [*states, *self._spared(groups.codes[above], kept.counts, spare)]

    def merge(self, groups: Groups, states: Sequence[pa.Array]) -> States:
        return _merged(groups, states, self._joined)

    def _joined(self, groups: Groups, states: Sequence[pa.Array]) -> States:
        tuples, kept = (sum_integers(groups, state.to_numpy()) for state in states[:2])
        has: Mask = states[1].to_numpy() > 0
        inner = states[2 : self._spare]
        some = _Some.of(groups if has.all() else groups.where(has))
        if len(some.present):
            inner = some.spread(self._added(some.groups, _those(inner, has)))
        else:
            inner = [pa.nulls(groups.n, column.type) for column in inner]
        lists = states[self._spare :]
        codes = inside_lists(groups, lists[0]).codes
        spare = self._spared(codes, kept, [column.flatten() for column in lists])
        return [pa.array(tuples), pa.array(kept), *inner, *spare]

    def finish(self, states: Sequence[pa.Array]) -> pa.Array:
        """A struct of the number of tuples, how many of them were used, and the results."""
        count, kept = len(states[0]), states[1].to_numpy()
        lists = states[self._spare :]
        sizes = list_sizes(lists[0])
        inner = states[2 : self._spare]
        if int(sizes.sum()):
            # What is left of the spare rows is needed: `_spared` keeps no others.
            extra = _Some.of(Groups(np.repeat(np.arange(count), sizes), count))
            folded = states_of(self.rule, extra.groups, [column.flatten() for column in lists[1:]])
            has = np.flatnonzero(kept > 0)
            both = Groups(np.concatenate([has, extra.present]), count)
            taken = [column.take(pa.array(has)) for column in inner]
            inner = _merged(
                both, [_after(a, b) for a, b in zip(taken, folded, strict=True)], self._added
            )
        results = [
            f.family.finish(inner[part.start - 2 : part.stop - 2])
            for f, part in zip(self.rule.functions, self._columns, strict=True)
        ]
        looked_at = pa.array(kept + sizes)
        fields = [field.name for field in self.result]
        return pa.StructArray.from_arrays([states[0], looked_at, *map(flat, results)], fields)

    def _folded(self, groups: Groups, arguments: Sequence[pa.Array]) -> States:
        """The states of the functions; NULL for groups without rows, which families never see."""
        some = _Some.of(groups)
        if not len(some.present):
            types = (type_ for f in self.rule.functions for _, type_ in f.family.state)
            return [pa.nulls(groups.n, type_) for type_ in types]
        return some.spread(states_of(self.rule, some.groups, arguments))

    def _added(self, groups: Groups, states: Sequence[pa.Array]) -> States:
        """Merge states of the functions, for groups that all have some."""
        merged: States = []
        for function, part in zip(self.rule.functions, self._columns, strict=True):
            merged += function.family.merge(groups, states[part.start - 2 : part.stop - 2])
        return merged

    def _spared(self, codes: Ints, kept: Ints, columns: Sequence[pa.Array]) -> States:
        """The spare rows of groups as lists: those of lowest priority, as many as a group lacks.

        `codes` has the group of each row, and the first column its priority. Merging with other
        parts of a group can only lower what it lacks, so no row that is dropped here is needed
        later.
        """
        lacking = np.maximum(self.rule.fewest - kept, 0)
        rows, sizes = lowest_lacking(codes, columns[0].to_numpy(), lacking)
        chosen = pa.array(rows)
        return as_lists(sizes, [column.take(chosen) for column in columns])


class FunctionsOverRows(Protocol):
    """Functions that are folded over rows, and the columns that they read, each once."""

    @property
    def functions(self) -> tuple[Function, ...]: ...

    @property
    def inputs(self) -> tuple[str, ...]: ...


def states_of(rule: FunctionsOverRows, groups: Groups, arguments: Sequence[pa.Array]) -> States:
    """The states of the functions, for groups that all have rows."""
    named = dict(zip(rule.inputs, arguments, strict=True))
    states: States = []
    for function in rule.functions:
        states += function.family.fold(groups, [named[name] for name in function.inputs])
    return states


@dataclass(frozen=True)
class _Some:
    """The groups that have rows, out of `count`, ascending; `groups` numbers only these."""

    present: Ints
    groups: Groups
    count: int

    @staticmethod
    def of(groups: Groups) -> _Some:
        has = np.zeros(groups.n, np.bool_)
        has[groups.codes] = True
        present = np.flatnonzero(has)
        if len(present) == groups.n:
            return _Some(present, groups, groups.n)
        codes = (np.cumsum(has) - 1)[groups.codes]
        return _Some(present, Groups(codes, len(present)), groups.n)

    def spread(self, states: States) -> States:
        """Spread the states of these groups over all groups; the others get NULL."""
        if len(self.present) == self.count:
            return states
        places, missing = np.zeros(self.count, np.int64), np.ones(self.count, np.bool_)
        places[self.present], missing[self.present] = np.arange(len(self.present)), False
        picked = pa.array(places, mask=missing)
        return [flat(state).take(picked) for state in states]


def _merged(
    groups: Groups, states: Sequence[pa.Array], join: Callable[[Groups, Sequence[pa.Array]], States]
) -> States:
    """Join the states of each group; a state that is alone in its group stays as it is.

    To join a single state would change nothing. In a stream with many groups most states are
    single, so leaving them out saves work. Where most are not, all are joined in one call.
    """
    several = groups.counts > 1
    if 2 * several.sum() >= groups.n:
        return join(groups, states)
    last = groups.rows
    rows = several[groups.codes]
    if not rows.any():
        return [flat(state).take(pa.array(last)) for state in states]
    numbers = np.cumsum(several) - 1
    some = Groups(numbers[groups.codes[rows]], int(numbers[-1]) + 1)
    joined = join(some, _those(states, rows))
    places = pa.array(np.where(several, len(rows) + numbers, last))
    return [_after(a, b).take(places) for a, b in zip(states, joined, strict=True)]


def _after(first: pa.Array, second: pa.Array) -> pa.Array:
    return flat(pa.chunked_array([flat(first), flat(second)], first.type))


def _those(columns: Sequence[pa.Array], mask: Mask) -> list[pa.Array]:
    """The marked rows; often all or none are marked, and then nothing is copied."""
    if mask.all():
        return list(columns)
    if not mask.any():
        return [column.slice(0, 0) for column in columns]
    chosen = pa.array(mask)
    return [column.filter(chosen) for column in columns]


REPRESENTED = RuledFunction(
    name="represented",
    doc="Functions over the tuples that represent a group, where others are shed.",
    arguments=(ANYTHING,) * MOST_INPUTS,
    what="what represents groups",
    rule=Representation,
    shows=lambda rule: [repr(rule)],
    made_of=lambda rule: rule.functions,
    family=lambda *given: Represented(given[2:-1], given[-1]),
)
