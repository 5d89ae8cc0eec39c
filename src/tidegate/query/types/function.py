"""The table of scalar functions that run without Spark."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from tidegate.expression.tree import Call, Expr, Literal
from tidegate.query.types import numeric, temporal, textual
from tidegate.query.types.coercion import (
    BOOL,
    DATE,
    DOUBLE,
    INT,
    LONG,
    NULL,
    STRING,
    Build,
    cast,
    common,
    make,
    number,
)
from tidegate.query.types.operator import choose, compare
from tidegate.schema import TIME


@dataclass(frozen=True)
class ScalarFunction:
    """A scalar function: how to build it, and how many arguments it takes."""

    build: Build
    least: int
    most: int | None
    """None for no limit."""


def _extreme(op: str) -> Build:
    def build(args: list[Expr], where: str) -> Expr:
        type_ = common([a.type for a in args], where, f"the arguments of {op.upper()}", False)
        if type_ == NULL:
            return Literal(None, NULL)
        return make(op, [cast(a, type_, where) for a in args], type_)

    return build


def _coalesce(args: list[Expr], where: str) -> Expr:
    type_ = common([a.type for a in args], where, "the arguments of COALESCE")
    if type_ == NULL:
        return Literal(None, NULL)
    return Call("coalesce", tuple(cast(a, type_, where) for a in args), type_)


def _nullif(args: list[Expr], where: str) -> Expr:
    if args[0].type == NULL:
        return args[0]
    same = compare("eq", args[0], args[1], where)
    return choose([(same, Literal(None, args[0].type))], args[0], where)


def is_null(args: list[Expr], where: str) -> Expr:
    value = args[0] if args[0].type != NULL else Literal(None, STRING)
    return make("is_null", [value], BOOL)


def is_not_null(args: list[Expr], where: str) -> Expr:
    return make("not", [is_null(args, where)], BOOL)


def _nvl2(args: list[Expr], where: str) -> Expr:
    return choose([(is_not_null(args[:1], where), args[1])], args[2], where)


def _if(args: list[Expr], where: str) -> Expr:
    return choose([(args[0], args[1])], args[2], where)


def _casts(type_: pa.DataType) -> Build:
    return lambda args, where: cast(args[0], type_, where)


def _decode(args: list[Expr], where: str) -> Expr:
    """DECODE(x, a, b, ..., default): NULL matches NULL."""
    pairs = [
        (compare("null_safe_eq", args[0], args[i], where), args[i + 1])
        for i in range(1, len(args) - 1, 2)
    ]
    return choose(pairs, args[-1] if len(args) % 2 == 0 else None, where)


def _each(
    names: str, made: Callable[[str], Build], least: int = 1, most: int | None = 1
) -> dict[str, ScalarFunction]:
    """Functions built alike; a name may be followed by its kernel's, `day=day_of_month`."""
    pairs = (
        (name, kernel or name) for name, _, kernel in (n.partition("=") for n in names.split())
    )
    return {name: ScalarFunction(made(kernel), least, most) for name, kernel in pairs}


FUNCTIONS: dict[str, ScalarFunction] = {
    **_each("sqrt cbrt exp expm1 ln log10 log1p sin cos tan cot asin acos atan", numeric.doubles),
    **_each("sinh cosh tanh radians degrees sign rint", numeric.doubles),
    **_each("power atan2 hypot", numeric.doubles, 2, 2),
    **_each("abs negative=negate", numeric.same),
    **_each("floor ceil", numeric.whole),
    **_each("shiftleft=shift_left shiftright=shift_right", numeric.shift, 2, 2),
    **_each("upper lower", lambda op: textual.strings(op, STRING)),
    **_each("trim btrim=trim ltrim rtrim", textual.trim, 1, 2),
    **_each("startswith=starts_with endswith=ends_with contains", textual.find, 2, 2),
    **_each(
        "year quarter month weekofyear=week day dayofyear=day_of_year dayofweek=day_of_week "
        "weekday",
        lambda op: temporal.field_of(op, DATE),
    ),
    **_each("hour minute second", lambda op: temporal.field_of(op, TIME)),
    **_each("unix_micros unix_millis unix_seconds", temporal.of_time),
    **_each("timestamp_micros timestamp_millis timestamp_seconds", temporal.from_integer),
    **_each("greatest least", _extreme, 2, None),
    "positive": ScalarFunction(lambda args, where: number(args[0], where), 1, 1),
    "log": ScalarFunction(
        lambda a, w: numeric.log(a, w) if len(a) == 2 else numeric.doubles("ln")(a, w), 1, 2
    ),
    "log2": ScalarFunction(lambda a, w: numeric.log([Literal(2, INT), *a], w), 1, 1),
    "pi": ScalarFunction(lambda args, where: Literal(math.pi, DOUBLE), 0, 0),
    "e": ScalarFunction(lambda args, where: Literal(math.e, DOUBLE), 0, 0),
    "round": ScalarFunction(numeric.round_to, 1, 2),
    "mod": ScalarFunction(numeric.mod, 2, 2),
    "pmod": ScalarFunction(numeric.pmod, 2, 2),
    "length": ScalarFunction(textual.length, 1, 1),
    "substring": ScalarFunction(textual.substring, 2, 3),
    "left": ScalarFunction(textual.left, 2, 2),
    "right": ScalarFunction(textual.right, 2, 2),
    "concat": ScalarFunction(textual.concat, 0, None),
    "replace": ScalarFunction(textual.replace, 2, 3),
    "split": ScalarFunction(textual.split, 2, 2),
    "extract(second)": ScalarFunction(temporal.second_fraction, 1, 1),
    "date_trunc": ScalarFunction(temporal.truncate("date_trunc", TIME, False), 2, 2),
    "trunc": ScalarFunction(temporal.truncate("trunc_date", DATE, True), 2, 2),
    "date_add": ScalarFunction(temporal.add_days, 2, 2),
    "datediff": ScalarFunction(temporal.date_diff, 2, 2),
    "add_months": ScalarFunction(temporal.add_months, 2, 2),
    "coalesce": ScalarFunction(_coalesce, 1, None),
    "nullif": ScalarFunction(_nullif, 2, 2),
    "nvl2": ScalarFunction(_nvl2, 3, 3),
    "if": ScalarFunction(_if, 3, 3),
    "isnull": ScalarFunction(is_null, 1, 1),
    "isnotnull": ScalarFunction(is_not_null, 1, 1),
    "isnan": ScalarFunction(numeric.is_nan, 1, 1),
    "nanvl": ScalarFunction(numeric.nanvl, 2, 2),
    "decode": ScalarFunction(_decode, 3, None),
    "bigint": ScalarFunction(_casts(LONG), 1, 1),
    "smallint": ScalarFunction(_casts(pa.int16()), 1, 1),
    "tinyint": ScalarFunction(_casts(pa.int8()), 1, 1),
    "decimal": ScalarFunction(numeric.to_decimal, 1, 1),
}
"""Functions by Spark's names; their aliases are in `query/types/form.py`."""
