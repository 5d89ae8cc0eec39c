"""Describes an as-of join: its columns, its keys, and how far it looks. Plain picklable data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from tidegate.batch import MIN_US
from tidegate.expression.tree import Expr
from tidegate.operate.kernels.expression import evaluate
from tidegate.operate.kernels.order import canonical, flat

if TYPE_CHECKING:
    from tidegate.operate.asof.look import AsOfLook

LEFT, RIGHT = 0, 1
GROUP = "group"
"""The column of the state that a key is found by: 62 bits of its hash."""

OWN = "own"
"""The column of rows that are decided later with the time of their left tuple."""

Columns = tuple[tuple[str, pa.DataType], ...]


@dataclass(frozen=True)
class AsOfSpec:
    """What an as-of join is asked for.

    `sides` are what the prefixes of either side put out, `keys` what is compared, of one type on
    both sides. `equal` says whether a right tuple of the same instant counts.
    """

    sides: tuple[Columns, Columns]
    keys: tuple[tuple[Expr, Expr], ...]
    look: AsOfLook
    equal: bool
    tolerance_us: int | None
    keep: bool

    @property
    def key_fields(self) -> Columns:
        return tuple((f"k{i}", pair[LEFT].type) for i, pair in enumerate(self.keys))

    def keys_of(self, side: int, tuples: pa.Table) -> list[pa.Array]:
        """The values that are compared, with one zero and one NaN; of tuples of the sides."""
        found = [(pair[side], evaluate(pair[side], tuples)) for pair in self.keys]
        return [canonical(flat(values, expr.type)) for expr, values in found]

    @property
    def state_schema(self) -> pa.Schema:
        """What is kept of a tuple: its place, its key, and the columns of its side."""
        fixed: Sequence[tuple[str, pa.DataType]] = [
            ("bucket", pa.int32()),
            *((name, pa.int64()) for name in (GROUP, "ts", "src", "seq")),
        ]
        own = self.sides[self.look.stored]
        return pa.schema([*fixed, *self.key_fields, *self.look.marks, *own])

    def needed_us(self, frontier_us: int) -> int:
        """From which time on stored tuples can still have a partner."""
        return MIN_US if self.tolerance_us is None else max(frontier_us - self.tolerance_us, MIN_US)
