"""Functions of the kernel set given their types, between calls as written and kernel calls."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from tidegate.errors import QueryError
from tidegate.operate.kernels.cast import kind
from tidegate.operate.kernels.expression import Call, Expr, Literal
from tidegate.operate.kernels.text import like_parts
from tidegate.query.coercion import (
    BOOL,
    DATE,
    DOUBLE,
    INT,
    LONG,
    NULL,
    STRING,
    UnknownKernel,
    adjusted,
    bounded,
    cast,
    coerce,
    common,
    is_numeric,
    make,
)
from tidegate.query.operator import arithmetic, choose, compare
from tidegate.schema import TIME, type_name

Build = Callable[[list[Expr], str], Expr]
_UNITS = {
    "microsecond": "microsecond",
    "millisecond": "millisecond",
    "second": "second",
    "minute": "minute",
    "hour": "hour",
    "day": "day",
    "dd": "day",
    "week": "week",
    "mon": "month",
    "month": "month",
    "mm": "month",
    "quarter": "quarter",
    "year": "year",
    "yyyy": "year",
    "yy": "year",
}


@dataclass(frozen=True)
class Function:
    """How a function is built, and how many arguments it takes."""

    build: Build
    least: int
    most: int


def number(expr: Expr, where: str) -> Expr:
    """An argument that must be a number; text is read as a double."""
    if expr.type in (STRING, NULL):
        return coerce(expr, DOUBLE, where)
    if not is_numeric(expr.type):
        raise QueryError(where, "the argument must be a number", type_name(expr.type))
    return expr


def constant(expr: Expr, type_: pa.DataType, where: str, what: str) -> Literal:
    """An argument that kernels take only as a constant."""
    result = coerce(expr, type_, where)
    if isinstance(result, Literal):
        return result
    raise UnknownKernel(
        where, f"{what} must be a constant to run without Spark", "an expression", "Use Spark."
    )


def _doubles(op: str) -> Build:
    def build(args: list[Expr], where: str) -> Expr:
        return make(op, [coerce(number(a, where), DOUBLE, where) for a in args], DOUBLE)

    return build


def _same(op: str) -> Build:
    """A function of one number that keeps its type."""

    def build(args: list[Expr], where: str) -> Expr:
        value = args[0]
        if kind(value.type) != "duration":
            value = number(value, where)
        return make(op, [value], value.type)

    return build


def _log(args: list[Expr], where: str) -> Expr:
    base, value = (coerce(number(a, where), DOUBLE, where) for a in args)
    if isinstance(base, Literal) and base.value == 10.0:
        return make("log10", [value], DOUBLE)
    return make("log", [base, value], DOUBLE)


def _whole(op: str) -> Build:
    def build(args: list[Expr], where: str) -> Expr:
        value = number(args[0], where)
        if pa.types.is_decimal(value.type):
            type_ = bounded(value.type.precision - value.type.scale + 1, 0)
            return make(op, [value], type_)
        target = LONG if pa.types.is_integer(value.type) else DOUBLE
        return make(op, [cast(value, target, where)], LONG)

    return build


def _round(args: list[Expr], where: str) -> Expr:
    value = number(args[0], where)
    scale = constant(args[1], INT, where, "the digits of ROUND") if len(args) > 1 else None
    digits = 0 if scale is None else scale.value
    if not isinstance(digits, int):
        return Literal(None, value.type)
    type_ = value.type
    if pa.types.is_decimal(type_):
        whole = type_.precision - type_.scale + 1
        kept = min(type_.scale, digits)
        type_ = bounded(whole + kept, kept) if digits >= 0 else bounded(max(whole, 1 - digits), 0)
    elif pa.types.is_integer(type_) and digits < -18:
        raise UnknownKernel(where, "ROUND must keep a digit to run without Spark", str(digits))
    return make("round", [value, Literal(digits, INT)], type_)


def _text(expr: Expr, where: str) -> Expr:
    return coerce(expr, STRING, where)


def _strings(op: str, type_: pa.DataType) -> Build:
    def build(args: list[Expr], where: str) -> Expr:
        return make(op, [_text(a, where) for a in args], type_)

    return build


def _length(args: list[Expr], where: str) -> Expr:
    value = args[0] if kind(args[0].type) == "binary" else _text(args[0], where)
    return make("length", [value], INT)


def _trim(op: str) -> Build:
    """The second argument, if any, is the characters to trim."""

    def build(args: list[Expr], where: str) -> Expr:
        given = args[1] if len(args) > 1 else Literal(" ", STRING)
        characters = constant(given, STRING, where, "the characters to trim")
        return make(op, [_text(args[0], where), characters], STRING)

    return build


def _substring(args: list[Expr], where: str) -> Expr:
    start = constant(args[1], INT, where, "the start of SUBSTRING")
    count = constant(args[2], INT, where, "the length of SUBSTRING") if len(args) > 2 else None
    rows = Literal(2**31 - 1, INT) if count is None else count
    return make("substring", [_text(args[0], where), start, rows], STRING)


def _left(args: list[Expr], where: str) -> Expr:
    return _substring([args[0], Literal(1, INT), args[1]], where)


def _right(args: list[Expr], where: str) -> Expr:
    count = constant(args[1], INT, where, "the length of RIGHT")
    if isinstance(count.value, int) and count.value <= 0:
        return _substring([args[0], Literal(1, INT), Literal(0, INT)], where)
    return _substring([args[0], make("negate", [count], INT)], where)


def _concat(args: list[Expr], where: str) -> Expr:
    if not args:
        return Literal("", STRING)
    if any(kind(a.type) == "binary" for a in args):
        raise UnknownKernel(where, "CONCAT must be of text to run without Spark", "binary")
    return make("concat", [_text(a, where) for a in args], STRING)


def _find(op: str) -> Build:
    def build(args: list[Expr], where: str) -> Expr:
        pattern = constant(args[1], STRING, where, "the text looked for")
        return make(op, [_text(args[0], where), pattern], BOOL)

    return build


def _replace(args: list[Expr], where: str) -> Expr:
    given = args[2] if len(args) > 2 else Literal("", STRING)
    search = constant(args[1], STRING, where, "the text replaced")
    replacement = constant(given, STRING, where, "the replacement")
    return make("replace", [_text(args[0], where), search, replacement], STRING)


def like(args: list[Expr], where: str) -> Expr:
    pattern = constant(args[1], STRING, where, "the pattern of LIKE")
    escape = args[2] if len(args) > 2 else Literal("\\", STRING)
    mark = escape.value if isinstance(escape, Literal) else None
    if not isinstance(mark, str) or len(mark) != 1:
        raise QueryError(where, "ESCAPE must be one character", str(mark))
    if isinstance(pattern.value, str):
        try:
            like_parts(pattern.value, mark)
        except ValueError:
            requirement = f"after the escape {mark} in LIKE must come %, _ or {mark}"
            raise QueryError(where, requirement, repr(pattern.value)) from None
    return make("like", [_text(args[0], where), pattern, escape], BOOL)


def ilike(args: list[Expr], where: str) -> Expr:
    lowered = [make("lower", [_text(a, where)], STRING) for a in args[:2]]
    return like([*lowered, *args[2:]], where)


def _field(op: str, type_: pa.DataType) -> Build:
    """A field of a date or timestamp; text is read as the type the field belongs to."""

    def build(args: list[Expr], where: str) -> Expr:
        value = args[0]
        if value.type != type_ and kind(value.type) not in ("string", "date", "timestamp", "null"):
            raise QueryError(where, "the argument must be a date or a time", type_name(value.type))
        return make(op, [value if value.type == TIME else coerce(value, type_, where)], INT)

    return build


def _second_fraction(args: list[Expr], where: str) -> Expr:
    return make("second_fraction", [coerce(args[0], TIME, where)], pa.decimal128(8, 6))


def _truncate(op: str, type_: pa.DataType, coarse: bool) -> Build:
    """Arguments: the unit's name, then the value."""

    def build(args: list[Expr], where: str) -> Expr:
        name = constant(args[0], STRING, where, "the unit to truncate to").value
        unit = _UNITS.get(str(name).lower())
        if unit is None or (coarse and unit not in ("week", "month", "quarter", "year")):
            names = ", ".join(sorted(set(_UNITS.values())))
            raise QueryError(where, "the unit to truncate to must be known", str(name), f"Use {names}.")
        return make(op, [coerce(args[1], type_, where), Literal(unit, STRING)], type_)

    return build


