"""Reads the arguments of stream methods: columns, aggregates, and the windows of a join."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlglot import exp

from tidegate.calendar.duration import Duration, duration_us
from tidegate.errors import QueryError, near
from tidegate.operate.join.kind import SPARK_NAMES, JoinKind
from tidegate.query.aggregate import AggregateCall
from tidegate.query.expression import Expression, lit, to_node
from tidegate.query.name import (
    EVENT_TIME,
    NamedExpr,
    canonical,
    column,
    find_name,
    is_column,
    is_plain,
    resolve,
    spark_name,
)
from tidegate.query.node.join import PredicateFunction
from tidegate.query.node.node import Node, project
from tidegate.query.node.unnest import Unnest
from tidegate.query.unqualified import unqualified_columns
from tidegate.query.window import Distance, JoinWindow, TupleWindow, whole_rows

Column = str | Expression
"""The name of a column, or an expression."""

STAR = "*"
_HIDDEN = "exploded value"


def read_expression(value: object, names: Sequence[str], where: str) -> exp.Expression:
    """The tree of an argument; raises with advice for SQL text where a column name is expected."""
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
    """Whether a text has characters that column names rarely have."""
    return any(sign in text for sign in "<>=+-*/%(|&'\"") or len(text.split()) > 2


def named_columns(
    node: Node, columns: Iterable[object], named: Mapping[str, Column], where: str = "select"
) -> list[NamedExpr]:
    """Expressions with their names: an alias, the column's own name, or the expression's text."""
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
    """What * stands for: every column except the event time or window, which are always kept."""
    return [(name, column(own)) for name, own in unqualified_columns(node)]


def with_columns(node: Node, more: Sequence[NamedExpr]) -> list[NamedExpr]:
    """All columns and these: an existing one keeps its place, a new one comes last."""
    added = {name.lower(): (name, expression) for name, expression in more}
    kept = [added.pop(item[0].lower(), item) for item in all_columns(node)]
    return kept + list(added.values())


def without_columns(node: Node, names: Iterable[object]) -> list[NamedExpr]:
    """All columns except these, which must exist."""
    items = all_columns(node)
    left_out = {_known(name, items, "drop") for name in names}
    return [item for item in items if item[0] not in left_out]


def renamed_columns(node: Node, names: Mapping[str, str]) -> list[NamedExpr]:
    """All columns, some renamed; the old names must exist."""
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


def explode(child: Node, of: Column, into: str | None, position: str | None, outer: bool) -> Node:
    """One row for each value; without `into` the value replaces the list column."""
    values = read_expression(of, child.names, "explode")
    if into is not None:
        return Unnest(child, values, into, position, outer=outer)
    if not is_plain(values):
        raise QueryError("explode", "what is computed needs a name", repr(of), 'Write into="tag".')
    name = resolve(values.name, child.names, "explode")
    made = Unnest(child, values, _HIDDEN, position, outer=outer)
    kept = [n for n in made.names[1:] if n != _HIDDEN]
    return project(made, [(n, column(_HIDDEN if n == name else n)) for n in kept])


def check_aggregates(unnamed: Sequence[object], named: Mapping[str, object]) -> None:
    """Raises for arguments of agg() that are not named aggregates."""
    for given in unnamed:
        raise QueryError(
            "agg", "every aggregate needs a name", repr(given), f"Write {_example(given)}."
        )
    for name, call in named.items():
        if not isinstance(call, AggregateCall):
            raise QueryError(
                "agg",
                f"{name} must be an aggregate",
                _said(call),
                'Write for example n=tg.count() or fare=tg.mean("fare"); sum, min and max '
                "without tg. are Python's own.",
            )


def _example(given: object) -> str:
    """How to write an aggregate that was given without a name."""
    if isinstance(given, AggregateCall):
        named = "_".join([given.kind, *(a.name for a in given.arguments if a.name)])
        return f".agg({named}={given.python})"
    if isinstance(given, Mapping) and given:
        pairs = (f'{c}={f}("{c}")' for c, f in list(given.items())[:3] if isinstance(f, str))
        return f".agg({', '.join(pairs) or 'n=count()'})"
    return '.agg(n=count(), total=sum("fare"))'


def _said(value: object) -> str:
    """The wrong value as text for the message; a function is described as not called."""
    name = getattr(value, "__name__", None)
    return f"{name} without parentheses" if callable(value) and name else repr(value)


def join_kind(how: Any) -> JoinKind:
    """The kind of join for one of Spark's names."""
    kind = SPARK_NAMES.get(how.lower().replace("_", "")) if isinstance(how, str) else None
    if kind is None:
        raise QueryError(
            "join how", "must be a kind of join", repr(how), near(str(how), SPARK_NAMES)
        )
    return kind


def join_windows(within: Any, rows: Any) -> tuple[JoinWindow, JoinWindow]:
    """The windows of both sides; each argument is one value for both, or a pair."""
    mine, others = zip(_pair(within), _pair(rows), strict=True)
    return _join_window(*mine), _join_window(*others)


def _pair(value: Any) -> tuple[Any, Any]:
    if not isinstance(value, tuple):
        return value, value
    if len(value) != 2:
        raise QueryError("join", "needs one value, or one for each side", repr(value))
    return value


def _join_window(within: Duration | None, rows: int | None) -> JoinWindow:
    if (within is None) == (rows is None):
        raise QueryError(
            "join",
            "each side needs a window",
            "none" if within is None else "two",
            'Write for example within="5 minutes", or rows=100.',
        )
    if within is not None:
        return Distance(duration_us(within, "join within"))
    count = whole_rows(rows, "join rows")
    return TupleWindow(count, count)


def join_condition(
    on: Expression | PredicateFunction | str | Sequence[str] | bool | None,
) -> exp.Expression | PredicateFunction:
    """The condition of a join: an expression over both sides, or a function of their rows."""
    if isinstance(on, Expression | bool):
        return lit(on).node
    if callable(on):
        return on
    raise QueryError(
        "join",
        "on must be an expression over left and right, or a function of their rows",
        "nothing" if on is None else repr(on),
        "Write for example on=left.x == right.a, or on=True for all pairs.",
    )
