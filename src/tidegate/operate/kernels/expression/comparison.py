"""Comparisons in Spark's order of values (NaN equals NaN and is greatest), over Arrow arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.operate.kernels.expression.vector import both, repeat


def _is_float(value: Any) -> bool:
    return bool(pa.types.is_floating(value.type))


def _is_plain(value: Any) -> bool:
    """A constant that is not NaN, for which IEEE comparisons need no help on its side."""
    return isinstance(value, pa.Scalar) and value.is_valid and value.as_py() == value.as_py()


def eq(_: pa.DataType, left: Any, right: Any) -> Any:
    same = pc.equal(left, right)
    if not _is_float(left) or _is_plain(left) or _is_plain(right):
        return same
    return pc.or_kleene(same, pc.and_kleene(pc.is_nan(left), pc.is_nan(right)))


def lt(_: pa.DataType, left: Any, right: Any) -> Any:
    if not _is_float(left) or _is_plain(right):
        return pc.less(left, right)
    below = pc.invert(pc.greater_equal(left, right))
    return below if _is_plain(left) else pc.and_(below, pc.invert(pc.is_nan(left)))


def le(_: pa.DataType, left: Any, right: Any) -> Any:
    if not _is_float(left) or _is_plain(right):
        return pc.less_equal(left, right)
    return pc.or_(pc.less_equal(left, right), pc.is_nan(right))


def gt(type_: pa.DataType, left: Any, right: Any) -> Any:
    return lt(type_, right, left)


def null_safe_eq(type_: pa.DataType, left: Any, right: Any) -> Any:
    left, right = both(left, right)
    neither = pc.and_(left.is_null(), right.is_null())
    return pc.or_(eq(type_, left, right).fill_null(False), neither)


def is_in(_: pa.DataType, value: Any, *members: Any) -> Any:
    """Membership in a list of constants; no match is NULL when the list holds a NULL."""
    known = [m for m in members if m.is_valid]
    value_set = pa.array([m.as_py() for m in known], value.type)
    if _is_float(value):
        zero = pa.scalar(0.0, value.type)
        value, value_set = pc.add(value, zero), pc.add(value_set, zero)
    found = pc.is_in(value, value_set=value_set)
    unknown = value.is_null()
    if len(known) < len(members):
        unknown = pc.or_(unknown, pc.invert(found))
    return pc.if_else(unknown, pa.scalar(None, pa.bool_()), found)


def nanvl(type_: pa.DataType, value: Any, other: Any) -> Any:
    value, other = both(value, other)
    return pc.if_else(pc.is_nan(value), other, value)


def case(_: pa.DataType, *args: Any) -> Any:
    """Arguments: condition, value, ..., default. The first condition that is true decides."""
    rows = next(len(arg) for arg in args if isinstance(arg, pa.Array))
    flags = [repeat(c, rows) if isinstance(c, pa.Scalar) else c for c in args[:-1:2]]
    names = [str(number) for number in range(len(flags))]
    return pc.case_when(pc.make_struct(*flags, field_names=names), *args[1:-1:2], args[-1])


def _pick(wins: Callable[..., Any]) -> Callable[..., Any]:
    """Fold the arguments pairwise: the first stays unless the next one wins."""

    def kernel(type_: pa.DataType, *values: Any) -> Any:
        array = next(v for v in values if isinstance(v, pa.Array))
        best = both(values[0], array)[0]
        for value in values[1:]:
            later = pc.or_kleene(wins(type_, value, best), best.is_null()).fill_null(False)
            best = pc.if_else(later, value, best)
        return best

    return kernel


OPS: dict[str, Callable[..., Any]] = {
    "eq": eq,
    "ne": lambda type_, left, right: pc.invert(eq(type_, left, right)),
    "lt": lt,
    "le": le,
    "gt": gt,
    "ge": lambda type_, left, right: le(type_, right, left),
    "null_safe_eq": null_safe_eq,
    "in": is_in,
    "case": case,
    "coalesce": lambda _, *values: pc.coalesce(*values),
    "and": lambda _, left, right: pc.and_kleene(left, right),
    "or": lambda _, left, right: pc.or_kleene(left, right),
    "not": lambda _, value: pc.invert(value),
    "is_null": lambda _, value: value.is_null(),
    "is_true": lambda _, value: value.fill_null(False),
    "is_false": lambda _, value: pc.invert(value.fill_null(True)),
    "is_nan": lambda _, value: pc.is_nan(value).fill_null(False),
    "nanvl": nanvl,
    "greatest": _pick(gt),
    "least": _pick(lt),
}
