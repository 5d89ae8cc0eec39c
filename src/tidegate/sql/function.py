"""Aggregate functions of the SQL, between their syntax and AggregateCall."""

from __future__ import annotations

from sqlglot import exp

from tidegate.errors import QueryError, UnavailableError, near
from tidegate.query.aggregate import AggregateCall

_KINDS: dict[type[exp.Expr], str] = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Avg: "mean",
    exp.Min: "min",
    exp.Max: "max",
    exp.Variance: "var",
    exp.Stddev: "stddev",
    exp.StddevSamp: "stddev",
    exp.Median: "quantile",
    exp.Quantile: "quantile",
    exp.First: "first",
    exp.FirstValue: "first",
    exp.Last: "last",
    exp.LastValue: "last",
}
NAMES = (
    "COUNT SUM AVG MEAN MIN MAX VAR VARIANCE VAR_SAMP STDDEV STDDEV_SAMP STD MEDIAN QUANTILE "
    "PERCENTILE FIRST FIRST_VALUE LAST LAST_VALUE"
).split()

_WRAPPERS = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)
AGGREGATES = (exp.AggFunc, *_WRAPPERS)


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node is an aggregate call, with whatever is written around it."""
    return isinstance(node, AGGREGATES)


def has_aggregate(node: exp.Expr) -> bool:
    """Whether an aggregate call is somewhere in an expression."""
    return node.find(*AGGREGATES) is not None


def aggregate_name(node: exp.Expr) -> str:
    """The name of an aggregate's function, for messages."""
    while isinstance(node, _WRAPPERS):
        node = node.this
    return node.sql(dialect="spark", comments=False).partition("(")[0].upper()


def read_aggregate(node: exp.Expression) -> AggregateCall:
    """The call that an aggregate of the select list means; its columns must be plain already."""
    name = aggregate_name(node)
    condition: exp.Expression | None = None
    if isinstance(node, exp.Filter):
        node, condition = node.this, node.expression.this
    if isinstance(node, exp.RespectNulls):
        node = node.this
    if isinstance(node, exp.IgnoreNulls):
        raise UnavailableError(name, "IGNORE NULLS is not available yet")
    kind = _KINDS.get(type(node))
    if kind is None:
        raise unknown_aggregate(name, "SELECT")
    distinct = isinstance(node.this, exp.Distinct)
    arguments = tuple(node.this.expressions) if distinct else _arguments(node)
    for inner in (*arguments, *([condition] if condition is not None else [])):
        if has_aggregate(inner):
            raise QueryError(
                name,
                "an aggregate cannot be inside another",
                inner.sql(dialect="spark"),
                "Aggregate in a subquery first.",
            )
    if len(arguments) > 1:
        raise QueryError(name, "takes one argument", str(len(arguments)))
    if distinct and kind not in ("count", "min", "max"):
        raise UnavailableError(f"{name}(DISTINCT)", "is not available yet")
    if distinct and kind == "count":
        kind = "distinct"
    if kind == "count" and arguments and _never_null(arguments[0]):
        arguments = ()
    if condition is not None:
        arguments = _filtered(kind, name, arguments, condition)
    return AggregateCall(kind, arguments, _fraction(node) if kind == "quantile" else None)


def unknown_aggregate(name: str, where: str) -> QueryError:
    """What to say of an aggregate that is not there."""
    return QueryError(where, "no aggregate has this name", name, near(name, NAMES))


def _arguments(node: exp.Expression) -> tuple[exp.Expression, ...]:
    first = [] if isinstance(node.this, exp.Star) or node.this is None else [node.this]
    return (*first, *(node.args.get("expressions") or ()))


def _never_null(node: exp.Expression) -> bool:
    return isinstance(node, exp.Literal | exp.Boolean)


def _filtered(
    kind: str, name: str, arguments: tuple[exp.Expression, ...], condition: exp.Expression
) -> tuple[exp.Expression, ...]:
    """FILTER (WHERE c) as an argument that is NULL where c is not true."""
    if kind in ("first", "last"):
        raise UnavailableError(name, "FILTER is not available yet")
    value = arguments[0] if arguments else exp.Literal.number(1)
    return (exp.Case(ifs=[exp.If(this=condition.copy(), true=value.copy())]),)


def _fraction(node: exp.Expression) -> float:
    if isinstance(node, exp.Median):
        return 0.5
    fraction = node.args.get("quantile")
    if not isinstance(fraction, exp.Literal) or fraction.is_string:
        raise QueryError(
            "QUANTILE",
            "the fraction must be a number between 0 and 1",
            "nothing" if fraction is None else fraction.sql(dialect="spark"),
        )
    return float(fraction.name)
