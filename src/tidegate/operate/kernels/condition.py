"""CASE, COALESCE, AND and OR, which evaluate an argument only on the rows that need it.

Guards must work: in ``CASE WHEN b <> 0 THEN a / b END`` no row with ``b = 0`` may reach the
division. Arguments that cannot fail are evaluated on all rows at once, which is cheaper.

The kernels here are steps of a descent: they yield the evaluations they need.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.descent import Step
from tidegate.expression.tree import SIGNS, Call, Expr, Literal, is_total

_DIVISIONS = ("divide", "int_divide", "remainder")


class Rows(Protocol):
    """The rows an expression is evaluated on; the evaluator's side of this module."""

    def array(self, expr: Expr) -> Step[Any]:
        """The value of an expression on every row."""
        ...

    def value(self, expr: Expr) -> Step[Any]:
        """The same, a scalar where the value is one constant."""
        ...

    def take(self, indices: np.ndarray[Any, Any]) -> Rows:
        """Some of the rows."""
        ...

    def __len__(self) -> int: ...


class _Pieces:
    """Values computed for parts of the rows, put back in the order of the rows at the end."""

    def __init__(self, type_: pa.DataType) -> None:
        self.type = type_
        self.arrays: list[Any] = []
        self.places: list[np.ndarray[Any, Any]] = []

    def add(self, rows: Rows, expr: Expr, places: np.ndarray[Any, Any]) -> Step[None]:
        if len(places):
            part = rows if len(places) == len(rows) else rows.take(places)
            self.arrays.append((yield part.array(expr)))
            self.places.append(places)

    def joined(self) -> Any:
        if len(self.arrays) == 1:
            return self.arrays[0]
        order = np.concatenate(self.places)
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        return pa.concat_arrays(self.arrays).take(pa.array(back))


def _flags(array: Any, null: bool) -> np.ndarray[Any, Any]:
    values: np.ndarray[Any, Any] = array.fill_null(null).to_numpy(zero_copy_only=False)
    return values


def case(rows: Rows, call: Call) -> Step[Any]:
    """Arguments: condition, value, ..., default. The first condition that is true decides."""
    conditions, values = call.args[:-1:2], call.args[1:-1:2]
    if all(is_total(arg) for arg in call.args):
        flags = yield _each(rows.array, conditions)
        results = yield _each(rows.value, (*values, call.args[-1]))
        names = [str(i) for i in range(len(conditions))]
        return pc.case_when(pc.make_struct(*flags, field_names=names), *results)
    pieces = _Pieces(call.type)
    left = np.arange(len(rows))
    for condition, value in zip(conditions, values, strict=True):
        if not len(left):
            break
        truth = yield (rows if len(left) == len(rows) else rows.take(left)).array(condition)
        hit = _flags(truth, False)
        yield pieces.add(rows, value, left[hit])
        left = left[~hit]
    yield pieces.add(rows, call.args[-1], left)
    return pieces.joined()


def coalesce(rows: Rows, call: Call) -> Step[Any]:
    """The first argument that is not NULL; later ones are evaluated only where it is still NULL."""
    result = yield rows.array(call.args[0])
    if all(is_total(arg) for arg in call.args[1:]):
        return pc.coalesce(result, *(yield _each(rows.value, call.args[1:])))
    for arg in call.args[1:]:
        if not result.null_count:
            break
        left = np.flatnonzero(result.is_null().to_numpy(zero_copy_only=False))
        part = rows if len(left) == len(rows) else rows.take(left)
        result = pc.replace_with_mask(result, result.is_null(), (yield part.array(arg)))
    return result


def conjunction(rows: Rows, call: Call) -> Step[Any]:
    """AND: the right side is evaluated where the left is not false, unless it cannot fail."""
    return _connect(rows, call, pc.and_kleene, decided=False)


def disjunction(rows: Rows, call: Call) -> Step[Any]:
    """OR: the right side is evaluated where the left is not true, unless it cannot fail."""
    return _connect(rows, call, pc.or_kleene, decided=True)


def _connect(rows: Rows, call: Call, connective: Callable[..., Any], decided: bool) -> Step[Any]:
    left, right = call.args
    first = yield rows.array(left)
    if is_total(right):
        return connective(first, (yield rows.value(right)))
    open_ = np.flatnonzero(_flags(first, not decided) != decided)
    if not len(open_):
        return first
    pieces = _Pieces(call.type)
    yield pieces.add(rows, right, open_)
    settled = np.setdiff1d(np.arange(len(rows)), open_, assume_unique=True)
    yield pieces.add(rows, Literal(decided, pa.bool_()), settled)
    return connective(first, pieces.joined())


def guarded(rows: Rows, call: Call, before: Sequence[Any]) -> Step[Any]:
    """A call of two arguments one of which failed: beside a NULL it need not have a value.

    `before` are the values of the arguments before it. As in Spark the left side is looked at
    first, of divisions the right one. None: it had to have a value. What failed is not tried on the
    same rows again: inside a long sum every term would double the work.
    """
    if len(call.args) != 2 or call.op not in SIGNS or call.op == "null_safe_eq":
        return None
    leading = 1 if call.op in _DIVISIONS else 0
    if leading == len(before):
        return None
    first = before[0] if before else (yield rows.value(call.args[leading]))
    valid = first.is_valid if isinstance(first, pa.Scalar) else first.is_valid().to_numpy(False)
    known = np.broadcast_to(valid, len(rows))
    if known.all():
        return None
    pieces = _Pieces(call.type)
    yield pieces.add(rows, call, np.flatnonzero(known))
    yield pieces.add(rows, Literal(None, call.type), np.flatnonzero(~known))
    return pieces.joined()


def _each(evaluate: Callable[[Expr], Step[Any]], exprs: Sequence[Expr]) -> Step[list[Any]]:
    values = []
    for expr in exprs:
        values.append((yield evaluate(expr)))
    return values


LAZY: dict[str, Callable[[Rows, Call], Step[Any]]] = {
    "case": case,
    "coalesce": coalesce,
    "and": conjunction,
    "or": disjunction,
}
