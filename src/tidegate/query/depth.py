"""Refuses expressions made in Python that are nested too deeply to recurse into."""

from __future__ import annotations

from sqlglot import exp

from tidegate.nesting import MOST_NESTED, too_deep


def require_shallow(node: exp.Expr, where: str) -> None:
    """Refuse what is nested too deeply; chains of operators may be of any length."""
    stack = [(node, 0)]
    while stack:
        part, depth = stack.pop()
        if depth > MOST_NESTED:
            raise too_deep(where, "more")
        for child in part.iter_expressions():
            flat = isinstance(part, exp.Paren) or (
                isinstance(part, exp.Binary) and child is part.this
            )
            stack.append((child, depth if flat else depth + 1))
