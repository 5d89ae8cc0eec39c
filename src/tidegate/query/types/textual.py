"""Types and kernels of text functions."""

from __future__ import annotations

import pyarrow as pa

from tidegate.errors import QueryError
from tidegate.expression.kind import kind
from tidegate.expression.pattern import like_parts
from tidegate.expression.tree import Expr, Literal
from tidegate.query.types.coercion import (
    BOOL,
    INT,
    STRING,
    Build,
    UnknownKernel,
    coerce,
    constant,
    make,
)

_SPECIAL = frozenset("\\.[]{}()*+-?^$|")
"""Characters with a special meaning in regular expressions."""


def _text(expr: Expr, where: str) -> Expr:
    return coerce(expr, STRING, where)


def strings(op: str, type_: pa.DataType) -> Build:
    return lambda args, where: make(op, [_text(a, where) for a in args], type_)


def length(args: list[Expr], where: str) -> Expr:
    value = args[0] if kind(args[0].type) == "binary" else _text(args[0], where)
    return make("length", [value], INT)


def trim(op: str) -> Build:
    """The second argument, if given, is the characters to trim."""

    def build(args: list[Expr], where: str) -> Expr:
        given = args[1] if len(args) > 1 else Literal(" ", STRING)
        characters = constant(given, STRING, where, "the characters to trim")
        return make(op, [_text(args[0], where), characters], STRING)

    return build


def substring(args: list[Expr], where: str) -> Expr:
    start = constant(args[1], INT, where, "the start of SUBSTRING")
    count = constant(args[2], INT, where, "the length of SUBSTRING") if len(args) > 2 else None
    rows = Literal(2**31 - 1, INT) if count is None else count
    return make("substring", [_text(args[0], where), start, rows], STRING)


def left(args: list[Expr], where: str) -> Expr:
    return substring([args[0], Literal(1, INT), args[1]], where)


def right(args: list[Expr], where: str) -> Expr:
    count = constant(args[1], INT, where, "the length of RIGHT")
    if isinstance(count.value, int) and count.value <= 0:
        return substring([args[0], Literal(1, INT), Literal(0, INT)], where)
    return substring([args[0], make("negate", [count], INT)], where)


def concat(args: list[Expr], where: str) -> Expr:
    if not args:
        return Literal("", STRING)
    if any(kind(a.type) == "binary" for a in args):
        raise UnknownKernel(where, "CONCAT must be of text to run without Spark", "binary")
    return make("concat", [_text(a, where) for a in args], STRING)


def find(op: str) -> Build:
    def build(args: list[Expr], where: str) -> Expr:
        pattern = constant(args[1], STRING, where, "the text looked for")
        return make(op, [_text(args[0], where), pattern], BOOL)

    return build


def replace(args: list[Expr], where: str) -> Expr:
    given = args[2] if len(args) > 2 else Literal("", STRING)
    search = constant(args[1], STRING, where, "the text replaced")
    replacement = constant(given, STRING, where, "the replacement")
    return make("replace", [_text(args[0], where), search, replacement], STRING)


def split(args: list[Expr], where: str) -> Expr:
    """SPLIT by plain text. A regular expression is left to Spark, because its rules are Java's."""
    separator = constant(args[1], STRING, where, "the separator of SPLIT")
    if not separator.value or set(str(separator.value)) & _SPECIAL:
        said = repr(separator.value)
        raise UnknownKernel(where, "SPLIT by a regular expression needs Spark", said)
    return make("split", [_text(args[0], where), separator], pa.list_(STRING))


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
