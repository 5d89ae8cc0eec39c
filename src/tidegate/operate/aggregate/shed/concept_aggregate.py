"""Runs the functions of a query that sheds by concept as one aggregate function.

A group is answered from its tuples with a priority below the rate. If there are fewer than
`fewest`, it is answered from the `fewest` tuples of lowest priority. Both are the first tuples of
the group in the order of priorities, so both are uniform samples (`approx.sample`). Tuples below
the rate are folded as they come, so the state does not grow with them. The others are `spare`: rows
that wait until the window closes. They are dropped as soon as the group has enough without them.
Panes, merging, handovers, partitioners and restarts treat it as any function.

What is known only of a group that was sampled is one value in a column of lists, which is empty for
other groups. So while a query that may shed sheds nothing, its states are those of a query that may
not, and one column of empty lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.approx.rate import limit_of
from tidegate.approx.stratum import lowest_lacking
from tidegate.operate.aggregate.definition import ANYTHING, RuledFunction
from tidegate.operate.kernels.family import States
from tidegate.operate.kernels.group import Groups
from tidegate.operate.kernels.lists import as_lists, list_sizes
from tidegate.operate.kernels.order import Ints, Mask, flat
from tidegate.operate.kernels.sum.total import sum_integers

if TYPE_CHECKING:
    from tidegate.operate.aggregate.function import Function

TUPLES, KEPT, SAMPLED = "tuples", "kept", "sampled"
"""The fields of a result beside those of the functions: how many tuples the group had, how many of
them were used, and how many of these were kept by chance."""

MOST_INPUTS = 256
"""The functions inside one take at most so many columns together."""


@dataclass(frozen=True)
class Representation:
    """Which functions are answered, at which rate, and from at least how many tuples.

    `corrections` are functions over the tuples alone that were kept by chance. `inputs` are the
    columns that all of these read, each once.
    """

    functions: tuple[Function, ...]
    corrections: tuple[Function, ...]
    inputs: tuple[str, ...]
    rate: float
    fewest: int


@dataclass(frozen=True)
class Represented:
    """Functions over the tuples that represent a group.

    Its columns are the priorities, the number of tuples that each one counts for (`sieve.TUPLES`),
    and the inputs of the functions, which have these `types`. A tuple that was not to be shed has
    no priority. Where no tuple of a split was, none has a number: it counts for itself.
    """

    types: tuple[pa.DataType, ...]
    rule: Representation

    @cached_property
    def _value(self) -> pa.StructType:
        """What is known of a group that was sampled: counts, corrections, and the spare rows."""
        counts = ((name, pa.int64()) for name in (KEPT, SAMPLED))
        spare = ((f"spare_{i}", pa.list_(type_)) for i, type_ in enumerate(self.types))
        states = _state_columns(self.rule.corrections)
        return pa.struct([*counts, *states, ("spare", pa.list_(pa.uint64())), *spare])

    @cached_property
    def state(self) -> tuple[tuple[str, pa.DataType], ...]:
        states = _state_columns(self.rule.functions)
        return ((TUPLES, pa.int64()), *states, (SAMPLED, pa.list_(self._value)))

    @cached_property
    def result(self) -> pa.DataType:
        counts = ((name, pa.int64()) for name in (TUPLES, KEPT, SAMPLED))
        results = ((f.name, f.result) for f in (*self.rule.functions, *self.rule.corrections))
        return pa.struct([*counts, *results])

    def fold(self, groups: Groups, columns: Sequence[pa.Array]) -> States:
        priority, counts, *arguments = columns
        if priority.null_count == len(priority):
            states = _folded(self.rule.functions, groups, self._named(arguments))
            return [pa.array(groups.counts), *states, self._values(groups.n)]
        arguments = [flat(given, t) for given, t in zip(arguments, self.types, strict=True)]
        words = pc.fill_null(priority, 0).to_numpy()
        below: Mask = words < np.uint64(limit_of(self.rule.rate))
        above, kept = ~below, groups if below.all() else groups.where(below)
        by_chance: Mask = priority.is_valid().to_numpy(zero_copy_only=False)[below]
        sampled, used = kept.where(by_chance), _those(arguments, below)
        drawn = self._named(_those(used, by_chance))
        return self._packed(
            _Parts(
                tuples=sum_integers(groups, pc.fill_null(counts, 1).to_numpy()),
                kept=kept.counts,
                sampled=sampled.counts,
                functions=_folded(self.rule.functions, kept, self._named(used)),
                corrections=_folded(self.rule.corrections, sampled, drawn),
                codes=groups.codes[above],
                spare=[pa.array(words[above]), *_those(arguments, above)],
            )
        )

    def merge(self, groups: Groups, states: Sequence[pa.Array]) -> States:
        if len(flat(states[-1]).flatten()):
            return _merged(groups, states, self._joined)
        tuples = pa.array(sum_integers(groups, states[0].to_numpy()))
        added = _added(self.rule.functions, groups, states[1:-1])
        return [tuples, *added, self._values(groups.n)]

    def finish(self, states: Sequence[pa.Array]) -> pa.Array:
        """A struct of the counts and the results; NULL for corrections of what is not sampled."""
        functions, corrections = self.rule.functions, self.rule.corrections
        if not len(flat(states[-1]).flatten()):
            tuples, none = flat(states[0]), pa.array(np.zeros(len(states[0]), np.int64))
            results = _finished(functions, states[1:-1])
            results += [pa.nulls(len(tuples), f.result) for f in corrections]
            return pa.StructArray.from_arrays(
                [tuples, tuples, none, *results], fields=[*self.result]
            )
        parts = self._unpacked(states)
        count, named = len(parts.tuples), self._named(parts.spare[1:])
        # What is left of the spare rows is needed: `_spared` keeps no others.
        spare = Groups(parts.codes, count)
        results = _finished_with(functions, parts.kept > 0, parts.functions, spare, named)
        results += _finished_with(corrections, parts.sampled > 0, parts.corrections, spare, named)
        counts = (parts.tuples, parts.kept + spare.counts, parts.sampled + spare.counts)
        return pa.StructArray.from_arrays([*map(pa.array, counts), *results], fields=[*self.result])

    def _named(self, arguments: Sequence[pa.Array]) -> Mapping[str, pa.Array]:
        return dict(zip(self.rule.inputs, arguments, strict=True))

    def _joined(self, groups: Groups, states: Sequence[pa.Array]) -> States:
        """Merge states of groups some of which are sampled."""
        parts, rule = self._unpacked(states), self.rule
        tuples, kept, sampled = (
            sum_integers(groups, counts) for counts in (parts.tuples, parts.kept, parts.sampled)
        )
        corrections = _added_where(parts.sampled > 0, rule.corrections, groups, parts.corrections)
        return self._packed(
            _Parts(
                tuples=tuples,
                kept=kept,
                sampled=sampled,
                functions=_added_where(parts.kept > 0, rule.functions, groups, parts.functions),
                corrections=corrections,
                codes=groups.codes[parts.codes],
                spare=parts.spare,
            )
        )

    def _packed(self, parts: _Parts) -> States:
        """The state columns of groups some of which are sampled."""
        some = (parts.kept < parts.tuples) | (parts.sampled > 0)
        counts = (pa.array(parts.kept), pa.array(parts.sampled))
        spare = self._spared(parts.codes, parts.kept, parts.spare)
        values = self._values(len(some), some, [*counts, *parts.corrections, *spare])
        return [pa.array(parts.tuples), *parts.functions, values]

    def _unpacked(self, states: Sequence[pa.Array]) -> _Parts:
        tuples, lists = flat(states[0]).to_numpy(), flat(states[-1])
        has: Mask = list_sizes(lists) > 0
        rows, value = np.flatnonzero(has), lists.flatten()
        kept, sampled = tuples.copy(), np.zeros(len(tuples), np.int64)
        for at, counts in enumerate((kept, sampled)):
            counts[rows] = value.field(at).to_numpy()
        fields = [value.field(i) for i in range(2, self._value.num_fields)]
        first = len(fields) - 1 - len(self.types)
        places = pa.array(np.cumsum(has) - 1, mask=~has)
        spare = fields[first:]
        return _Parts(
            tuples=tuples,
            kept=kept,
            sampled=sampled,
            functions=list(states[1:-1]),
            corrections=[column.take(places) for column in fields[:first]],
            codes=np.repeat(rows, list_sizes(spare[0])),
            spare=[column.flatten() for column in spare],
        )

    def _values(
        self, count: int, some: Mask | None = None, columns: Sequence[pa.Array] = ()
    ) -> pa.Array:
        """A list for each group, with a value where there is `some`."""
        if some is None:
            sizes, value = np.zeros(count, np.int64), pa.array([], self._value)
        else:
            sizes, rows = some.astype(np.int64), pa.array(np.flatnonzero(some))
            picked = [flat(column).take(rows) for column in columns]
            value = pa.StructArray.from_arrays(picked, fields=[*self._value])
        return as_lists(sizes, [value])[0]

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


@dataclass(frozen=True)
class _Parts:
    """What states say of groups: counts, states with NULL for groups without tuples, spare rows.

    `codes` has the group of each spare row, and `spare` has its priority and the inputs.
    """

    tuples: Ints
    kept: Ints
    sampled: Ints
    functions: States
    corrections: States
    codes: Ints
    spare: Sequence[pa.Array]


def _state_columns(functions: Sequence[Function]) -> list[tuple[str, pa.DataType]]:
    return [(f"{f.name}_{part}", type_) for f in functions for part, type_ in f.family.state]


def _by_function(
    functions: Sequence[Function], states: Sequence[pa.Array]
) -> Iterator[tuple[Function, Sequence[pa.Array]]]:
    """Each function with its state columns."""
    first = 0
    for function in functions:
        last = first + len(function.family.state)
        yield function, states[first:last]
        first = last


def _folded(functions: Sequence[Function], groups: Groups, named: Mapping[str, pa.Array]) -> States:
    """The states of functions; NULL for groups without rows, which families never see."""
    some = _Some.of(groups)
    if not len(some.present):
        return [pa.nulls(groups.n, type_) for _, type_ in _state_columns(functions)]
    return some.spread(_states(functions, some.groups, named))


def _added(functions: Sequence[Function], groups: Groups, states: Sequence[pa.Array]) -> States:
    """Merge states of functions, for groups that all have some."""
    pairs = _by_function(functions, states)
    return [column for f, held in pairs for column in f.family.merge(groups, held)]


def _added_where(
    has: Mask, functions: Sequence[Function], groups: Groups, states: Sequence[pa.Array]
) -> States:
    """The same where only the marked states are there."""
    some = _Some.of(groups if has.all() else groups.where(has))
    if not len(some.present):
        return [pa.nulls(groups.n, column.type) for column in states]
    return some.spread(_added(functions, some.groups, _those(states, has)))


def _finished(functions: Sequence[Function], states: Sequence[pa.Array]) -> list[pa.Array]:
    return [flat(f.family.finish(held)) for f, held in _by_function(functions, states)]


def _finished_with(
    functions: Sequence[Function],
    has: Mask,
    states: Sequence[pa.Array],
    spare: Groups,
    named: Mapping[str, pa.Array],
) -> list[pa.Array]:
    """The results of functions over the marked states and over spare rows; NULL without both."""
    held, extra = np.flatnonzero(has), _Some.of(spare)
    states = _those(states, has)
    if len(extra.present):
        folded = _states(functions, extra.groups, named)
        states = [_after(a, b) for a, b in zip(states, folded, strict=True)]
    every = _Some.of(Groups(np.concatenate([held, extra.present]), len(has)))
    if not len(every.present):
        return [pa.nulls(len(has), f.result) for f in functions]
    states = _merged(every.groups, states, partial(_added, functions))
    return every.spread(_finished(functions, states))


class FunctionsOverRows(Protocol):
    """Functions that are folded over rows, and the columns that they read, each once."""

    @property
    def functions(self) -> tuple[Function, ...]: ...

    @property
    def inputs(self) -> tuple[str, ...]: ...


def states_of(rule: FunctionsOverRows, groups: Groups, arguments: Sequence[pa.Array]) -> States:
    """The states of the functions, for groups that all have rows."""
    return _states(rule.functions, groups, dict(zip(rule.inputs, arguments, strict=True)))


def _states(functions: Sequence[Function], groups: Groups, named: Mapping[str, pa.Array]) -> States:
    states: States = []
    for function in functions:
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
        has: Mask = groups.counts > 0
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
