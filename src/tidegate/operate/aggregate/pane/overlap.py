"""Computes overlapping windows with less work than window by window.

Some functions can slide from window to window (`SlidingFamily`). The others merge states: in a tree
(`kernels.tree`) where windows overlap much, otherwise pane after pane.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.operate.aggregate.function import Function
from tidegate.operate.kernels.family import States, slides
from tidegate.operate.kernels.group import Groups
from tidegate.operate.kernels.order import Ints, inverse
from tidegate.operate.kernels.window.tree import Ranges, Shape, Tree
from tidegate.operate.kernels.window.window import expand

MANY = 24
"""A tree of merges pays where each pane is in at least so many windows."""

SOME = 4
"""Sliding pays where each pane is in at least so many windows."""

_STEP_WORDS = 4_000_000
"""One step merges states of at most so many words of eight bytes."""


def overlaps(windows: int, functions: Sequence[Function]) -> bool:
    """Whether windows should share work, if a pane is in so many of them.

    The answer depends on the query, not on what a batch closes. So a function gets the same merges
    for any cut into batches.
    """
    sliding = any(slides(function.family) for function in functions)
    return windows >= (SOME if sliding else MANY)


class Overlap:
    """The panes of all keys, for windows of `length` panes; each pane is in `windows` of them.

    `codes` numbers the keys and ascends. Within a key `panes` ascends, without repetition. `states`
    has the columns of each function, a row for each pane. Takes memory in proportion to the states.
    """

    def __init__(
        self,
        functions: Sequence[Function],
        states: Sequence[States],
        *,
        codes: Ints,
        panes: Ints,
        length: int,
        windows: int,
    ) -> None:
        self._families = [function.family for function in functions]
        self._states = states
        self._rows = len(panes)
        self._length = length
        self._shape = Shape(codes, panes, length) if windows >= MANY else None
        self._trees: dict[int, Tree] = {}

    def results(self, ranges: Ranges) -> list[pa.ChunkedArray]:
        """The results of windows, given in any order: one column for each function."""
        in_turn = np.lexsort((ranges.first, ranges.last))
        return [self._result(i, ranges, in_turn) for i in range(len(self._families))]

    def merged(self, ranges: Ranges) -> list[pa.ChunkedArray]:
        """The states of windows, given in any order: the columns of all functions."""
        columns: list[pa.ChunkedArray] = []
        for i in range(len(self._families)):
            made = list(zip(*self._steps(i, ranges), strict=True))
            columns += [pa.chunked_array(parts) for parts in made]
        return columns

    def _result(self, number: int, ranges: Ranges, in_turn: Ints) -> pa.ChunkedArray:
        """One column; `in_turn` sorts the windows so that each slides on from the one before."""
        family = self._families[number]
        if slides(family):
            first, last = ranges.first[in_turn], ranges.last[in_turn] + 1
            slid = family.slide(self._states[number], first, last)
            return pa.chunked_array([slid.take(pa.array(inverse(in_turn)))])
        made = [family.finish(states) for states in self._steps(number, ranges)]
        return pa.chunked_array(made, family.result)

    def _steps(self, number: int, ranges: Ranges) -> Iterator[States]:
        """The states of one function for the windows, a bounded number at a time."""
        family, states = self._families[number], self._states[number]
        if self._shape is None:
            words = self._length * int(words_of(states, self._rows).max())
            for part in _parts(ranges, words):
                window, place = expand(part.first, part.last)
                taken = [column.take(pa.array(place)) for column in states]
                yield family.merge(Groups(window, len(part)), taken)
            return
        if number not in self._trees:
            self._trees[number] = Tree(self._shape, family, states)
        tree = self._trees[number]
        words = 3 * int(words_of(tree.blocks, len(self._shape.blocks)).max())
        for part in _parts(ranges, words):
            yield tree.windows(part)


def _parts(ranges: Ranges, words: int) -> Iterator[Ranges]:
    """Cut the windows into steps, if each window needs so many words."""
    step = max(_STEP_WORDS // max(words, 1), 1)
    for start in range(0, len(ranges), step):
        yield ranges.take(slice(start, start + step))


def words_of(states: Sequence[pa.Array], rows: int) -> Ints:
    """About how many words of eight bytes each row takes, its lists and sketches included."""
    words = np.full(rows, len(states), np.int64)
    for column in states:
        if pa.types.is_list(column.type):
            words += pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False)
        elif pa.types.is_large_binary(column.type) or pa.types.is_binary(column.type):
            words += pc.binary_length(column).fill_null(0).to_numpy(zero_copy_only=False) // 8
    return words
