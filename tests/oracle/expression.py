"""Typed expressions evaluated one row at a time over Python values: the twin of the kernels."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from tidegate.expression.tree import Call, Column, Expr, Literal

Row = Mapping[str, Any]


class Fails(Exception):
    """The row has no value."""


def value(expr: Expr, row: Row) -> Any:
    """The value of an expression on one row; NULL is None."""
    if isinstance(expr, Column):
        return row[expr.name]
    if isinstance(expr, Literal):
        return expr.value
    if expr.op in LAZY:
        return LAZY[expr.op](expr, row)
    if expr.op in STRICT:
        return _strict(expr, row)
    return EAGER[expr.op](expr, *(value(arg, row) for arg in expr.args))


def _strict(call: Call, row: Row) -> Any:
    """An operator that is NULL when an operand is; the second is not looked at then."""
    backwards = call.op in ("divide", "int_divide", "remainder")
    found = []
    for arg in reversed(call.args) if backwards else call.args:
        item = value(arg, row)
        if item is None:
            return None
        found.append(item)
    return STRICT[call.op](call, *(reversed(found) if backwards else found))


def _fit(type_: pa.DataType, number: Any) -> Any:
    if pa.types.is_integer(type_):
        top = 2 ** (type_.bit_width - 1)
        if not -top <= number < top:
            raise Fails
    return number


def _double(operation: Callable[[], float]) -> float:
    try:
        return operation()
    except OverflowError:
        return math.inf


def _divide(_: Call, a: float, b: float) -> float:
    if b == 0:
        raise Fails
    return a / b


def _int_divide(call: Call, a: int, b: int) -> int:
    if b == 0:
        raise Fails
    quotient = abs(a) // abs(b)
    return int(_fit(call.type, quotient if (a < 0) == (b < 0) else -quotient))


def _remainder(call: Call, a: Any, b: Any) -> Any:
    if b == 0:
        raise Fails
    if pa.types.is_integer(call.type):
        return int(math.copysign(1, a)) * (abs(a) % abs(b))
    if math.isnan(a) or math.isnan(b) or math.isinf(a):
        return math.nan
    return math.fmod(a, b)


def order(a: Any, b: Any) -> int:
    """Spark's order: NaN equals NaN and is greater than every number."""
    if isinstance(a, float) and math.isnan(a):
        return 0 if isinstance(b, float) and math.isnan(b) else 1
    if isinstance(b, float) and math.isnan(b):
        return -1
    if isinstance(a, str):
        a, b = a.encode(), b.encode()
    return int(a > b) - int(a < b)


def _case(call: Call, row: Row) -> Any:
    for condition, result in zip(call.args[:-1:2], call.args[1:-1:2], strict=True):
        if value(condition, row):
            return value(result, row)
    return value(call.args[-1], row)


def _coalesce(call: Call, row: Row) -> Any:
    return next((v for v in (value(a, row) for a in call.args) if v is not None), None)


def _connective(decided: bool) -> Callable[[Call, Row], bool | None]:
    def connect(call: Call, row: Row) -> bool | None:
        first = value(call.args[0], row)
        if first is decided:
            return decided
        second = value(call.args[1], row)
        if second is decided:
            return decided
        return None if first is None or second is None else not decided

    return connect


def _member(_: Call, item: Any, *members: Any) -> bool | None:
    if item is None:
        return None
    if any(m is not None and order(item, m) == 0 for m in members):
        return True
    return None if None in members else False


def _extreme(sign: int) -> Callable[..., Any]:
    def pick(_: Call, *items: Any) -> Any:
        best = None
        for item in items:
            if item is not None and (best is None or order(item, best) * sign > 0):
                best = item
        return best

    return pick


def _cast(call: Call, item: Any) -> Any:
    if item is None:
        return None
    if pa.types.is_floating(call.type):
        return float(item)
    if pa.types.is_integer(call.type):
        if isinstance(item, float) and not math.isfinite(item):
            raise Fails
        if isinstance(item, float) and item == 2.0**63 and call.type == pa.int64():
            return 2**63 - 1
        return _fit(call.type, int(item))
    return str(item)


def _substring(_: Call, text: str | None, start: int | None, count: int | None) -> str | None:
    if text is None or start is None or count is None:
        return None
    first = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    return text[max(first, 0) : max(first + count, 0)] if count > 0 else ""


def matches(text: str, pattern: str, escape: str = "\\") -> bool:
    """LIKE by trying every split; slow and plain."""
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(matches(text[i:], pattern[1:], escape) for i in range(len(text) + 1))
    if pattern[0] == escape:
        pattern = pattern[1:]
    elif pattern[0] == "_":
        return bool(text) and matches(text[1:], pattern[1:], escape)
    return text[:1] == pattern[0] and matches(text[1:], pattern[1:], escape)


def _unless_null(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda call, *args: None if None in args else function(*args)


LAZY: dict[str, Callable[[Call, Row], Any]] = {
    "case": _case,
    "coalesce": _coalesce,
    "and": _connective(False),
    "or": _connective(True),
}
STRICT: dict[str, Callable[..., Any]] = {
    "add": lambda call, a, b: _fit(call.type, a + b),
    "subtract": lambda call, a, b: _fit(call.type, a - b),
    "multiply": lambda call, a, b: _fit(call.type, a * b),
    "divide": _divide,
    "int_divide": _int_divide,
    "remainder": _remainder,
    "eq": lambda _, a, b: order(a, b) == 0,
    "ne": lambda _, a, b: order(a, b) != 0,
    "lt": lambda _, a, b: order(a, b) < 0,
    "le": lambda _, a, b: order(a, b) <= 0,
    "gt": lambda _, a, b: order(a, b) > 0,
    "ge": lambda _, a, b: order(a, b) >= 0,
}
EAGER: dict[str, Callable[..., Any]] = {
    "negate": lambda call, a: None if a is None else _fit(call.type, -a),
    "abs": lambda call, a: None if a is None else _fit(call.type, abs(a)),
    "not": _unless_null(lambda a: not a),
    "is_null": lambda _, a: a is None,
    "is_true": lambda _, a: a is True,
    "null_safe_eq": lambda _, a, b: (
        (a is None and b is None) or (a is not None and b is not None and order(a, b) == 0)
    ),
    "in": _member,
    "greatest": _extreme(1),
    "least": _extreme(-1),
    "cast": _cast,
    "length": _unless_null(len),
    "upper": _unless_null(str.upper),
    "lower": _unless_null(str.lower),
    "concat": _unless_null(lambda *parts: "".join(parts)),
    "substring": _substring,
    "like": _unless_null(matches),
    "trim": _unless_null(lambda text, characters: text.strip(characters)),
    "starts_with": _unless_null(str.startswith),
    "contains": _unless_null(lambda text, part: re.search(re.escape(part), text) is not None),
}
