"""Describes the join of tuples to a table: which rows fit, and what is taken of them.

Plain picklable data, part of a prefix. The left side of its intervals is the tuple, the right side
the row of the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tidegate.expression.tree import Expr
from tidegate.operate.join.kind import ANTI, INNER, LEFT_OUTER, SEMI, JoinKind
from tidegate.operate.join.spec import PairInterval

KINDS = (INNER, LEFT_OUTER, SEMI, ANTI)
"""The kinds of joins of a stream to a table, whose rows have no time and cannot stand alone."""


@dataclass(frozen=True)
class TableLookup:
    """One table that tuples are joined to, in the place of a prefix where they are.

    `where` are conditions that tuples meet before. `intervals` find the rows that may fit, `rest`
    are the conditions that these are asked as well. `reads` are the columns of the table, by their
    names in expressions; tuples get those that are named in `adds`, and those in `coded` as codes.
    With `valid_from`, a column of the table, a key has one row at each instant: the newest that is
    not later.
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
        """Whether several rows may come of one tuple."""
        return self.kind.pairs

    @property
    def expressions(self) -> Iterator[Expr]:
        """All that it evaluates, but for bounds, which are made of the same."""
        yield from (*self.where, *self.rest)
        for interval in self.intervals:
            yield from (interval.left_value, interval.right_value)
