"""Computes constants one value at a time, so that a plan can fold them.

A type may depend on a constant (the digits of ROUND), and a constant that cannot be converted is a
mistake in the query. Both must be known when the query is built, so the constants that people write
there are computed here: literals and their conversions, sums of integers, joined and trimmed texts.
The plan computes all other constants with the kernels (plan/fold.py). Results here equal those of
the kernels.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import pyarrow as pa

from tidegate.expression.kind import kind
from tidegate.expression.reading import BLANK, READERS
from tidegate.expression.tree import Call, Literal

Rule = Callable[[Any, pa.DataType], object]
"""Converts a value that is not NULL to a type; None if it cannot be converted."""

_EXACT = Context(prec=200, rounding=ROUND_HALF_UP)


def computed(call: Call) -> Literal | None:
    """A call on constants as a constant; None if it fails or is not computed here."""
    values = [arg.value for arg in call.args if isinstance(arg, Literal)]
    if not call.args or len(values) < len(call.args):
        return None
    if call.op == "cast":
        return _cast(values[0], call.type)
    rule = _OPERATIONS.get((call.op, kind(call.type)))
    if rule is None:
        return None
    if None in values:
        return Literal(None, call.type)
    result = rule(*values)
    if isinstance(result, int):
        result = _to_integer(result, call.type)
    return None if result is None else Literal(result, call.type)


def is_convertible(value: object, type_: pa.DataType) -> bool:
    """Whether a constant converts to a type; True if that cannot be told here."""
    rule = _conversion(value, type_)
    return rule is None or rule(value, type_) is not None


def _cast(value: object, type_: pa.DataType) -> Literal | None:
    if value is None:
        return Literal(None, type_)
    rule = _conversion(value, type_)
    result = None if rule is None else rule(value, type_)
    return None if result is None else Literal(result, type_)


def _conversion(value: object, type_: pa.DataType) -> Rule | None:
    if type_ == pa.float32():  # Arrow rounds text to it once, Python would twice
        return None
    return _CONVERSIONS.get((type(value), kind(type_)))


def _read(read: Rule) -> Rule:
    def convert(text: str, type_: pa.DataType) -> object:
        value = read(text.strip(BLANK), type_)
        return _unsigned_zero(value) if isinstance(value, Decimal) else value

    return convert


def _to_integer(number: Any, type_: pa.DataType) -> int | None:
    """Truncates towards zero; compares a double with the range's end as a double, as Java does."""
    if not math.isfinite(number):
        return None
    whole, top = math.trunc(number), int(2 ** (type_.bit_width - 1)) - 1
    end = float(top) if isinstance(number, float) else top
    return min(whole, top) if -top - 1 <= whole <= end else None


def _to_decimal(number: Any, type_: pa.DataType) -> Decimal | None:
    rounded = _unsigned_zero(_EXACT.quantize(Decimal(number), Decimal(1).scaleb(-type_.scale)))
    return rounded if abs(rounded) < Decimal(10) ** (type_.precision - type_.scale) else None


def _unsigned_zero(number: Decimal) -> Decimal:
    """Drops the sign of zero: Arrow's decimals have no negative zero."""
    return number if number else abs(number)


def _to_midnight(day: date, type_: pa.DataType) -> datetime:
    return datetime.combine(day, time(), UTC)


_CONVERSIONS: dict[tuple[type, str], Rule] = {
    **{(str, name): _read(read) for name, read in READERS.items()},
    **{(source, "integer"): _to_integer for source in (bool, int, Decimal, float)},
    **{(source, "float"): lambda number, _: float(number) + 0.0 for source in (bool, int, Decimal)},
    **{(source, "decimal"): _to_decimal for source in (int, Decimal)},
    **{(source, "boolean"): lambda number, _: number != 0 for source in (int, Decimal, float)},
    (int, "string"): lambda number, _: str(number),
    (Decimal, "string"): lambda number, _: format(_unsigned_zero(number), "f"),
    (bool, "string"): lambda truth, _: str(truth).lower(),
    (date, "timestamp"): _to_midnight,
    (date, "string"): lambda day, _: day.isoformat(),
    (datetime, "date"): lambda moment, _: moment.date(),
}

_OPERATIONS: dict[tuple[str, str], Callable[..., object]] = {
    ("add", "integer"): operator.add,
    ("subtract", "integer"): operator.sub,
    ("multiply", "integer"): operator.mul,
    ("negate", "integer"): operator.neg,
    ("concat", "string"): lambda *texts: "".join(texts),
    ("lower", "string"): str.lower,
    ("upper", "string"): str.upper,
    ("trim", "string"): str.strip,
    ("ltrim", "string"): str.lstrip,
    ("rtrim", "string"): str.rstrip,
    ("length", "integer"): len,
}
