"""Expands * in a select list, with EXCEPT, REPLACE and RENAME."""

from __future__ import annotations

from sqlglot import exp

from tidegate.errors import QueryError, near
from tidegate.query.name import (
    EVENT_TIME,
    WINDOW,
    NamedExpr,
    column,
    find_name,
    is_column,
    no_column,
)
from tidegate.query.node.node import Node, result_columns
from tidegate.sql.function import is_aggregate
from tidegate.sql.over.over import ranks_tuples
from tidegate.sql.relation.join import star_items
from tidegate.sql.scope import PairScope, Scope


def star_columns(
    written: exp.Expression, scope: Scope | PairScope, child: Node, tree: exp.Select
) -> list[NamedExpr]:
    """The columns of * or r.* in the select list of `tree`."""
    if (
        isinstance(written, exp.Column)
        and isinstance(scope, Scope)
        and not scope.owns(written.table)
    ):
        raise QueryError(
            "SELECT",
            "no stream in FROM has this name",
            written.table,
            near(written.table, [scope.alias] if scope.alias else []),
        )
    if tree.args.get("group") or any(map(_groups, tree.expressions)):
        raise QueryError(
            "SELECT", "* cannot stand beside an aggregate", "*", "Name the columns of GROUP BY."
        )
    star = written.this if isinstance(written, exp.Column) else written
    excepted = star.args.get("except_") or ()
    left_out = {e.name.lower() for e in excepted}
    for one in excepted:
        if find_name(one.name, plain := [n.rpartition(".")[2] for n in child.names]) is None:
            raise no_column(one.name, plain, "* EXCEPT")
    if isinstance(scope, PairScope):
        items = star_items(written, scope, left_out)
    else:
        columns = result_columns(child)
        if child.windowed and _gives_tuples(tree, child):
            columns = [(name, name) for name in WINDOW] + columns
        items = [(n, column(own)) for n, own in columns if own.lower() not in left_out]
    return _changed(items, star, scope)


def _gives_tuples(tree: exp.Select, child: Node) -> bool:
    """Whether rows of windows become tuples, whose window is then two ordinary columns."""
    clauses = [tree.args.get("distinct"), tree.args.get("qualify") if ranks_tuples(child) else None]
    return any(clauses) or any(e.find(exp.Window) for e in tree.expressions)


def _groups(item: exp.Expr) -> bool:
    """Whether an item has an aggregate other than one OVER tuples, which keeps every tuple."""
    parts = item.walk(prune=lambda part: isinstance(part, exp.Window))
    return any(is_aggregate(part) for part in parts)


def _changed(
    items: list[NamedExpr], star: exp.Expression, scope: Scope | PairScope
) -> list[NamedExpr]:
    """The columns of * with REPLACE (expression AS name) and RENAME (name AS other)."""
    found = {
        EVENT_TIME if is_column(e, (EVENT_TIME,)) else name.lower(): i
        for i, (name, e) in enumerate(items)
    }
    for clause in ("replace", "rename"):
        for change in star.args.get(clause) or ():
            old = change.alias if clause == "replace" else change.this.name
            at = found.get(old.lower())
            if at is None:
                raise no_column(old, [n for n, _ in items], f"* {clause.upper()}")
            if clause == "replace":
                items[at] = (items[at][0], scope.plain(change.this, "SELECT"))
            else:
                items[at] = (change.alias, items[at][1])
    return items
