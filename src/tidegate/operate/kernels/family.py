"""The protocol of an aggregate function: fold rows, merge states, finish results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeGuard

import pyarrow as pa

from tidegate.operate.kernels.group import Groups
from tidegate.operate.kernels.order import Ints

States = list[pa.Array]
"""State columns of one function, in the order of `Family.state`: one row per group."""


class Family(Protocol):
    """Folding rows into states, states into states, and states into results, all by column.

    Implementations hold types and parameters only and are cheap to make. The states of a group
    may depend on its own rows in their order, and for `fold` on their positions, on nothing else.
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
        """States of the groups from other states, a left fold in the order of the rows."""

    def finish(self, states: Sequence[pa.Array]) -> pa.Array:
        """The results, one per state."""


class SlidingFamily(Family, Protocol):
    """A family that need not merge states for every window.

    What leaves a window can be taken away again, as from exact sums; or states grow with the rows,
    and are better kept in order from window to window.
    """

    def slide(self, states: Sequence[pa.Array], first: Ints, last: Ints) -> pa.Array:
        """What `finish` would return for the merges of states [first, last), one for each window.

        No window is without states, and neither bound falls from one to the next.
        """


def slides(family: Family) -> TypeGuard[SlidingFamily]:
    """Whether a family is one that slides; asked in every batch, where `isinstance` is slow."""
    return hasattr(family, "slide")
