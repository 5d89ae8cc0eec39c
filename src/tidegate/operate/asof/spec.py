"""Describes an as-of join as plain picklable data: its columns, its keys, and how far it looks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from tidegate.batch import MIN_US
from tidegate.expression.tree import Expr
from tidegate.operate.kernels.expression.expression import evaluate
from tidegate.operate.kernels.order import canonical, flat

if TYPE_CHECKING:
    from tidegate.operate.asof.look import AsOfLook

LEFT, RIGHT = 0, 1
GROUP = "group"
"""The column of the state by which keys are found: 62 bits of their hash."""

OWN = "own"
"""The column with the time of the left tuple, of rows that are decided at a later instant."""

Columns = tuple[tuple[str, pa.DataType], ...]


@dataclass(frozen=True)
class AsOfSpec:
    """An as-of join.

    `sides` has the columns that the prefixes of each side put out, `keys` the expressions that are
    compared, of one type on both sides. With `equal` a right tuple of the same instant counts.
    Right tuples further off than `tolerance_us` do not; None is any distance. With `keep` a left
    tuple without a partner gives a row with NULLs.
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
        """The key columns of tuples of a side, in which all zeros are equal and all NaN are."""
        found = [(pair[side], evaluate(pair[side], tuples)) for pair in self.keys]
        return [canonical(flat(values, expr.type)) for expr, values in found]

    @property
    def state_schema(self) -> pa.Schema:
        """The columns of the state: bucket, hash, order, key, marks, those of the stored side."""
        fixed: Sequence[tuple[str, pa.DataType]] = [
            ("bucket", pa.int32()),
            *((name, pa.int64()) for name in (GROUP, "ts", "src", "seq")),
        ]
        own = self.sides[self.look.stored]
        return pa.schema([*fixed, *self.key_fields, *self.look.marks, *own])

    def needed_us(self, frontier_us: int) -> int:
        """The earliest time at which a stored tuple can still have a partner."""
        return MIN_US if self.tolerance_us is None else max(frontier_us - self.tolerance_us, MIN_US)
