"""The protocol of an aggregate function's kernels: fold rows, merge states, finish results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeGuard

import numpy as np
import pyarrow as pa

from tidegate.operate.kernels.group import Groups
from tidegate.operate.kernels.order import Ints

States = list[pa.Array]
"""State columns of one function, in the order of `Family.state`: one row per group."""


class Family(Protocol):
    """Folds rows into states, merges states, and turns states into results, all by column.

    Implementations hold types and parameters only and are cheap to make. The state of a group may
    depend on the group's own rows in their order, in `fold` also on their positions, and on nothing
    else: that is what makes results independent of batch cuts and instances.
    """

    @property
    def state(self) -> tuple[tuple[str, pa.DataType], ...]:
        """The names (unique within the function) and types of the state columns."""

    @property
    def result(self) -> pa.DataType:
        """The type of what `finish` returns."""

    def fold(self, groups: Groups, columns: Sequence[pa.Array]) -> States:
        """States of the groups from argument columns, one entry per row of `groups`."""

    def merge(self, groups: Groups, states: Sequence[pa.Array]) -> States:
        """States of the groups from other states, merged from left to right in row order."""

    def finish(self, states: Sequence[pa.Array]) -> pa.Array:
        """The results, one per state."""


class SlidingFamily(Family, Protocol):
    """A family that computes overlapping windows one from the other, without a merge for each.

    Either what leaves a window can be taken away again, as from exact sums, or states grow with the
    rows and are cheaper to keep in order from window to window.
    """

    def slide(self, states: Sequence[pa.Array], first: Ints, last: Ints) -> pa.Array:
        """What `finish` would return for the merge of states [first, last), for each window.

        No window is empty, and neither bound falls from one window to the next.
        """


def take_states(states: States, rows: Ints) -> States:
    """Some rows of state columns."""
    picked = pa.array(rows)
    return [column.take(picked) for column in states]


def join_states(*parts: States) -> States:
    """The rows of several sets of state columns, one after the other."""
    return [pa.concat_arrays(columns) for columns in zip(*parts, strict=True)]


def merge_pairs(family: Family, earlier: States, one: Ints, later: States, other: Ints) -> States:
    """The merges of row `one[i]` of some states with row `other[i]` of later ones, for each i."""
    if not len(one):
        return take_states(earlier, one)
    both = join_states(take_states(earlier, one), take_states(later, other))
    return family.merge(Groups(np.tile(np.arange(len(one)), 2), len(one)), both)


def slides(family: Family) -> TypeGuard[SlidingFamily]:
    """Whether a family slides. Every batch asks, and `isinstance` of a protocol is slow."""
    return hasattr(family, "slide")
