"""Reads aggregate calls in SQL into AggregateCall."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from tidegate.errors import NO_WAY, QueryError, UnavailableError, near
from tidegate.operate.aggregate.definition import (
    AggregateFunction,
    OrderedFunction,
    WithinFunction,
)
from tidegate.operate.aggregate.parameter import Constant, Way
from tidegate.operate.aggregate.registry import find, find_sql, sql_names
from tidegate.query.aggregate import AggregateCall, only_where
from tidegate.query.types.spelling import spelling
from tidegate.sql.call import WRAPPERS, WrittenCall

_STRANGE = ("GROUP_CONCAT", "MAP_AGG", "JSON_ARRAYAGG")
LISTS = (*_STRANGE, "COLLECT_SET", "APPROX_PERCENTILE", "PERCENTILE_APPROX")
"""Aggregates that sqlglot would parse under a common name; here they keep their own."""

_OWN = (
    *("SKEWNESS", "KURTOSIS", "HISTOGRAM_NUMERIC", "BIT_AND", "BIT_OR", "BIT_XOR"),
    *("PRODUCT", "ENTROPY", "REGR_SLOPE", "REGR_INTERCEPT"),
)
_OVER = ("LAG", "LEAD", "NTH_VALUE", "ROW_NUMBER", "RANK", "DENSE_RANK")

AGGREGATES = {
    **dict.fromkeys(_STRANGE, NO_WAY),
    **dict.fromkeys(_OVER, "Write OVER (PARTITION BY route ORDER BY ts) after it."),
    "GROUP_CONCAT": "Use STRING_AGG(x, ','), with ORDER BY before the parenthesis closes.",
    **dict.fromkeys(
        _OWN, "There is no way yet in SQL; in Python there is tg.aggregate: see docs/python.md."
    ),
}
"""Advice by name for aggregates of other SQL dialects that do not exist here."""


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node is an aggregate call, with its wrappers."""
    if isinstance(node, exp.Anonymous) and node.name.upper() in AGGREGATES:
        return True
    return isinstance(node, (exp.AggFunc, *WRAPPERS)) or _definition(node) is not None


def has_aggregate(node: exp.Expr) -> bool:
    """Whether an expression contains an aggregate call."""
    return any(is_aggregate(part) for part in node.walk())


def inside_aggregate(node: exp.Expr) -> bool:
    """Whether a node is inside an aggregate call."""
    above = node.parent
    while above is not None and not is_aggregate(above):
        above = above.parent
    return above is not None


def aggregate_name(node: exp.Expr) -> str:
    """The name of an aggregate's function, for messages."""
    while isinstance(node, WRAPPERS):
        node = node.this
    if isinstance(node, exp.Anonymous):
        return node.name.upper()
    names = node.sql_names() if isinstance(node, exp.Func) else ()
    return next((name for name in names if find_sql(name)), None) or spelling(node)


def read_aggregate(node: exp.Expression) -> AggregateCall:
    """The AggregateCall of a parsed aggregate, whose columns must be plain already."""
    name = aggregate_name(node)
    written = WrittenCall.of(node)
    function = _definition(written.call)
    if function is None:
        raise unknown_aggregate(name, "SELECT")
    for inner in (*written.given, *written.conditions, *(key for key, _ in written.order)):
        if has_aggregate(inner):
            raise QueryError(
                name,
                "an aggregate cannot be inside another",
                inner.sql(dialect="spark"),
                "Aggregate in a subquery first.",
            )
    if written.distinct:
        function = _distinct(function, name)
        if [(key, way.descending) for key, way in written.order] == [(written.given[0], False)]:
            written.order = []  # sets are in this order anyway
    width = function.width(bool(written.order))
    arguments, constants = written.given[:width], written.given[width:]
    kind, arguments, more = _ordered(function, name, arguments, written.order)
    if not function.takes(len(arguments)) or len(constants) > len(function.parameters) - len(more):
        raise QueryError(name, function.arity, str(len(written.given)))
    if function.star and all(map(_never_null, arguments)):
        arguments = ()
    if written.conditions:
        kind, arguments = _filtered(find(kind), arguments, written.conditions)
    pairs = zip(function.parameters, constants, strict=False)
    parameters = [_constant(function, parameter, node) for parameter, node in pairs]
    missing = [None] * (len(function.parameters) - len(parameters) - len(more)) if more else []
    return AggregateCall(kind, arguments, (*parameters, *missing, *more))


