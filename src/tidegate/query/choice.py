"""Columns as a program chooses them, between the arguments of a method and named expressions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sqlglot import exp

from tidegate.errors import QueryError
from tidegate.query.aggregate import AggregateCall
from tidegate.query.expression import Expression, to_node
from tidegate.query.name import (
    EVENT_TIME,
    NamedExpr,
    canonical,
    column,
    find_name,
    is_column,
    resolve,
    spark_name,
)
from tidegate.query.node import Node
from tidegate.query.unqualified import unqualified_columns

Column = str | Expression
"""The name of a column, or an expression."""

STAR = "*"


def read_expression(value: object, names: Sequence[str], where: str) -> exp.Expression:
    """What a user gave as an expression; text of SQL where a name belongs is told as such."""
    if isinstance(value, AggregateCall):
        raise QueryError(
            where,
            "an aggregate needs a window",
            repr(value),
            'Write .window("15 minutes").agg(n=count()).',
        )
    if isinstance(value, str) and find_name(value, names) is None and _is_sql(value):
        raise QueryError(
            where,
            "a string is the name of a column here",
            repr(value),
            f"Write expr({value!r}), with from tidegate import expr.",
        )
    if callable(value):
        raise QueryError(
            where,
            "must be an expression, not a function",
            getattr(value, "__name__", repr(value)),
            'Write for example col("fare") > 5.',
        )
    return to_node(value)


def _is_sql(text: str) -> bool:
    """Whether text has a sign that names of columns seldom have."""
    return any(sign in text for sign in "<>=+-*/%(|&'\"") or len(text.split()) > 2


def named_columns(
    node: Node, columns: Iterable[object], named: Mapping[str, Column], where: str = "select"
) -> list[NamedExpr]:
    """Expressions with the names they go by: an alias, the column's own name, or their text."""
    names = node.names
    items: list[NamedExpr] = []
    for value in columns:
        if isinstance(value, list | tuple):
            items += named_columns(node, value, {}, where)
        elif _is_star(value):
            items += all_columns(node)
        else:
            items.append(_named(value, names, where))
    return items + [(name, read_expression(v, names, where)) for name, v in named.items()]


def all_columns(node: Node) -> list[NamedExpr]:
    """What * stands for: every column but the event time or the window, which stay anyway."""
    return [(name, column(own)) for name, own in unqualified_columns(node)]


def with_columns(node: Node, more: Sequence[NamedExpr]) -> list[NamedExpr]:
    """All columns and these: one that is there keeps its place, a new one comes last."""
    added = {name.lower(): (name, expression) for name, expression in more}
    kept = [added.pop(item[0].lower(), item) for item in all_columns(node)]
    return kept + list(added.values())


def without_columns(node: Node, names: Iterable[object]) -> list[NamedExpr]:
    """All columns but these, which must be there."""
    items = all_columns(node)
    left_out = {_known(name, items, "drop") for name in names}
    return [item for item in items if item[0] not in left_out]


def renamed_columns(node: Node, names: Mapping[str, str]) -> list[NamedExpr]:
    """All columns, those that are named here under other names; all must be there."""
    items = all_columns(node)
    new = {_known(old, items, "rename"): name for old, name in names.items()}
    for name in new.values():
        if not isinstance(name, str) or not name:
            raise QueryError("rename", "a column's name must be a text", repr(name))
    return [(new.get(name, name), expression) for name, expression in items]


def _known(name: object, items: Sequence[NamedExpr], where: str) -> str:
    if isinstance(name, Expression) and isinstance(name.node, exp.Column):
        name = name.node.name
    if not isinstance(name, str):
        raise QueryError(where, "needs names of columns", repr(name))
    if name == EVENT_TIME and (own := [n for n, e in items if is_column(e, (EVENT_TIME,))]):
        return own[0]  # under another name there, because it is not the event time
    return resolve(name, [n for n, _ in items], where)


def _named(value: object, names: Sequence[str], where: str) -> NamedExpr:
    node = read_expression(value, names, where)
    if isinstance(value, Expression) and isinstance(value.node, exp.Alias):
        return value.node.alias, node
    if isinstance(node, exp.Column):
        return find_name(node.name, names) or node.name, node
    return spark_name(canonical(node, names, where)), node


def _is_star(value: object) -> bool:
    if isinstance(value, Expression):
        found = value.node
        return isinstance(found, exp.Star) or (
            isinstance(found, exp.Column) and found.name == STAR and not found.table
        )
    return isinstance(value, str) and value == STAR
