"""Merges the states of panes into the states of overlapping windows.

A binary tree stands above the panes of a key: the node of level l over pane p is p >> l, and its
state is the merge of its children's. The level whose nodes are as wide as the largest power of two
that is not more than a window cuts the panes into **blocks**. A window is then the end of one
block, perhaps a whole block, and the beginning of one: at most three states, which other windows
share. Ends and beginnings are made from nodes, from the top of the tree down. All nodes, ends and
beginnings of n panes take about 5 n merges; a single window takes O(log n) besides its nodes.

Which states are merged depends only on the numbers of a window's own panes. So a function gets the
same calls for any batch cut and number of instances, whatever other keys and windows there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from tidegate.operate.kernels.family import (
    Family,
    States,
    join_states,
    merge_pairs,
    take_states,
)
from tidegate.operate.kernels.group import Groups
from tidegate.operate.kernels.order import Ints, Mask


@dataclass(frozen=True)
class Ranges:
    """Windows over places in the sequence of panes, from `first` to `last`, both included.

    `pane` is the number of a window's first pane, whether that has a state or not.
    """

    first: Ints
    last: Ints
    pane: Ints

    def __len__(self) -> int:
        return len(self.first)

    def take(self, rows: Ints | slice) -> Ranges:
        return Ranges(self.first[rows], self.last[rows], self.pane[rows])


@dataclass(frozen=True)
class _Level:
    """A level below its parents: the `parent` of each node; `left`, nodes with a right sibling."""

    parent: Ints
    left: Ints
    parents: int

    @cached_property
    def is_left(self) -> Mask:
        return self._marked(self.left)

    @cached_property
    def is_right(self) -> Mask:
        return self._marked(self.left + 1)

    def _marked(self, nodes: Ints) -> Mask:
        marks = np.zeros(len(self.parent), np.bool_)
        marks[nodes] = True
        return marks


class Shape:
    """The tree over the panes of all keys, for windows of `length` panes, without states.

    `codes` number the keys and ascend; `panes` ascend within each key, none twice. Levels in which
    no node has a sibling are left out. Costs O(panes * log(length)) at most.
    """

    def __init__(self, codes: Ints, panes: Ints, length: int) -> None:
        self.length = length
        self.height = length.bit_length() - 1
        self.levels: list[_Level] = []
        self.block_of = np.arange(len(panes))
        for _ in range(self.height):
            panes = panes >> 1
            new = np.ones(len(panes), np.bool_)
            new[1:] = (panes[1:] != panes[:-1]) | (codes[1:] != codes[:-1])
            if bool(new.all()):
                continue
            parent = np.cumsum(new) - 1
            left = np.flatnonzero(~new) - 1
            codes, panes = codes[new], panes[new]
            self.levels.append(_Level(parent, left, len(panes)))
            self.block_of = parent[self.block_of]
        self.blocks = panes


class Tree:
    """The states of one function at all nodes; `windows` merges them for windows."""

    def __init__(self, shape: Shape, family: Family, panes: Sequence[pa.Array]) -> None:
        self._shape = shape
        self._family = family
        self._nodes: list[States] = [list(panes)]
        for level in shape.levels:
            self._nodes.append(self._raised(level, self._nodes[-1]))

    @property
    def blocks(self) -> States:
        """The states of the widest nodes."""
        return self._nodes[-1]

    def windows(self, ranges: Ranges) -> States:
        """The state of each window."""
        shape = self._shape
        begin, end = shape.block_of[ranges.first], shape.block_of[ranges.last]
        last_block = (ranges.pane + (shape.length - 1)) >> shape.height
        late = (shape.blocks[begin] == last_block) & (last_block > ranges.pane >> shape.height)
        of_end, of_beginning = np.flatnonzero(~late), np.flatnonzero(late | (end > begin))
        between = np.flatnonzero(end - begin == 2)
        ends, end_at = self._swept(ranges.first[of_end], towards_end=True)
        beginnings, at = self._swept(ranges.last[of_beginning], towards_end=False)
        parts = [
            take_states(ends, end_at),
            take_states(self.blocks, begin[between] + 1),
            take_states(beginnings, at),
        ]
        codes = np.concatenate([of_end, between, of_beginning])
        return self._family.merge(Groups(codes, len(ranges)), join_states(*parts))

    def _raised(self, level: _Level, nodes: States) -> States:
        """The states of the parents; a node without a sibling passes its state on."""
        merged = merge_pairs(self._family, nodes, level.left, nodes, level.left + 1)
        if len(level.left) == level.parents:
            return merged
        rows = np.empty(level.parents, np.int64)
        rows[level.parent] = np.arange(len(level.parent))
        rows[level.parent[level.left]] = len(level.parent) + np.arange(len(level.left))
        return take_states(join_states(nodes, merged), rows)

    def _swept(self, places: Ints, towards_end: bool) -> tuple[States, Ints]:
        """States from places to the end of their block, or from its beginning up to them.

        Returns a state for each distinct place, and the row of every place asked for. On the way
        down, `held` has the state of all that lies in the block beyond a node; `at` has the row of
        each node in it, -1 for nothing.
        """
        asked = np.zeros(len(self._shape.block_of), np.bool_)
        asked[places] = True
        wanted = [np.flatnonzero(asked)]
        for level in self._shape.levels:
            parents = level.parent[wanted[-1]]
            wanted.append(np.append(parents[:1], parents[1:][parents[1:] != parents[:-1]]))
        held, at = take_states(self.blocks, wanted[-1][:0]), np.full(len(wanted[-1]), -1, np.int64)
        for depth in reversed(range(len(self._shape.levels))):
            level, nodes, states = self._shape.levels[depth], wanted[depth], self._nodes[depth]
            at = at[np.searchsorted(wanted[depth + 1], level.parent[nodes])]
            beside = (level.is_left if towards_end else level.is_right)[nodes]
            sibling = nodes + (1 if towards_end else -1)
            held, at = self._extended(held, at, states, sibling, beside, towards_end)
        everywhere = np.ones(len(at), np.bool_)
        held, at = self._extended(held, at, self._nodes[0], wanted[0], everywhere, towards_end)
        return held, at[(np.cumsum(asked) - 1)[places]]

    def _extended(
        self, held: States, at: Ints, nodes: States, more: Ints, where: Mask, towards_end: bool
    ) -> tuple[States, Ints]:
        """`held` with the nodes `more` merged in, nearer to the place, at the marked rows."""
        new, both = where & (at < 0), where & (at >= 0)
        if towards_end:
            merged = merge_pairs(self._family, nodes, more[both], held, at[both])
        else:
            merged = merge_pairs(self._family, held, at[both], nodes, more[both])
        size = int(at.max(initial=-1)) + 1
        rows = at.copy()
        rows[new] = size + np.arange(np.count_nonzero(new))
        rows[both] = size + np.count_nonzero(new) + np.arange(np.count_nonzero(both))
        used = np.zeros(size + np.count_nonzero(where), np.bool_)
        used[rows[rows >= 0]] = True
        kept = np.append(np.cumsum(used) - 1, -1)
        pool = join_states(held, take_states(nodes, more[new]), merged)
        return take_states(pool, np.flatnonzero(used)), kept[rows]
