"""Rewrites the expressions of interval tests as doubles, for the index of a join.

Times become microseconds. Each conversion is exact or rounds once, and keeps the order of values.
So a comparison that holds between values also holds between their doubles.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

import pyarrow as pa

from tidegate.calendar.microsecond import DAY_US
from tidegate.expression.kind import kind
from tidegate.expression.tree import Call, Expr, Literal, is_total, postorder

DOUBLE = pa.float64()
_OVERFLOWING = frozenset(
    "add subtract multiply negate abs add_days add_months cast floor ceil round".split()
)
_DIVISIONS = frozenset("divide int_divide remainder".split())
_EPOCH = date(1970, 1, 1)
_MEASURABLE = ("integer", "float", "decimal", "timestamp", "date", "duration")


def is_measurable(type_: pa.DataType) -> bool:
    """Whether values of a type can be mapped to doubles in their order."""
    return kind(type_) in _MEASURABLE


def is_steady(expr: Expr) -> bool:
    """Whether an expression may be evaluated for a tuple that may never be compared.

    An expression that can fail only by overflow may be. A division, or a conversion of text, may
    not: its error must not appear without a pair.
    """
    return all(is_total(part) or _is_steady(part) for part in postorder(expr))


def _is_steady(call: Expr) -> bool:
    """As `is_steady` for one call whose arguments are steady."""
    assert isinstance(call, Call)
    if call.op in _DIVISIONS:
        divisor = call.args[1]
        return isinstance(divisor, Literal) and bool(divisor.value)
    if call.op == "cast" and kind(call.args[0].type) == "string":
        return False
    return call.op in _OVERFLOWING or is_total(Call(call.op, (), call.type))


def double_of(expr: Expr) -> Expr | None:
    """The expression as a double; None if its type cannot be mapped."""
    if isinstance(expr, Literal):
        value = constant_of(expr)
        return None if value is None else Literal(value, DOUBLE)
    family = kind(expr.type)
    if expr.type == DOUBLE:
        return expr
    if family in ("integer", "float", "decimal"):
        return Call("cast", (expr,), DOUBLE)
    if family == "date":  # which may be too far away to be a timestamp
        days = Call("date_diff", (expr, Literal(_EPOCH, pa.date32())), pa.int32())
        day_us = Literal(float(DAY_US), DOUBLE)
        return Call("multiply", (Call("cast", (days,), DOUBLE), day_us), DOUBLE)
    if family == "timestamp":
        return Call("cast", (Call("unix_micros", (expr,), pa.int64()),), DOUBLE)
    return None


def constant_of(literal: Literal) -> float | None:
    """A constant as a double; None for NULL, or if its type cannot be mapped."""
    if literal.value is None or not is_measurable(literal.type):
        return None
    scalar = pa.scalar(literal.value, literal.type)
    family = kind(literal.type)
    if family == "date":
        scalar = scalar.cast(pa.timestamp("us"))
    if family in ("date", "timestamp", "duration"):
        scalar = scalar.cast(pa.int64())
    return float(scalar.as_py())


@dataclass(frozen=True)
class Sum:
    """A sum of signed expressions and a constant, all doubles.

    `slack` is the relative rounding error between this sum and the query's own computation; bounds
    are widened by it. `floats` says that a part may be NaN.
    """

    terms: tuple[tuple[int, Expr], ...]
    constant: float
    slack: float
    floats: bool

    def high(self) -> Expr:
        """The sum as an upper bound: never below a value that the query would accept."""
        return self._bound(1)

    def low(self) -> Expr:
        """The sum as a lower bound: never above a value that the query would accept."""
        return self._bound(-1)

    def _bound(self, sign: int) -> Expr:
        total = _total(self.terms, self.constant)
        if self.slack:
            sizes = _total(
                [(1, Call("abs", (expr,), DOUBLE)) for _, expr in self.terms], abs(self.constant)
            )
            width = Call("multiply", (sizes, Literal(self.slack, DOUBLE)), DOUBLE)
            total = Call("add" if sign > 0 else "subtract", (total, width), DOUBLE)
        return without_nan(total, sign) if self.floats else total


def without_nan(expr: Expr, sign: int) -> Expr:
    """A double, with NaN replaced by an infinity of this sign."""
    return Call("nanvl", (expr, Literal(sign * math.inf, DOUBLE)), DOUBLE)


def _total(terms: Iterable[tuple[int, Expr]], constant: float) -> Expr:
    total: Expr | None = None
    for sign, expr in terms:
        if total is None:
            total = expr if sign > 0 else Call("negate", (expr,), DOUBLE)
        else:
            total = Call("add" if sign > 0 else "subtract", (total, expr), DOUBLE)
    if total is None:
        return Literal(constant, DOUBLE)
    if constant:
        op = "add" if constant > 0 else "subtract"
        total = Call(op, (total, Literal(abs(constant), DOUBLE)), DOUBLE)
    return total
