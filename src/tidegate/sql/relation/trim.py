"""Drops columns of nested joins that nothing reads, so that they are never read from the input."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from sqlglot import exp

from tidegate.errors import QueryError
from tidegate.query.name import EVENT_TIME, column
from tidegate.query.node.node import AsOf, Join, Node, Project
from tidegate.sql.relation.relation import Relation

_BELOW = ("from_", "joins", "with_")


def trimmed(relation: Relation, tree: exp.Select) -> Relation:
    """The joins of a SELECT without the columns that no clause uses."""
    node = relation.node
    if relation.pair is None or not isinstance(node, Join | AsOf) or _has_star(tree):
        return relation
    used = set()
    for clause in _clauses(tree):
        for written in clause.find_all(exp.Column):
            with suppress(QueryError):  # told where the clause is bound
                found = relation.scope.plain(written, "ORDER BY")
                used |= {c.name for c in found.find_all(exp.Column)}
    return replace(relation, node=_with_columns(node, used))


def _clauses(tree: exp.Select) -> Iterator[exp.Expr]:
    for slot, value in tree.args.items():
        parts = value if isinstance(value, list) else [value]
        yield from (part for part in parts if slot not in _BELOW and isinstance(part, exp.Expr))


def _has_star(tree: exp.Select) -> bool:
    return any(e.is_star for e in tree.expressions)


def _with_columns(node: Join | AsOf, used: set[str]) -> Join | AsOf:
    conditions = node.equalities if isinstance(node, AsOf) else (node.predicate,)
    asked = [c for c in conditions if isinstance(c, exp.Expression)]
    wanted = used | {c.name for e in asked for c in e.find_all(exp.Column)}
    sides: list[Node] = []
    for side, child in enumerate(node.children):
        if isinstance(child, Join | AsOf):
            kept = {n.column for n in node.side_names(side) if n in wanted}
            names = [n for n in child.names if n in kept and n != EVENT_TIME]
            below = _with_columns(child, set(names))
            child = Project(below, tuple((n, column(n)) for n in names))
        sides.append(child)
    if sides == list(node.children):
        return node
    return replace(node, left=sides[0], right=sides[1])
