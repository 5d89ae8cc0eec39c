"""Typed expression trees, between the binding of a query and the kernels that evaluate them."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from tidegate.schema import type_name


@dataclass(frozen=True)
class Column:
    """A column of the table that the expression is evaluated over."""

    name: str
    type: pa.DataType


@dataclass(frozen=True)
class Literal:
    """A constant; the value None is a NULL that has a type."""

    value: object
    type: pa.DataType


@dataclass(frozen=True)
class Call:
    """An operation of the kernel set over arguments that already have the types it wants."""

    op: str
    args: tuple[Expr, ...]
    type: pa.DataType


Expr = Column | Literal | Call

SIGNS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "int_divide": "DIV",
    "remainder": "%",
    "eq": "=",
    "ne": "<>",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "null_safe_eq": "<=>",
    "and": "AND",
    "or": "OR",
}

SAFE = frozenset(
    "eq ne lt le gt ge null_safe_eq in and or not is_null is_true is_false is_nan case coalesce"
    " greatest least like starts_with ends_with contains upper lower length trim ltrim rtrim"
    " substring concat sqrt exp ln log log10 power sin cos tan asin acos atan atan2 radians"
    " degrees sign year month day hour minute second quarter day_of_week weekday week"
    " day_of_year date_trunc unix_micros unix_millis unix_seconds try_cast field bit_and bit_or"
    " bit_xor bit_not second_fraction replace nanvl cbrt rint log1p expm1 hypot cot sinh cosh"
    " tanh shift_left shift_right date_diff".split()
)
SAFE_ON_FLOATS = frozenset("add subtract multiply negate abs round".split())


def columns_of(expr: Expr) -> tuple[str, ...]:
    """The distinct column names that an expression reads, in the order of first appearance."""
    seen: dict[str, None] = {}
    stack: list[Expr] = [expr]
    while stack:
        item = stack.pop()
        if isinstance(item, Column):
            seen.setdefault(item.name)
        elif isinstance(item, Call):
            stack.extend(reversed(item.args))
    return tuple(seen)


def is_total(expr: Expr) -> bool:
    """Whether no row can make the expression fail, so that it needs no guard."""
    if not isinstance(expr, Call):
        return True
    if not all(is_total(arg) for arg in expr.args):
        return False
    if expr.op in SAFE:
        return True
    if expr.op in SAFE_ON_FLOATS:
        return bool(pa.types.is_floating(expr.type))
    return expr.op == "cast" and _is_widening(expr.args[0].type, expr.type)


def _is_widening(source: pa.DataType, target: pa.DataType) -> bool:
    if pa.types.is_integer(source):
        return bool(
            pa.types.is_floating(target)
            or pa.types.is_string(target)
            or (pa.types.is_integer(target) and target.bit_width >= source.bit_width)
        )
    if pa.types.is_floating(source):
        return bool(pa.types.is_floating(target))
    return bool(pa.types.is_boolean(source) or pa.types.is_date(source))


def describe(expr: Expr) -> str:
    """The expression as a person would write it, for messages and `explain`."""
    if isinstance(expr, Column):
        return expr.name
    if isinstance(expr, Literal):
        return "NULL" if expr.value is None else show(expr.value)
    args = [describe(arg) for arg in expr.args]
    if expr.op in SIGNS:
        inner = (
            f"({text})" if _is_signed(arg) else text
            for arg, text in zip(expr.args, args, strict=True)
        )
        return f" {SIGNS[expr.op]} ".join(inner)
    if _is_hidden(expr):
        return args[0]
    if expr.op in ("cast", "try_cast"):
        return f"{expr.op.upper()}({args[0]} AS {type_name(expr.type)})"
    if expr.op == "case":
        pairs = zip(args[:-1:2], args[1:-1:2], strict=True)
        arms = " ".join(f"WHEN {condition} THEN {value}" for condition, value in pairs)
        return f"CASE {arms} ELSE {args[-1]} END"
    return f"{expr.op.upper()}({', '.join(args)})"


def _is_hidden(expr: Call) -> bool:
    """Whether this is the coercion of an operand, which the user did not write."""
    return expr.op == "cast" and _is_widening(expr.args[0].type, expr.type)


def _is_signed(expr: Expr) -> bool:
    """Whether an expression is written with an operator, so that beside another it needs ()."""
    while isinstance(expr, Call) and _is_hidden(expr):
        expr = expr.args[0]
    return isinstance(expr, Call) and expr.op in SIGNS


def show(value: object) -> str:
    """One value, short enough for a message."""
    text = "NULL" if value is None else repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."