def _of_time(op: str) -> Build:
    return lambda args, where: make(op, [coerce(args[0], TIME, where)], LONG)


def _from_integer(op: str) -> Build:
    def build(args: list[Expr], where: str) -> Expr:
        value = args[0]
        if op == "timestamp_seconds" and kind(value.type) in ("float", "decimal"):
            return cast(value, TIME, where)
        if not (pa.types.is_integer(value.type) or value.type == NULL):
            raise QueryError(where, "the argument must be an integer", type_name(value.type))
        return make(op, [cast(value, LONG, where)], TIME)

    return build


def _add_days(args: list[Expr], where: str) -> Expr:
    return make("add_days", [coerce(args[0], DATE, where), coerce(args[1], INT, where)], DATE)


def _date_diff(args: list[Expr], where: str) -> Expr:
    return make("date_diff", [coerce(a, DATE, where) for a in args], INT)


def _add_months(args: list[Expr], where: str) -> Expr:
    months = constant(args[1], INT, where, "the months to add")
    return make("add_months", [coerce(args[0], DATE, where), months], DATE)


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


def _is_nan(args: list[Expr], where: str) -> Expr:
    return make("is_nan", [coerce(number(args[0], where), DOUBLE, where)], BOOL)


def _pmod(args: list[Expr], where: str) -> Expr:
    if not all(pa.types.is_integer(a.type) for a in args):
        raise UnknownKernel(where, "PMOD must be over integers to run without Spark")
    type_ = common([a.type for a in args], where, "the arguments of PMOD")
    return make("positive_remainder", [cast(a, type_, where) for a in args], type_)


