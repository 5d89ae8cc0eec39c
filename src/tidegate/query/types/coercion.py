"""Spark's ANSI type coercion: casts operands to the common type that a kernel needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa

from tidegate.errors import QueryError
from tidegate.expression.constant import computed, is_convertible
from tidegate.expression.digits import MOST_DIGITS, decimal_of, wider_decimal
from tidegate.expression.kind import CONVERSIONS, is_numeric, kind
from tidegate.expression.tree import CHOICES, Call, Expr, Literal
from tidegate.schema import TIME, type_name

Build = Callable[[list[Expr], str], Expr]
"""Builds a function call from bound arguments; the text says how errors begin."""

NULL = pa.null()
BOOL, INT, LONG, DOUBLE, STRING = pa.bool_(), pa.int32(), pa.int64(), pa.float64(), pa.string()
DATE, SPAN = pa.date32(), pa.duration("us")
_PRECEDENCE = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64())


@dataclass(frozen=True)
class Unreadable(Literal):
    """A constant that cannot be converted to the type it needs; evaluating the cast would fail.

    `require_readable` raises for it, unless rows may never reach it.
    """


class UnknownKernel(QueryError):
    """A function or conversion that only Spark can evaluate."""


def tightest(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The common type of two types without parsing strings; None if there is none."""
    if right in (left, NULL):
        return left
    if left == NULL:
        return right
    kinds = {kind(left), kind(right)}
    if kinds == {"date", "timestamp"}:
        return TIME
    if not (is_numeric(left) and is_numeric(right)):
        return None
    if "decimal" in kinds:
        return DOUBLE if "float" in kinds else wider_decimal(decimal_of(left), decimal_of(right))
    wider = max(left, right, key=_PRECEDENCE.index)
    return DOUBLE if wider == pa.float32() else wider


def wider(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The common type of two types; a string takes the other one's type."""
    for text, other in ((left, right), (right, left)):
        if text == STRING and other not in (STRING, NULL):
            if pa.types.is_integer(other):
                return LONG
            if is_numeric(other):
                return DOUBLE
            return other if kind(other) in ("boolean", "date", "timestamp") else None
    return tightest(left, right)


def common(
    types: Iterable[pa.DataType], where: str, what: str, strings: bool = True
) -> pa.DataType:
    """The common type of several expressions; QueryError if there is none."""
    result: pa.DataType = NULL
    for type_ in types:
        both = (wider if strings else tightest)(result, type_)
        if both is None:
            got = f"{type_name(result)} and {type_name(type_)}"
            raise QueryError(where, f"{what} must have one type", got, "Add a CAST.")
        result = both
    return result


def make(op: str, args: Iterable[Expr], type_: pa.DataType) -> Expr:
    """A call, or its value if that is a constant known now."""
    call = Call(op, tuple(args), type_)
    return computed(call) or call


def cast(expr: Expr, type_: pa.DataType, where: str, op: str = "cast") -> Expr:
    """An expression cast to a type; UnknownKernel if only Spark can convert it."""
    if expr.type == type_:
        return expr
    if expr.type == NULL:
        return Literal(None, type_)
    pair = (kind(expr.type), kind(type_))
    if pair in CONVERSIONS:
        return make(op, (expr,), type_)
    got = f"{type_name(expr.type)} to {type_name(type_)}"
    if pair[1] == "string":  # Spark has a text for values of every type
        raise UnknownKernel(
            where,
            "the conversion must be one that runs without Spark",
            got,
            "Run with a Spark master, or round to an integer or a decimal first.",
        )
    raise QueryError(where, "the conversion must exist", got, "Convert through another type.")


def coerce(expr: Expr, type_: pa.DataType, where: str) -> Expr:
    """An implicit cast; a constant that it would fail for is marked `Unreadable`."""
    if isinstance(expr, Literal) and not is_convertible(expr.value, type_):
        expr = Unreadable(expr.value, expr.type)
    return cast(expr, type_, where)


def require_readable(expr: Expr, where: str) -> None:
    """Raises for an unconvertible constant that every row reaches.

    As in Spark, a branch of CASE or COALESCE may never be reached. Operands of AND, OR and IN count
    as reached.
    """
    stack, seen = [expr], set[int]()
    while stack:
        part = stack.pop()
        if not isinstance(part, Call) or id(part) in seen:
            continue
        seen.add(id(part))
        stack += reversed(part.args[:1] if part.op in CHOICES else part.args)
        constant = part.args[0] if part.op == "cast" else None
        if isinstance(constant, Unreadable):
            value = constant.value
            raise QueryError(
                where,
                f"a constant set beside a {type_name(part.type)} must be readable as one",
                repr(value) if isinstance(value, str) else str(value),
                "Correct the constant, or CAST the other side.",
            )


def literal_number(text: str, where: str) -> Literal:
    """A number literal with Spark's type: int, bigint or decimal; double with an exponent."""
    if "e" in text.lower():
        double = float(text)
        if not math.isfinite(double):
            raise QueryError(where, "a number must be one that a double can hold", text)
        return Literal(double, DOUBLE)
    number = Decimal(text)
    if "." not in text:
        value = int(text)
        if -(2**31) <= value < 2**31:
            return Literal(value, INT)
        if -(2**63) <= value < 2**63:
            return Literal(value, LONG)
    _, digits, exponent = number.as_tuple()
    scale = -int(exponent)
    if max(len(digits), scale) > MOST_DIGITS:
        remedy = "Write it as a double, with an exponent."
        raise QueryError(where, f"a number may have {MOST_DIGITS} digits", text, remedy)
    return Literal(number, pa.decimal128(max(len(digits), scale), scale))


def number(expr: Expr, where: str) -> Expr:
    """An argument that must be a number; text is parsed as a double."""
    if expr.type in (STRING, NULL):
        return coerce(expr, DOUBLE, where)
    if not is_numeric(expr.type):
        raise QueryError(where, "the argument must be a number", type_name(expr.type))
    return expr


def constant(expr: Expr, type_: pa.DataType, where: str, what: str) -> Literal:
    """An argument that kernels accept only as a constant."""
    result = coerce(expr, type_, where)
    if isinstance(result, Literal):
        return result
    require_readable(result, where)
    raise UnknownKernel(
        where, f"{what} must be a constant to run without Spark", "an expression", "Use Spark."
    )
