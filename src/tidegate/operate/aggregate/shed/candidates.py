"""Candidates: the functions of a query that sheds to a total, as one aggregate function.

The tuples of a group that may be kept wait as rows, by ascending priority, until the window closes:
how many are kept depends on all groups of the window (`approx.quota`). The state also has the
number of tuples of the group, and how many of them are due. It grows with the candidates: about
twice what is kept, and at least one for each group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tidegate.approx.array import Words
from tidegate.operate.aggregate.definition import ANYTHING, RuledFunction
from tidegate.operate.aggregate.shed.concept_aggregate import KEPT, MOST_INPUTS, TUPLES, states_of
from tidegate.operate.kernels.family import States
from tidegate.operate.kernels.group import Groups
from tidegate.operate.kernels.lists import as_lists, inside_lists, list_sizes
from tidegate.operate.kernels.order import Ints, flat
from tidegate.operate.kernels.sum.total import sum_integers
from tidegate.operate.kernels.window.window import expand

if TYPE_CHECKING:
    from tidegate.operate.aggregate.function import Function

DUE = "due"
_ROWS = 2
"""Where the columns of the rows begin in a state, after two counts."""


@dataclass(frozen=True)
class Candidacy:
    """Which functions are answered; `inputs` are the columns that they read, each once.

    Candidates are the tuples of a group with a priority below `limit`; if there are fewer than
    `fewest`, the `fewest` of lowest priority. So they are the same for any cut of the stream. Map
    tasks may send more tuples than these.
    """

    functions: tuple[Function, ...]
    inputs: tuple[str, ...]
    limit: int
    fewest: int


@dataclass(frozen=True)
class Candidates:
    """Functions over the tuples of a group that are chosen when the window closes.

    Its columns are the priorities, TUPLES and DUE of each tuple (`sieve.py`), and the inputs of the
    functions, which have these `types`.
    """

    types: tuple[pa.DataType, ...]
    rule: Candidacy

    @property
    def state(self) -> tuple[tuple[str, pa.DataType], ...]:
        rows = ((f"row_{i}", pa.list_(type_)) for i, type_ in enumerate(self.types))
        counts = ((TUPLES, pa.int64()), (DUE, pa.int64()))
        return (*counts, ("rows", pa.list_(pa.uint64())), *rows)

    @property
    def result(self) -> pa.DataType:
        results = ((f.name, f.result) for f in self.rule.functions)
        return pa.struct([(TUPLES, pa.int64()), (KEPT, pa.int64()), *results])

    def fold(self, groups: Groups, columns: Sequence[pa.Array]) -> States:
        priority, tuples, due, *arguments = columns
        arguments = [flat(given, t) for given, t in zip(arguments, self.types, strict=True)]
        counts = [pa.array(sum_integers(groups, flat(c).to_numpy())) for c in (tuples, due)]
        return [*counts, *self._listed(groups, [priority, *arguments])]

    def merge(self, groups: Groups, states: Sequence[pa.Array]) -> States:
        counts = [pa.array(sum_integers(groups, flat(s).to_numpy())) for s in states[:_ROWS]]
        lists = [flat(state) for state in states[_ROWS:]]
        rows = [column.flatten() for column in lists]
        return [*counts, *self._listed(inside_lists(groups, lists[0]), rows)]

    def finish(self, states: Sequence[pa.Array]) -> pa.Array:
        """A struct of the number of tuples, how many were kept, and the results.

        Every group must have rows.
        """
        lists = [flat(state) for state in states[_ROWS:]]
        sizes = list_sizes(lists[0])
        groups = Groups(np.repeat(np.arange(len(sizes)), sizes), len(sizes))
        inner = states_of(self.rule, groups, [column.flatten() for column in lists[1:]])
        results, first = [], 0
        for function in self.rule.functions:
            last = first + len(function.state)
            results.append(flat(function.family.finish(inner[first:last])))
            first = last
        fields = [field.name for field in self.result]
        return pa.StructArray.from_arrays([flat(states[0]), pa.array(sizes), *results], fields)

    def _listed(self, groups: Groups, columns: Sequence[pa.Array]) -> States:
        """The candidates of each group as lists, by ascending priority (the first column)."""
        words: Words = flat(columns[0]).to_numpy()
        order = np.lexsort((words, groups.codes))
        codes = groups.codes[order]
        first = np.searchsorted(codes, np.arange(groups.n))
        place = np.arange(len(codes)) - first[codes]
        kept = (words[order] < np.uint64(self.rule.limit)) | (place < self.rule.fewest)
        counts = np.bincount(codes[kept], minlength=groups.n)
        places = pa.array(order[kept])
        return as_lists(counts, [flat(column).take(places) for column in columns])


def first_rows(states: Sequence[pa.Array], groups: Ints, counts: Ints) -> States:
    """The states of some groups with only the first `counts` rows, those of lowest priority."""
    states = [flat(state) for state in states]
    starts = states[_ROWS].offsets.to_numpy().astype(np.int64)[groups]
    _, places = expand(starts, starts + counts - 1)
    rows, picked = pa.array(places), pa.array(groups)
    lists = as_lists(counts, [state.values.take(rows) for state in states[_ROWS:]])
    return [*(state.take(picked) for state in states[:_ROWS]), *lists]


def lowest_word(states: Sequence[pa.Array]) -> Words:
    """The lowest priority of each group."""
    words = flat(states[_ROWS])
    starts = words.offsets.to_numpy()[:-1]
    lowest: Words = words.values.take(pa.array(starts)).to_numpy()
    return lowest


CANDIDATES = RuledFunction(
    name="candidates",
    doc="Functions over the tuples of a group that are chosen from all of its window.",
    arguments=(ANYTHING,) * MOST_INPUTS,
    what="what may be kept of groups",
    rule=Candidacy,
    shows=lambda rule: [repr(rule)],
    made_of=lambda rule: rule.functions,
    family=lambda *given: Candidates(given[3:-1], given[-1]),
)
