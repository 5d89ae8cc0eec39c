"""Aggregate functions of the SQL, between their syntax and AggregateCall."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from tidegate.errors import NO_WAY, QueryError, UnavailableError, near
from tidegate.operate.aggregate.definition import AggregateFunction, Parameter
from tidegate.operate.aggregate.registry import find_sql, sql_names
from tidegate.query.aggregate import AggregateCall, only_where
from tidegate.query.name import conjuncts
from tidegate.query.spelling import spelling
from tidegate.sql.instead import AGGREGATES

_WRAPPERS = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node is an aggregate call, with whatever is written around it."""
    if isinstance(node, exp.Anonymous) and node.name.upper() in AGGREGATES:
        return True
    return isinstance(node, (exp.AggFunc, *_WRAPPERS)) or _definition(node) is not None


def has_aggregate(node: exp.Expr) -> bool:
    """Whether an aggregate call is somewhere in an expression."""
    return any(is_aggregate(part) for part in node.walk())


def inside_aggregate(node: exp.Expr) -> bool:
    """Whether a part of an expression stands in an aggregate call."""
    above = node.parent
    while above is not None and not is_aggregate(above):
        above = above.parent
    return above is not None


def aggregate_name(node: exp.Expr) -> str:
    """The name of an aggregate's function, for messages."""
    while isinstance(node, _WRAPPERS):
        node = node.this
    if isinstance(node, exp.Anonymous):
        return node.name.upper()
    names = node.sql_names() if isinstance(node, exp.Func) else ()
    return next((name for name in names if find_sql(name)), None) or spelling(node)


def read_aggregate(node: exp.Expression) -> AggregateCall:
    """The call that an aggregate of the select list means; its columns must be plain already."""
    name = aggregate_name(node)
    condition: exp.Expression | None = None
    if isinstance(node, exp.Filter):
        node, condition = node.this, node.expression.this
    if isinstance(node, exp.RespectNulls):
        node = node.this
    function = _definition(node)
    if function is None:
        raise unknown_aggregate(name, "SELECT")
    given, distinct = _given(node)
    for inner in (*given, *([condition] if condition is not None else [])):
        if has_aggregate(inner):
            raise QueryError(
                name,
                "an aggregate cannot be inside another",
                inner.sql(dialect="spark"),
                "Aggregate in a subquery first.",
            )
    arguments = given[: len(function.arguments)]
    constants = given[len(function.arguments) :]
    if not function.takes(len(arguments)) or len(constants) > len(function.parameters):
        raise QueryError(name, function.arity, str(len(given)))
    if distinct and function.distinct is None:
        raise UnavailableError(
            f"{name}(DISTINCT)", "is not available yet: only COUNT can be", None, NO_WAY
        )
    if function.star and not distinct and all(map(_never_null, arguments)):
        arguments = ()
    if condition is not None:
        arguments = _filtered(function, name, arguments, condition)
    kind = function.distinct if distinct and function.distinct else function.name
    pairs = zip(function.parameters, constants, strict=False)
    parameters = tuple(_constant(function, parameter, node) for parameter, node in pairs)
    return AggregateCall(kind, arguments, parameters)


def unknown_aggregate(name: str, where: str) -> QueryError:
    """What to say of an aggregate that is not there."""
    remedy = AGGREGATES.get(name.upper()) or near(name, sql_names())
    return QueryError(where, "no aggregate has this name", name, remedy)


def refuse_unknown(expression: exp.Expression) -> None:
    """Refuse an aggregate of other SQL for which there is a way here, before it asks for more."""
    for node in expression.walk():
        if is_aggregate(node) and _definition(node) is None:
            name = aggregate_name(node)
            if name in AGGREGATES:
                raise unknown_aggregate(name, "SELECT")


def _definition(node: exp.Expr) -> AggregateFunction | None:
    """The row of the registry for a call, under any name that sqlglot has for it."""
    names: Sequence[str] = ()
    if isinstance(node, exp.Anonymous):
        names = (node.name,)
    elif isinstance(node, exp.AggFunc):
        names = node.sql_names()
    return next((found for name in names if (found := find_sql(name))), None)


def _given(node: exp.Expr) -> tuple[tuple[exp.Expression, ...], bool]:
    """What stands between the parentheses in its order, but for a star; whether it is DISTINCT."""
    slots = ("expressions",) if isinstance(node, exp.Anonymous) else tuple(node.arg_types)
    found: list[exp.Expression] = []
    distinct = False
    for slot in slots:
        value = node.args.get(slot)
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, exp.Distinct):
                distinct = True
                found += part.expressions
            elif isinstance(part, exp.Expression) and not isinstance(part, exp.Star):
                found.append(part)
    return tuple(found), distinct


def _never_null(node: exp.Expression) -> bool:
    return isinstance(node, exp.Literal | exp.Boolean)


def _filtered(
    function: AggregateFunction,
    name: str,
    arguments: tuple[exp.Expression, ...],
    condition: exp.Expression,
) -> tuple[exp.Expression, ...]:
    """FILTER (WHERE c) as arguments that are NULL where c is not true."""
    if not function.skips_null:
        raise UnavailableError(name, "FILTER is not available yet", None, NO_WAY)
    return tuple(
        only_where(conjuncts(condition), value) for value in arguments or (exp.Literal.number(1),)
    )


def _constant(function: AggregateFunction, parameter: Parameter, node: exp.Expression) -> float:
    """A parameter as a number; it must be written as one."""
    if not isinstance(node, exp.Literal) or node.is_string:
        raise QueryError(function.where, parameter.kind, node.sql(dialect="spark"))
    return float(node.name)
