"""Evaluates functions over windows of tuples that are full."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.batch import TS
from tidegate.errors import StateError
from tidegate.operate.aggregate.function import Function
from tidegate.operate.aggregate.pane.overlap import Overlap
from tidegate.operate.kernels.family import States
from tidegate.operate.kernels.group import Groups
from tidegate.operate.kernels.order import Ints
from tidegate.operate.kernels.window.tree import Ranges
from tidegate.operate.tuple_window.spec import TupleSpec

_EXPANSION_LIMIT = 4_000_000
"""One step copies at most so many tuples into windows."""


@dataclass(frozen=True)
class Runs:
    """The tuples of the windows to emit, group after group, each in the order of its ranks.

    `rows` are the places of these tuples among the held ones followed by the new ones. Window i has
    `spec.rows` entries of it, from `starts[i]` on. Windows are sorted by their triggers. For each
    group that has tuples here, `groups` is its number, `lowest` the rank of its first tuple, and
    `lengths` how many tuples it has.
    """

    rows: Ints
    starts: Ints
    groups: Ints
    lowest: Ints
    lengths: Ints

    def panes(self, pane: int) -> tuple[Ints, Ints]:
        """Cut the runs into panes of so many tuples: the group and the number of each pane."""
        counts = self.lengths // pane
        ends = np.cumsum(counts)
        number = np.arange(int(counts.sum())) + np.repeat(
            self.lowest // pane - (ends - counts), counts
        )
        return np.repeat(self.groups, counts), number

    @staticmethod
    def of(spec: TupleSpec, codes: Ints, ranks: Ints, done: Ints, due: Ints) -> Runs:
        """Runs for the windows from `done` up to before `due` of each group.

        All tuples of these windows must be there, each once; otherwise it raises StateError.
        """
        windows = due - done
        low = done * spec.slide
        lengths = np.where(windows > 0, (windows - 1) * spec.slide + spec.rows, 0)
        begins = np.cumsum(lengths) - lengths
        place = ranks - low[codes]
        used = np.flatnonzero((place >= 0) & (place < lengths[codes]))
        # Every tuple goes to the place of its rank. A lost tuple leaves a -1, and a tuple that is
        # there twice makes more of them than there are places.
        rows = np.full(int(lengths.sum()), -1, np.int64)
        rows[begins[codes[used]] + place[used]] = used
        if len(used) != len(rows) or bool((rows < 0).any()):
            raise StateError(
                "tuple window",
                f"the {len(rows)} tuples of the windows must be held, each once",
                f"{len(used)}",
                "Restart: the run continues after its last committed batch.",
            )
        nth = np.arange(int(windows.sum())) - np.repeat(np.cumsum(windows) - windows, windows)
        starts = np.repeat(begins, windows) + nth * spec.slide
        # A window's trigger is its last tuple. It is a new one, and these are in the total order.
        starts = starts[np.argsort(rows[starts + spec.rows - 1])]
        used = np.flatnonzero(lengths)
        return Runs(rows, starts, groups=used, lowest=low[used], lengths=lengths[used])


def folded(
    spec: TupleSpec, rows: Mapping[str, pa.Array], runs: Runs
) -> dict[str, pa.Array | pa.ChunkedArray]:
    """The results of functions, except FIRST and LAST; a bounded number of windows at a time."""
    functions = [f for f in spec.functions if f.definition.edge is None]
    if spec.overlaps:
        return _overlapping(spec, functions, rows, runs)
    starts = runs.starts
    states = (_over_panes if spec.pane_rows else _over_tuples)(spec, functions, rows)
    step = max(1, _EXPANSION_LIMIT // spec.rows)
    parts: list[list[pa.Array]] = [[] for _ in functions]
    for first in range(0, len(starts), step):
        made = states(starts[first : first + step])
        for function, part, state in zip(functions, parts, made, strict=True):
            part.append(function.family.finish(state))
    return {f.name: pa.chunked_array(p, f.result) for f, p in zip(functions, parts, strict=True)}


def _overlapping(
    spec: TupleSpec, functions: Sequence[Function], rows: Mapping[str, pa.Array], runs: Runs
) -> dict[str, pa.Array | pa.ChunkedArray]:
    """Share merges between windows; the number of a pane follows from the ranks of its tuples."""
    pane, length = spec.pane_rows, spec.rows // spec.pane_rows
    groups, panes = runs.panes(pane)
    states = [_fold(function, rows, len(panes), pane) for function in functions]
    overlap = Overlap(
        functions, states, codes=groups, panes=panes, length=length, windows=spec.windows
    )
    first = runs.starts // pane
    results = overlap.results(Ranges(first, first + length - 1, panes[first]))
    return {f.name: column for f, column in zip(functions, results, strict=True)}


def _over_tuples(
    spec: TupleSpec, functions: Sequence[Function], rows: Mapping[str, pa.Array]
) -> Callable[[Ints], list[States]]:
    """A function that folds each window from its own tuples."""
    names = sorted({name for function in functions for name in function.inputs})

    def states(starts: Ints) -> list[States]:
        index = _expanded(starts, spec.rows)
        taken = {name: rows[name].take(index) for name in names}
        return [_fold(function, taken, len(starts), spec.rows) for function in functions]

    return states


def _over_panes(
    spec: TupleSpec, functions: Sequence[Function], rows: Mapping[str, pa.Array]
) -> Callable[[Ints], list[States]]:
    """A function that merges each window from panes, which are folded once.

    Runs and windows begin at multiples of a pane, because a pane divides the slide.
    """
    pane, panes = spec.pane_rows, spec.rows // spec.pane_rows
    folded = [_fold(function, rows, len(rows[TS]) // pane, pane) for function in functions]

    def states(starts: Ints) -> list[States]:
        index = _expanded(starts // pane, panes)
        groups = _even(len(starts), panes)
        return [
            function.family.merge(groups, [column.take(index) for column in columns])
            for function, columns in zip(functions, folded, strict=True)
        ]

    return states


def _fold(function: Function, rows: Mapping[str, pa.Array], n: int, length: int) -> States:
    """The states of n groups of `length` rows each; the rows of a group are adjacent."""
    return function.family.fold(_even(n, length), [rows[name] for name in function.inputs])


def _expanded(starts: Ints, length: int) -> pa.Array:
    """The `length` places from each start on."""
    return pa.array((starts[:, None] + np.arange(length)).ravel())


def _even(n: int, length: int) -> Groups:
    """n groups of `length` adjacent rows each."""
    return Groups(np.repeat(np.arange(n), length), n)
