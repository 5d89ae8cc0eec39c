"""The order of rows inside a window, and the filter by row number in it (top n)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlglot import exp

from tidegate.collect.numbering import Numbering
from tidegate.errors import QueryError
from tidegate.query.name import expression_text


@dataclass(frozen=True)
class Order:
    """One key of ORDER BY; by default NULL is the smallest value, as in Spark."""

    expression: exp.Expression
    descending: bool = False
    nulls_first: bool | None = None

    @property
    def nulls_lead(self) -> bool:
        """Whether NULL comes first, with the default applied."""
        return not self.descending if self.nulls_first is None else self.nulls_first

    @property
    def text(self) -> str:
        """The key for people; the place of NULL is shown only where it is unusual."""
        way = " DESC" if self.descending else ""
        unusual = self.nulls_lead == self.descending
        nulls = f" NULLS {'FIRST' if self.nulls_lead else 'LAST'}" if unusual else ""
        return f"{expression_text(self.expression)}{way}{nulls}"


@dataclass(frozen=True)
class TopRanked:
    """Keeps the rows of each window and partition whose number in an order is in a range.

    The group's key breaks ties of ROW_NUMBER and NTILE.
    """

    per: tuple[exp.Expression, ...]
    order: tuple[Order, ...]
    numbering: Numbering

    @staticmethod
    def first(rows: int, per: tuple[exp.Expression, ...], order: tuple[Order, ...]) -> TopRanked:
        """The first rows of each partition."""
        if rows < 0:
            raise QueryError("LIMIT", "must not be negative", str(rows))
        return TopRanked(per, order, Numbering(rows))

    def over(self, change: Callable[[exp.Expression], exp.Expression]) -> TopRanked:
        """The same with changed expressions; defaults for NULL are applied."""
        order = tuple(Order(change(o.expression), o.descending, o.nulls_lead) for o in self.order)
        return replace(self, per=tuple(map(change, self.per)), order=order)

    def said(self, text: Callable[[exp.Expression], str]) -> str:
        """What it does in one line; `text` writes an expression."""
        order = [
            f"{text(o.expression)}{' DESC' if o.descending else ''} "
            f"NULLS {'FIRST' if o.nulls_lead else 'LAST'}"
            for o in self.order
        ]
        per = ", ".join(map(text, self.per)) or "nothing"
        by, numbering = ", ".join(order) or "key", self.numbering
        return f"{numbering.name} by {by} {numbering.bounds} per window and {per}"
