"""Flattens UNION ALL, which the parser returns as a binary tree."""

from __future__ import annotations

from sqlglot import exp


def sides_of(tree: exp.SetOperation) -> list[exp.Expression]:
    """The sides of UNION ALL in order. A loop, because thousands of sides are a tree of that
    depth.
    """
    sides: list[exp.Expression] = []
    left: exp.Expression = tree
    while isinstance(left, exp.SetOperation) and (left is tree or _is_bare(left)):
        sides.append(left.expression)
        left = left.this
    return [left, *reversed(sides)]


def _is_bare(tree: exp.Expression) -> bool:
    return not any(tree.args.get(clause) for clause in ("with_", "order", "limit"))
