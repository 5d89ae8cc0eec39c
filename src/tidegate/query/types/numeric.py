"""Types and kernels of numeric functions."""

from __future__ import annotations

import pyarrow as pa

from tidegate.errors import QueryError
from tidegate.expression.digits import adjusted, bounded
from tidegate.expression.kind import kind
from tidegate.expression.tree import Expr, Literal
from tidegate.query.types.coercion import (
    BOOL,
    DOUBLE,
    INT,
    LONG,
    STRING,
    Build,
    UnknownKernel,
    cast,
    coerce,
    common,
    constant,
    make,
    number,
)
from tidegate.query.types.operator import arithmetic
from tidegate.schema import type_name


def doubles(op: str) -> Build:
    return lambda args, where: make(
        op, [coerce(number(a, where), DOUBLE, where) for a in args], DOUBLE
    )


def same(op: str) -> Build:
    """A function of one number that keeps its type."""

    def build(args: list[Expr], where: str) -> Expr:
        value = args[0]
        if kind(value.type) != "duration":
            value = number(value, where)
        return make(op, [value], value.type)

    return build


def log(args: list[Expr], where: str) -> Expr:
    base, value = (coerce(number(a, where), DOUBLE, where) for a in args)
    if isinstance(base, Literal) and base.value == 10.0:
        return make("log10", [value], DOUBLE)
    return make("log", [base, value], DOUBLE)


def whole(op: str) -> Build:
    def build(args: list[Expr], where: str) -> Expr:
        value = number(args[0], where)
        if pa.types.is_decimal(value.type):
            digits = value.type.precision - value.type.scale
            type_ = bounded(digits + 1 if value.type.scale else digits, 0)
            return make(op, [value], type_)
        target = LONG if pa.types.is_integer(value.type) else DOUBLE
        return make(op, [cast(value, target, where)], LONG)

    return build


def round_to(args: list[Expr], where: str) -> Expr:
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
    if digits < -18 and not pa.types.is_floating(type_):
        raise UnknownKernel(where, "ROUND must keep a digit to run without Spark", str(digits))
    return make("round", [value, Literal(digits, INT)], type_)


def is_nan(args: list[Expr], where: str) -> Expr:
    return make("is_nan", [coerce(number(args[0], where), DOUBLE, where)], BOOL)


def nanvl(args: list[Expr], where: str) -> Expr:
    type_ = pa.float32() if all(a.type == pa.float32() for a in args) else DOUBLE
    return make("nanvl", [coerce(number(a, where), type_, where) for a in args], type_)


def pmod(args: list[Expr], where: str) -> Expr:
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


def shift(op: str) -> Build:
    def build(args: list[Expr], where: str) -> Expr:
        value = number(args[0], where) if args[0].type != STRING else args[0]
        value = value if value.type == LONG else coerce(value, INT, where)
        return make(op, [value, coerce(args[1], INT, where)], value.type)

    return build


def mod(args: list[Expr], where: str) -> Expr:
    return arithmetic("remainder", args[0], args[1], where, (False, False))


def to_decimal(args: list[Expr], where: str) -> Expr:
    return cast(args[0], adjusted(10, 0), where)
