"""Types and kernels of functions of dates and times."""

from __future__ import annotations

import pyarrow as pa

from tidegate.calendar.microsecond import UNITS_US
from tidegate.errors import QueryError
from tidegate.expression.kind import kind
from tidegate.expression.tree import Expr, Literal
from tidegate.query.types.coercion import (
    DATE,
    INT,
    LONG,
    NULL,
    STRING,
    Build,
    cast,
    coerce,
    constant,
    make,
)
from tidegate.schema import TIME, type_name

_UNITS = {
    **{unit: unit for unit in (*UNITS_US, "month", "quarter", "year")},
    "dd": "day",
    "mon": "month",
    "mm": "month",
    "yyyy": "year",
    "yy": "year",
}
"""Units of date_trunc and trunc, by Spark's names."""

_COARSE = ("week", "month", "quarter", "year")
"""Units that a date, which has no time of day, can be truncated to."""


def field_of(op: str, type_: pa.DataType) -> Build:
    """A field of a date or timestamp; text is parsed as `type_`."""

    def build(args: list[Expr], where: str) -> Expr:
        value = args[0]
        if value.type != type_ and kind(value.type) not in ("string", "date", "timestamp", "null"):
            raise QueryError(where, "the argument must be a date or a time", type_name(value.type))
        return make(op, [value if value.type == TIME else coerce(value, type_, where)], INT)

    return build


def second_fraction(args: list[Expr], where: str) -> Expr:
    return make("second_fraction", [coerce(args[0], TIME, where)], pa.decimal128(8, 6))


def truncate(op: str, type_: pa.DataType, coarse: bool) -> Build:
    """The first argument is the unit's name, the second the value."""

    def build(args: list[Expr], where: str) -> Expr:
        name = constant(args[0], STRING, where, "the unit to truncate to").value
        unit = _UNITS.get(str(name).lower())
        known = _COARSE if coarse else tuple(sorted(set(_UNITS.values())))
        if unit not in known:
            names = ", ".join(known)
            raise QueryError(
                where, "the unit to truncate to must be known", str(name), f"Use {names}."
            )
        return make(op, [coerce(args[1], type_, where), Literal(unit, STRING)], type_)

    return build


def of_time(op: str) -> Build:
    return lambda args, where: make(op, [coerce(args[0], TIME, where)], LONG)


def from_integer(op: str) -> Build:
    def build(args: list[Expr], where: str) -> Expr:
        value = args[0]
        if op == "timestamp_seconds" and kind(value.type) in ("float", "decimal"):
            return make(f"{op}_{kind(value.type)}", [value], TIME)
        if not (pa.types.is_integer(value.type) or value.type == NULL):
            raise QueryError(where, "the argument must be an integer", type_name(value.type))
        return make(op, [cast(value, LONG, where)], TIME)

    return build


def add_days(args: list[Expr], where: str) -> Expr:
    return make("add_days", [coerce(args[0], DATE, where), coerce(args[1], INT, where)], DATE)


def date_diff(args: list[Expr], where: str) -> Expr:
    return make("date_diff", [coerce(a, DATE, where) for a in args], INT)


def add_months(args: list[Expr], where: str) -> Expr:
    months = constant(args[1], INT, where, "the months to add")
    return make("add_months", [coerce(args[0], DATE, where), months], DATE)
