"""Describes the join of tuples to a table: which rows fit, and which columns are taken.

Plain picklable data, part of a prefix. The left side of an interval is the tuple, the right side
is the row of the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tidegate.expression.tree import Expr
from tidegate.operate.join.kind import ANTI, INNER, LEFT_OUTER, SEMI, JoinKind
from tidegate.operate.join.spec import PairInterval

KINDS = (INNER, LEFT_OUTER, SEMI, ANTI)
"""The kinds of joins to a table. Its rows have no time, so none can be put out without a tuple."""


@dataclass(frozen=True)
class TableLookup:
    """One table that tuples are joined to, at its place in a prefix.

    Tuples must meet `where` first. `intervals` find the rows that may fit, and these must meet
    `rest`. `reads` maps names in expressions to columns of the table. Tuples get the columns in
    `adds`, those in `coded` as codes. With `valid_from`, a column of the table, a key has one row
    at each instant: the newest one that is not later.
    """

    table: str
    kind: JoinKind
    where: tuple[Expr, ...]
    intervals: tuple[PairInterval, ...]
    rest: tuple[Expr, ...]
    reads: tuple[tuple[str, str], ...]
    adds: tuple[str, ...]
    valid_from: str | None = None
    coded: tuple[str, ...] = ()

    @property
    def multiplies(self) -> bool:
        """Whether one tuple may become several rows."""
        return self.kind.pairs

    @property
    def expressions(self) -> Iterator[Expr]:
        """All expressions that are evaluated, except bounds, which are made of the same parts."""
        yield from (*self.where, *self.rest)
        for interval in self.intervals:
            yield from (interval.left_value, interval.right_value)
