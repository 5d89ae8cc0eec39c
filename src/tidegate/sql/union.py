"""The sides of UNION ALL, between a tree of two sides each and the one node they become."""

from __future__ import annotations

from sqlglot import exp

from tidegate.errors import QueryError


def sides_of(tree: exp.SetOperation) -> list[exp.Expression]:
    """What UNION ALL joins, in order; thousands of sides are a tree that leans to the left."""
    sides: list[exp.Expression] = []
    left: exp.Expression = tree
    while isinstance(left, exp.SetOperation) and (left is tree or _is_bare(left)):
        name = type(left).__name__.upper()
        if not isinstance(left, exp.Union) or left.args.get("distinct"):
            raise QueryError(
                name,
                "only UNION ALL is possible on an unbounded stream",
                name,
                "Write UNION ALL.",
            )
        if left.args.get("by_name"):
            raise QueryError("UNION ALL", "BY NAME is not supported")
        sides.append(left.expression)
        left = left.this
    return [left, *reversed(sides)]


def _is_bare(tree: exp.Expression) -> bool:
    return not any(tree.args.get(clause) for clause in ("with_", "order", "limit"))