def _distinct(function: AggregateFunction, name: str) -> AggregateFunction:
    if function.distinct is None:
        able = "only COUNT, ARRAY_AGG and STRING_AGG can be"
        raise UnavailableError(f"{name}(DISTINCT)", f"is not available yet: {able}", None, NO_WAY)
    return find(function.distinct)


def _ordered(
    function: AggregateFunction,
    name: str,
    columns: tuple[exp.Expression, ...],
    order: Sequence[tuple[exp.Expression, Way]],
) -> tuple[str, tuple[exp.Expression, ...], tuple[Any, ...]]:
    """The kind, columns and extra parameters of a call with its ORDER BY."""
    if not order:
        return function.name, columns, ()
    keys, ways = zip(*order, strict=True)
    made = function.by(columns, keys, ways)
    if made is None:
        raise UnavailableError(
            name, "another order of a set is not available yet", "ORDER BY", NO_WAY
        )
    return made


def unknown_aggregate(name: str, where: str) -> QueryError:
    """The error for an aggregate that does not exist."""
    remedy = AGGREGATES.get(name.upper()) or near(name, sql_names())
    return QueryError(where, "no aggregate has this name", name, remedy)


def takes_order(node: exp.Expr) -> bool:
    """Whether the called function accepts ORDER BY, inside its parentheses or after."""
    function = _definition(WrittenCall.of(node).call)
    return isinstance(function, OrderedFunction | WithinFunction)


def ignores_nulls(node: exp.Expr) -> bool:
    """Whether the called function accepts IGNORE NULLS."""
    function = _definition(WrittenCall.of(node).call)
    return function is not None and function.filtered is not None


def refuse_unknown(expression: exp.Expression) -> None:
    """Raises for an aggregate of another dialect, with advice, before other checks apply to it."""
    for node in expression.walk():
        if is_aggregate(node) and _definition(node) is None:
            name = aggregate_name(node)
            if name in AGGREGATES:
                raise unknown_aggregate(name, "SELECT")


def _definition(node: exp.Expr) -> AggregateFunction | None:
    """The registry entry of a call, under any name that sqlglot uses for it."""
    names: Sequence[str] = ()
    if isinstance(node, exp.Anonymous):
        names = (node.name,)
    elif isinstance(node, exp.AggFunc):
        names = node.sql_names()
    return next((found for name in names if (found := find_sql(name))), None)


def _never_null(node: exp.Expression) -> bool:
    return isinstance(node, exp.Literal | exp.Boolean)


def _filtered(
    function: AggregateFunction,
    arguments: tuple[exp.Expression, ...],
    conditions: Sequence[exp.Expression],
) -> tuple[str, tuple[exp.Expression, ...]]:
    """FILTER (WHERE c): arguments become NULL where c is not true."""
    if function.filtered is not None:
        return function.filtered, (*arguments, only_where(conditions, exp.true()))
    values = arguments or (exp.Literal.number(1),)
    return function.name, tuple(only_where(conditions, value) for value in values)


def _constant(function: AggregateFunction, parameter: Constant, node: exp.Expression) -> Any:
    """The value of a parameter; it must be a literal."""
    value = None
    if isinstance(node, exp.Literal):
        value = parameter.of_literal(node.name, node.is_string)
    if value is None:
        raise QueryError(function.where, parameter.kind, node.sql(dialect="spark"))
    return value
