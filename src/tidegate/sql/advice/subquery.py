"""Writes a query with its join in a subquery, for the remedy of a SELECT that is refused."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from tidegate.query.name import EVENT_TIME, find_name
from tidegate.sql.scope import PairScope

_PAIRS = "pairs_of_the_join"
_ABOVE = ("expressions", "group", "having", "order")


def aggregate_of_pairs(tree: exp.Select, scope: PairScope) -> str:
    """The text of an aggregate over a join with the join where it belongs; the window is open."""
    outer = tree.copy()
    inner = exp.Select(**{k: outer.args.get(k) for k in ("from_", "joins", "where")}).copy()
    names: dict[str, exp.Expression] = {}
    for column in _columns(outer):
        if not _of_pair(column, scope):
            continue
        name = _name(column, names)
        names[name] = column.copy()
        column.replace(exp.column(name))
    items = [c if c.name == n else exp.alias_(c, n) for n, c in names.items()]
    inner.set("expressions", items or [exp.column(EVENT_TIME)])
    outer.set("joins", None)
    outer.set("where", None)
    outer.set("from_", exp.From(this=exp.to_table(_PAIRS)))
    return _sql(outer).replace(_PAIRS, f"({_sql(inner)}) [RANGE ...]", 1)


def join_of_pairs(first: exp.Expression, joins: Sequence[exp.Join]) -> str:
    """The text of FROM with the first join of several in a subquery; its reach is open."""
    inner = f"(SELECT ... FROM {_sql(first)} {_sql(joins[0]).strip()})"
    return f"FROM {inner} AS pairs [RANGE ...] JOIN {_sql(joins[1].this)} ON ..."


def _columns(tree: exp.Select) -> list[exp.Column]:
    """The columns above FROM and WHERE, in the order they are written."""
    found: list[exp.Column] = []
    for clause in _ABOVE:
        parts = tree.args.get(clause)
        for part in parts if isinstance(parts, list) else [parts] if parts else []:
            found += part.find_all(exp.Column, bfs=False)
    return found


def _of_pair(column: exp.Column, scope: PairScope) -> bool:
    sides = (scope.left, scope.right)
    if column.table:
        return any(s.owns(column.table) for s in sides)
    return any(find_name(column.name, s.names) for s in sides)


def _name(column: exp.Column, names: dict[str, exp.Expression]) -> str:
    """What a column is called in the subquery: its own name, with its side's where two have it."""
    for name in (column.name, f"{column.table}_{column.name}"):
        if names.get(name, column) == column:
            return name
    return f"{column.table}_{column.name}_{len(names)}"


def _sql(tree: exp.Expr) -> str:
    return tree.sql(dialect="tidegate", comments=False)
