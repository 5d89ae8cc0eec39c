"""Aggregate calls and what makes them, between a select list and the operator's spec."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from tidegate.errors import QueryError
from tidegate.operate.aggregate.pane import Function
from tidegate.operate.aggregate.user import Aggregator
from tidegate.query.expression import Expression, to_node
from tidegate.schema import type_name

Argument = str | Expression
"""What is aggregated: the name of a column, or an expression."""

_ARITY = {"count": (0, 1), "user": (0, 64)}
KINDS = "count sum mean min max var stddev quantile distinct first last user".split()
HOLISTIC = ("quantile", "distinct")
"""Kinds whose state grows with the values: exact, but not reduced to a constant size per pane."""

_NUMERIC = ("sum", "mean", "var", "stddev", "quantile")
_ORDERED = ("min", "max", "distinct")


@dataclass(frozen=True)
class AggregateCall:
    """One aggregate over a window: what it computes, of which expressions."""

    kind: str
    arguments: tuple[exp.Expression, ...] = ()
    fraction: float | None = None
    user: Aggregator | None = None

    def __post_init__(self) -> None:
        low, high = _ARITY.get(self.kind, (1, 1))
        if self.kind not in KINDS:
            raise QueryError("aggregate", "the kind must be known", self.kind, ", ".join(KINDS))
        if not low <= len(self.arguments) <= high:
            raise QueryError(
                self.kind,
                "takes one argument" if low else "takes at most one argument",
                str(len(self.arguments)),
            )
        if self.kind == "quantile" and not (self.fraction is not None and 0 <= self.fraction <= 1):
            raise QueryError("QUANTILE", "the fraction must be between 0 and 1", str(self.fraction))
        if (self.kind == "user") != (self.user is not None):
            raise QueryError("aggregate", "a user aggregate needs its Aggregator", self.kind)

    def __str__(self) -> str:
        texts = (a.sql(dialect="spark", normalize_functions="lower") for a in self.arguments)
        inside = ", ".join(texts)
        if self.kind == "distinct":
            return f"count(DISTINCT {inside})"
        if self.kind == "quantile":
            return f"quantile({inside}, {self.fraction!r})"
        if self.user is not None:
            return f"{self.user.name}({inside})"
        return f"{self.kind}({inside or '*'})"

    def coerced(self, types: Sequence[pa.DataType]) -> AggregateCall:
        """The call with Spark's implicit casts of its arguments; illegal types are refused."""
        arguments = tuple(
            self._coerced_argument(a, t) for a, t in zip(self.arguments, types, strict=True)
        )
        return AggregateCall(self.kind, arguments, self.fraction, self.user)

    def function(
        self, name: str, columns: tuple[str, ...], types: Sequence[pa.DataType]
    ) -> Function:
        """What the operator computes, over columns that hold the coerced arguments."""
        first = types[0] if types else None
        return Function(name, self.kind, columns, first, self.fraction, self.user)

    def _coerced_argument(self, argument: exp.Expression, type_: pa.DataType) -> exp.Expression:
        if self.kind in _NUMERIC:
            if pa.types.is_string(type_) or pa.types.is_null(type_):
                return exp.cast(argument, "DOUBLE", dialect="spark")
            if not (
                pa.types.is_integer(type_)
                or pa.types.is_floating(type_)
                or pa.types.is_decimal(type_)
            ):
                raise QueryError(
                    str(self),
                    "the argument must be a number",
                    type_name(type_),
                    "CAST it to one, or use COUNT, MIN or MAX.",
                )
        if self.kind in _ORDERED and pa.types.is_nested(type_):
            raise QueryError(str(self), "the argument must have an order", type_name(type_))
        if pa.types.is_null(type_):
            return exp.cast(argument, "STRING", dialect="spark")
        return argument


def count(of: Argument | None = None) -> AggregateCall:
    """The number of tuples, or of those in which the argument is not NULL."""
    return AggregateCall("count", () if of is None else (to_node(of),))


def count_distinct(of: Argument) -> AggregateCall:
    """The number of different values that are not NULL; exact."""
    return AggregateCall("distinct", (to_node(of),))


def sum_(of: Argument) -> AggregateCall:
    """The sum; of integers a bigint that fails on overflow, as in Spark."""
    return AggregateCall("sum", (to_node(of),))


def mean(of: Argument) -> AggregateCall:
    """The arithmetic mean."""
    return AggregateCall("mean", (to_node(of),))


def min_(of: Argument) -> AggregateCall:
    """The smallest value."""
    return AggregateCall("min", (to_node(of),))


def max_(of: Argument) -> AggregateCall:
    """The greatest value; NaN is greater than any number, as in Spark."""
    return AggregateCall("max", (to_node(of),))


def var(of: Argument) -> AggregateCall:
    """The sample variance; NULL for a single value."""
    return AggregateCall("var", (to_node(of),))


def stddev(of: Argument) -> AggregateCall:
    """The sample standard deviation; NULL for a single value."""
    return AggregateCall("stddev", (to_node(of),))


def quantile(of: Argument, fraction: float) -> AggregateCall:
    """The value below which this share lies, interpolated as Spark's `percentile` does; exact."""
    return AggregateCall("quantile", (to_node(of),), float(fraction))


def median(of: Argument) -> AggregateCall:
    """The quantile at one half."""
    return quantile(of, 0.5)


def first(of: Argument) -> AggregateCall:
    """The value of the first tuple in the total order, NULL included."""
    return AggregateCall("first", (to_node(of),))


def last(of: Argument) -> AggregateCall:
    """The value of the last tuple in the total order, NULL included."""
    return AggregateCall("last", (to_node(of),))


def aggregate(function: Aggregator, *of: Argument) -> AggregateCall:
    """The user's own aggregate over these arguments."""
    if not isinstance(function, Aggregator):
        raise QueryError("aggregate", "the function must be an Aggregator", repr(function))
    return AggregateCall("user", tuple(to_node(a) for a in of), user=function)


avg = mean
