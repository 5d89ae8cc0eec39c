"""Holds the tuples of a group and their priorities until the window closes (WITH BALANCE)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.approx.priority import priorities
from tidegate.operate.aggregate.definition import RuledFunction
from tidegate.operate.aggregate.functions.raw_arguments import Unfolded
from tidegate.operate.kernels.family import States
from tidegate.operate.kernels.group import Groups


@dataclass(frozen=True)
class Held:
    """All tuples of a group: their number, whether to trim them, their priorities and arguments.

    The order inside the lists is not defined. `trim` is false until the answer, which knows all
    groups of a window, sets it. A merged group is trimmed if one of its parts is.
    """

    types: tuple[pa.DataType, ...]
    seed: int
    result = pa.int64()

    @property
    def state(self) -> tuple[tuple[str, pa.DataType], ...]:
        arguments = ((f"x{i}", pa.list_(type_)) for i, type_ in enumerate(self.types))
        return (
            ("n", pa.int64()),
            ("trim", pa.bool_()),
            ("priority", pa.list_(pa.uint64())),
            *arguments,
        )

    def fold(self, groups: Groups, columns: Sequence[pa.Array]) -> States:
        *arguments, _, src, seq = columns
        words = priorities(self.seed, src.to_numpy(), seq.to_numpy())
        counts, *lists = self._lists.fold(groups, [pa.array(words), *arguments])
        return [counts, pa.array(np.zeros(groups.n, np.bool_)), *lists]

    def merge(self, groups: Groups, states: Sequence[pa.Array]) -> States:
        counts, trim, *lists = states
        counts, *lists = self._lists.merge(groups, [counts, *lists])
        flags = trim.to_numpy(zero_copy_only=False)
        trimmed = np.bincount(groups.codes[flags], minlength=groups.n) > 0
        return [counts, pa.array(trimmed), *lists]

    def finish(self, states: Sequence[pa.Array]) -> pa.Array:
        """How many tuples there are."""
        return states[0]

    @property
    def _lists(self) -> Unfolded:
        return Unfolded((pa.uint64(), *self.types))


HELD = RuledFunction(
    name="held",
    doc="The tuples of a group, kept until the window closes and large groups can be trimmed.",
    what="a state of held tuples",
    rule=int,
    in_order=True,
    holistic=True,
    family=lambda *given: Held(given[:-1], given[-1]),
)
"""Its parameter is the seed of their priorities."""