def bits(op: str) -> Build:
    def build(args: list[Expr], where: str) -> Expr:
        type_ = common([a.type for a in args], where, "the operands of a bit operation")
        if not pa.types.is_integer(type_):
            raise QueryError(where, "bit operations must be over integers", type_name(type_))
        return make(op, [coerce(a, type_, where) for a in args], type_)

    return build


def _shift(op: str) -> Build:
    def build(args: list[Expr], where: str) -> Expr:
        if not pa.types.is_integer(args[0].type):
            raise QueryError(where, "shifts must be of integers", type_name(args[0].type))
        value = args[0] if args[0].type == LONG else cast(args[0], INT, where)
        return make(op, [value, coerce(args[1], INT, where)], value.type)

    return build


def _casts(type_: pa.DataType) -> Build:
    return lambda args, where: cast(args[0], type_, where)


def _mod(args: list[Expr], where: str) -> Expr:
    return arithmetic("remainder", args[0], args[1], where, (False, False))


def _decimal_cast(args: list[Expr], where: str) -> Expr:
    return cast(args[0], adjusted(10, 0), where)


def _decode(args: list[Expr], where: str) -> Expr:
    """DECODE(x, a, b, ..., default): NULL matches NULL."""
    pairs = [
        (compare("null_safe_eq", args[0], args[i], where), args[i + 1])
        for i in range(1, len(args) - 1, 2)
    ]
    return choose(pairs, args[-1] if len(args) % 2 == 0 else None, where)


def _numbers(names: str) -> dict[str, Function]:
    return {name: Function(_doubles(name), 1, 1) for name in names.split()}


