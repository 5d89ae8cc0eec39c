"""LIMIT n BY columns, and QUALIFY ROW_NUMBER() OVER (...) <= n: some rows of each partition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf, nextafter
from typing import Any

from sqlglot import exp

from tidegate.collect.numbering import RANKINGS, Numbering
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
    exp.Ntile: "NTILE",
    exp.PercentRank: "PERCENT_RANK",
    exp.CumeDist: "CUME_DIST",
}

_MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.GTE: exp.LTE,
    exp.GT: exp.LT,
    exp.LTE: exp.GTE,
    exp.LT: exp.GT,
    exp.EQ: exp.EQ,
}
_EXAMPLE = "QUALIFY ROW_NUMBER() OVER (PARTITION BY route ORDER BY n DESC) <= 3"

SUBQUERY_RANK = (
    "Number the rows as they come, with the aggregate in a subquery: SELECT * FROM (SELECT ...) "
    "QUALIFY ROW_NUMBER() OVER (PARTITION BY route ORDER BY window_end) <= 3"
)
"""The remedy if no window has several rows."""

Resolve = Callable[[exp.Expression, str], exp.Expression]
"""Rewrites an expression of a clause over the columns of its node."""


def first_rows(
    tree: exp.Expr,
    order: tuple[Order, ...],
    items: tuple[NamedExpr, ...],
    scope: Scope | PairScope,
    resolve: Resolve,
) -> tuple[int | None, TopRanked | None]:
    """Applies LIMIT to each window, or to each partition of a window.

    `order` is that of ORDER BY, which LIMIT BY uses.
    """
    limit, by = tree.args.get("limit"), _limit_by(tree)
    if qualify := tree.args.get("qualify"):
        if by:
            raise QueryError(
                "QUALIFY", "rows are chosen by QUALIFY or by LIMIT BY", "both", "Leave one out."
            )
        window, numbering = _read(qualify.this)
        per = [resolve(scope.plain(e, "PARTITION BY"), "PARTITION BY") for e in _partition(window)]
        keys = order_keys(window.args.get("order"), items, scope)
        own = tuple(replace(o, expression=resolve(o.expression, "ORDER BY")) for o in keys)
        return limit_rows(limit), TopRanked(tuple(per), own, numbering)
    rows = limit_rows(limit)
    if not by or rows is None:
        return rows, None
    columns = positions([scope.plain(e, "LIMIT BY") for e in by], items, "LIMIT BY")
    per = [resolve(e, "LIMIT BY") for e in columns]
    return None, TopRanked.first(rows, tuple(per), order)


def refuse_partitions(tree: exp.Expr) -> None:
    """Raises for partitions where rows do not belong to windows."""
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


def _read(condition: exp.Expr) -> tuple[exp.Window, Numbering]:
    """The window function that a condition compares, and the numbers that satisfy it."""
    left, kind = condition.args.get("this"), type(condition)
    asked: list[tuple[Any, Any]] = [(kind, condition.args.get("expression"))]
    if isinstance(condition, exp.Between) and not condition.args.get("symmetric"):
        asked = [(exp.GTE, condition.args["low"]), (exp.LTE, condition.args["high"])]
    elif isinstance(left, exp.Literal):
        left, asked = condition.args["expression"], [(_MIRRORED.get(kind), left)]
    if isinstance(left, exp.Window) and type(left.this) in KINDS and not left.args.get("spec"):
        name, tiles = KINDS[type(left.this)], _tiles(left.this)
        found = [b for each in asked if (b := _bounds(*each, RANKINGS[name].shares)) is not None]
        if tiles is not None and len(found) == len(asked):
            least, most = max(low for low, _ in found), min(high for _, high in found)
            return left, Numbering(most, least, name, tiles)
    raise QueryError(
        "QUALIFY",
        "must compare the place of a row in its partition with a number",
        condition.sql(dialect="spark", comments=False)[:80],
        f"Write for example {_EXAMPLE}, with {', '.join(KINDS.values())} and =, <=, <, >=, > or "
        "BETWEEN.",
    )


def _tiles(call: exp.Expr) -> int | None:
    """The argument of NTILE, 0 for other functions; None if it is not valid."""
    given = [value for value in call.args.values() if value]
    if not isinstance(call, exp.Ntile):
        return None if given else 0
    (tiles,) = given or [None]
    plain = isinstance(tiles, exp.Literal) and tiles.name.isdigit()
    return (int(tiles.name) or None) if plain else None


def _bounds(kind: Any, number: Any, shares: bool) -> tuple[float, float] | None:
    """The smallest and the largest number that a comparison with a literal accepts."""
    if not isinstance(number, exp.Literal) or number.is_string:
        return None
    if not shares and not number.name.isdigit():
        return None
    value: float = float(number.name) if shares else int(number.name)
    below, above = (
        (nextafter(value, -inf), nextafter(value, inf)) if shares else (value - 1, value + 1)
    )
    return {
        exp.LTE: (-inf, value),
        exp.LT: (-inf, below),
        exp.GTE: (value, inf),
        exp.GT: (above, inf),
        exp.EQ: (value, value),
    }.get(kind)
