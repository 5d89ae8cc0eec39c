"""The parts of one SELECT (list, WHERE, ORDER BY, LIMIT) as expressions over a scope."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from tidegate.errors import QueryError
from tidegate.query.name import NamedExpr, canonical, expression_text, find_name, spark_name
from tidegate.query.node.node import Filter, Node, Order, check_type
from tidegate.sql.function import aggregate_name, is_aggregate
from tidegate.sql.group import ordinal
from tidegate.sql.grouping_sets import normal_group
from tidegate.sql.scope import PairScope, Scope
from tidegate.sql.star import star_columns


def where_filter(child: Node, condition: exp.Expression) -> Filter:
    """WHERE; its errors say WHERE also over rows of windows."""
    check_type(child, canonical(condition, child.names, "WHERE"), "WHERE", predicate=True)
    return Filter(child, condition)


def refuse_aliases(condition: exp.Expression, tree: exp.Select, names: Sequence[str]) -> None:
    """Raises for an alias of the select list in WHERE, which is evaluated before the list."""
    aliases = {e.alias.lower(): e.this for e in tree.expressions if isinstance(e, exp.Alias)}
    for node in condition.find_all(exp.Column):
        meant = aliases.get(node.name.lower())
        if meant is None or node.table or find_name(node.name, names) is not None:
            continue
        raise QueryError(
            "WHERE",
            "does not see the names of the select list",
            node.name,
            f"Write {expression_text(meant)} in its place.",
        )


def select_items(tree: exp.Select, scope: Scope | PairScope, child: Node) -> tuple[NamedExpr, ...]:
    """The select list as named expressions, with stars expanded."""
    items: list[NamedExpr] = []
    for written in tree.expressions:
        if isinstance(written, exp.Star) or (written.is_star and isinstance(written, exp.Column)):
            items.extend(star_columns(written, scope, child, tree))
            continue
        inner = written.this if isinstance(written, exp.Alias) else written
        expression = scope.plain(inner, "SELECT")
        # A column of USING may be made of both sides, and has its own name nevertheless.
        merged = isinstance(inner, exp.Column) and isinstance(expression, exp.Coalesce)
        named = inner if merged else expression
        name = written.alias if isinstance(written, exp.Alias) else spark_name(named)
        items.append((name, expression))
    if not items:
        raise QueryError("SELECT", "needs at least one column")
    return tuple(items)


def order_keys(
    order: exp.Order | None, items: tuple[NamedExpr, ...], scope: Scope | PairScope
) -> tuple[Order, ...]:
    """The keys of ORDER BY; a number stands for an item of the select list."""
    keys: list[Order] = []
    for written in order.expressions if order is not None else ():
        by = written.this if isinstance(written, exp.Ordered) else written
        if isinstance(by, exp.Literal) and not by.is_string:
            by = ordinal(by, items, "ORDER BY")
        args = written.args if isinstance(written, exp.Ordered) else {}
        key = Order(scope.plain(by, "ORDER BY"), bool(args.get("desc")), args.get("nulls_first"))
        keys.append(key)
    return tuple(keys)


def limit_rows(limit: exp.Limit | exp.Fetch | None) -> int | None:
    """The number of LIMIT; None if there is no LIMIT."""
    if limit is None:
        return None
    value = limit.args.get("count") if isinstance(limit, exp.Fetch) else limit.expression
    if not isinstance(value, exp.Literal) or value.is_string or not value.name.isdigit():
        raise QueryError(
            "LIMIT",
            "must be a whole number from 0 on",
            "none" if value is None else value.sql(dialect="spark", comments=False),
        )
    return int(value.name)


def plain_group(group: exp.Group, scope: Scope | PairScope) -> exp.Group:
    """GROUP BY over the columns of a scope, with its sets as elements."""
    plain = normal_group(group).copy()
    plain.set("expressions", [scope.plain(e, "GROUP BY") for e in plain.expressions])
    return plain


def without_aggregate(predicate: exp.Expression) -> exp.Expression:
    """The condition of WHERE; raises if it contains an aggregate."""
    for node in predicate.walk():
        if is_aggregate(node):
            raise QueryError(
                "WHERE",
                "an aggregate cannot stand here",
                aggregate_name(node),
                "Write the condition in HAVING.",
            )
    return predicate