FUNCTIONS: dict[str, Function] = {
    **_numbers("sqrt cbrt exp expm1 ln log10 log1p sin cos tan cot asin acos atan sinh cosh tanh"),
    **_numbers("radians degrees sign rint"),
    "abs": Function(_same("abs"), 1, 1),
    "negative": Function(_same("negate"), 1, 1),
    "positive": Function(lambda args, where: number(args[0], where), 1, 1),
    "log": Function(lambda a, w: _log(a, w) if len(a) == 2 else _doubles("ln")(a, w), 1, 2),
    "log2": Function(lambda a, w: _log([Literal(2, INT), *a], w), 1, 1),
    "power": Function(_doubles("power"), 2, 2),
    "atan2": Function(_doubles("atan2"), 2, 2),
    "hypot": Function(_doubles("hypot"), 2, 2),
    "pi": Function(lambda args, where: Literal(math.pi, DOUBLE), 0, 0),
    "e": Function(lambda args, where: Literal(math.e, DOUBLE), 0, 0),
    "floor": Function(_whole("floor"), 1, 1),
    "ceil": Function(_whole("ceil"), 1, 1),
    "round": Function(_round, 1, 2),
    "mod": Function(_mod, 2, 2),
    "pmod": Function(_pmod, 2, 2),
    "shiftleft": Function(_shift("shift_left"), 2, 2),
    "shiftright": Function(_shift("shift_right"), 2, 2),
    "upper": Function(_strings("upper", STRING), 1, 1),
    "lower": Function(_strings("lower", STRING), 1, 1),
    "length": Function(_length, 1, 1),
    "trim": Function(_trim("trim"), 1, 2),
    "btrim": Function(_trim("trim"), 1, 2),
    "ltrim": Function(_trim("ltrim"), 1, 2),
    "rtrim": Function(_trim("rtrim"), 1, 2),
    "substring": Function(_substring, 2, 3),
    "left": Function(_left, 2, 2),
    "right": Function(_right, 2, 2),
    "concat": Function(_concat, 0, 1000),
    "replace": Function(_replace, 2, 3),
    "startswith": Function(_find("starts_with"), 2, 2),
    "endswith": Function(_find("ends_with"), 2, 2),
    "contains": Function(_find("contains"), 2, 2),
    "year": Function(_field("year", DATE), 1, 1),
    "quarter": Function(_field("quarter", DATE), 1, 1),
    "month": Function(_field("month", DATE), 1, 1),
    "weekofyear": Function(_field("week", DATE), 1, 1),
    "day": Function(_field("day", DATE), 1, 1),
    "dayofyear": Function(_field("day_of_year", DATE), 1, 1),
    "dayofweek": Function(_field("day_of_week", DATE), 1, 1),
    "weekday": Function(_field("weekday", DATE), 1, 1),
    "hour": Function(_field("hour", TIME), 1, 1),
    "minute": Function(_field("minute", TIME), 1, 1),
    "second": Function(_field("second", TIME), 1, 1),
    "extract_second": Function(_second_fraction, 1, 1),
    "date_trunc": Function(_truncate("date_trunc", TIME, False), 2, 2),
    "trunc": Function(_truncate("trunc_date", DATE, True), 2, 2),
    "date_add": Function(_add_days, 2, 2),
    "datediff": Function(_date_diff, 2, 2),
    "add_months": Function(_add_months, 2, 2),
    "unix_micros": Function(_of_time("unix_micros"), 1, 1),
    "unix_millis": Function(_of_time("unix_millis"), 1, 1),
    "unix_seconds": Function(_of_time("unix_seconds"), 1, 1),
    "timestamp_micros": Function(_from_integer("timestamp_micros"), 1, 1),
    "timestamp_millis": Function(_from_integer("timestamp_millis"), 1, 1),
    "timestamp_seconds": Function(_from_integer("timestamp_seconds"), 1, 1),
    "greatest": Function(_extreme("greatest"), 2, 1000),
    "least": Function(_extreme("least"), 2, 1000),
    "coalesce": Function(_coalesce, 1, 1000),
    "nullif": Function(_nullif, 2, 2),
    "nvl2": Function(_nvl2, 3, 3),
    "if": Function(_if, 3, 3),
    "isnull": Function(is_null, 1, 1),
    "isnotnull": Function(is_not_null, 1, 1),
    "isnan": Function(_is_nan, 1, 1),
    "nanvl": Function(_doubles("nanvl"), 2, 2),
    "decode": Function(_decode, 3, 1000),
    "bigint": Function(_casts(LONG), 1, 1),
    "smallint": Function(_casts(pa.int16()), 1, 1),
    "tinyint": Function(_casts(pa.int8()), 1, 1),
    "decimal": Function(_decimal_cast, 1, 1),
}
"""Functions by Spark's names; aliases are resolved in `query/typing.py`."""
