"""The sides of UNION ALL, between a tree of two sides each and the one node they become."""

from __future__ import annotations

from sqlglot import exp

from tidegate.errors import QueryError
from tidegate.sql.elsewhere import Read
from tidegate.sql.instead import without_partner


def sides_of(tree: exp.SetOperation) -> list[exp.Expression]:
    """What UNION ALL joins, in order; thousands of sides are a tree that leans to the left."""
    sides: list[exp.Expression] = []
    left: exp.Expression = tree
    while isinstance(left, exp.SetOperation) and (left is tree or _is_bare(left)):
        name = type(left).__name__.upper()
        if not isinstance(left, exp.Union):
            both = (
                "For what is in both, write: FROM a [RANGE 5 MINUTES] JOIN b [RANGE 5 MINUTES] ON "
            )
            raise QueryError(
                "EXCEPT (or MINUS)" if name == "EXCEPT" else name,
                "streams are put together by UNION ALL, and compared by JOIN",
                name,
                without_partner(Read("a"), Read("b"), "k")
                if name == "EXCEPT"
                else f"{both}a.k = b.k",
            )
        if left.args.get("distinct"):
            raise QueryError(
                name,
                "only UNION ALL is possible on an unbounded stream",
                name,
                "Write UNION ALL; SELECT DISTINCT k FROM (... UNION ALL ...) [RANGE 1 HOUR] makes "
                "the rows of a window distinct.",
            )
        if left.args.get("by_name"):
            raise QueryError(
                "UNION ALL",
                "columns are matched by position",
                "BY NAME",
                "List the columns of both sides in one order, and leave BY NAME out.",
            )
        sides.append(left.expression)
        left = left.this
    return [left, *reversed(sides)]


def _is_bare(tree: exp.Expression) -> bool:
    return not any(tree.args.get(clause) for clause in ("with_", "order", "limit"))
