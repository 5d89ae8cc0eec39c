"""LIMIT n BY columns, and QUALIFY ROW_NUMBER() OVER (...) <= n: the first rows of partitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from tidegate.errors import QueryError
from tidegate.query.name import NamedExpr
from tidegate.query.ranking import Order, TopRanked
from tidegate.sql.group import positions
from tidegate.sql.scope import PairScope, Scope
from tidegate.sql.select import limit_rows, order_keys

KINDS: dict[type[exp.Expr], str] = {
    exp.RowNumber: "ROW_NUMBER",
    exp.Rank: "RANK",
    exp.DenseRank: "DENSE_RANK",
}

_MIRRORED = {exp.GTE: exp.LTE, exp.GT: exp.LT, exp.EQ: exp.EQ}
_EXAMPLE = "QUALIFY ROW_NUMBER() OVER (PARTITION BY route ORDER BY n DESC) <= 3"

Resolve = Callable[[exp.Expression, str], exp.Expression]
"""Says an expression of a clause over the columns of its node."""


def first_rows(
    tree: exp.Expr,
    order: tuple[Order, ...],
    items: tuple[NamedExpr, ...],
    scope: Scope | PairScope,
    resolve: Resolve,
) -> tuple[int | None, TopRanked | None]:
    """The rows of LIMIT for each window, and those of each partition of one.

    `order` is that of ORDER BY, by which LIMIT BY goes.
    """
    limit, by = tree.args.get("limit"), _limit_by(tree)
    if qualify := tree.args.get("qualify"):
        if by:
            raise QueryError(
                "QUALIFY", "rows are chosen by QUALIFY or by LIMIT BY", "both", "Leave one out."
            )
        window, kind, most = _read(qualify.this)
        per = [resolve(scope.plain(e, "PARTITION BY"), "PARTITION BY") for e in _partition(window)]
        keys = order_keys(window.args.get("order"), items, scope)
        own = tuple(replace(o, expression=resolve(o.expression, "ORDER BY")) for o in keys)
        return limit_rows(limit), TopRanked(tuple(per), own, most, kind)
    rows = limit_rows(limit)
    if not by or rows is None:
        return rows, None
    columns = positions([scope.plain(e, "LIMIT BY") for e in by], items, "LIMIT BY")
    per = [resolve(e, "LIMIT BY") for e in columns]
    return None, TopRanked(tuple(per), order, rows)


def refuse_partitions(tree: exp.Expr) -> None:
    """Refuse the first rows of partitions where rows are no rows of windows."""
    if by := _limit_by(tree):
        keys = ", ".join(e.sql(dialect="spark", comments=False) for e in by)
        raise QueryError(
            "LIMIT BY",
            "takes the first rows of each window",
            "a stream without one",
            "Give the stream a window and an aggregate; for the first tuple of each key write "
            f"SELECT DISTINCT ON ({keys}) ... KEEP FIRST WITHIN '1 hour'.",
        )


def _limit_by(tree: exp.Expr) -> Sequence[Any]:
    limit = tree.args.get("limit")
    return limit.expressions if isinstance(limit, exp.Limit) else ()


def _partition(window: exp.Expr) -> Sequence[Any]:
    return window.args.get("partition_by") or ()


def _read(condition: exp.Expr) -> tuple[exp.Window, str, int]:
    """The window function that a condition compares, its kind, and the greatest number allowed."""
    left, right = condition.args.get("this"), condition.args.get("expression")
    kind: Any = type(condition)
    if isinstance(left, exp.Literal):
        left, right, kind = right, left, _MIRRORED.get(kind)
    plain = isinstance(right, exp.Literal) and not right.is_string and right.name.isdigit()
    numbers = isinstance(left, exp.Window) and type(left.this) in KINDS
    if isinstance(left, exp.Window) and numbers and plain and not any(left.this.args.values()):
        assert isinstance(right, exp.Literal)
        number = int(right.name)
        most = {exp.LTE: number, exp.LT: number - 1}.get(kind)
        most = 1 if kind is exp.EQ and number == 1 else most
        if most is not None and left.args.get("spec") is None:
            return left, KINDS[type(left.this)], max(most, 0)
    raise QueryError(
        "QUALIFY",
        "must say how many of the first rows of each partition are kept",
        condition.sql(dialect="spark", comments=False)[:80],
        f"Write for example {_EXAMPLE}; ROW_NUMBER, RANK or DENSE_RANK with <=, < or = 1.",
    )
