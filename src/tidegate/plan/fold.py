"""Computes constants once, when a query is planned, instead of in every batch."""

from __future__ import annotations

import pyarrow as pa

from tidegate.errors import TaskError
from tidegate.expression.tree import CHOICES, Call, Expr, Literal, rebuilt
from tidegate.operate.kernels.expression.expression import evaluate

_ONE_ROW = pa.table({"row": pa.array([0])})


def fold(expr: Expr) -> Expr:
    """The expression with every call of constants replaced by its value.

    A call that fails stays: it may stand behind a guard, and no row may ever reach it. What chooses
    between its arguments stays as it is written. A part that is shared stays one object, which the
    kernels compute once.
    """
    return rebuilt(expr, _value)


def _value(call: Expr) -> Expr:
    if not isinstance(call, Call) or call.op in CHOICES or not call.args:
        return call
    if not all(isinstance(arg, Literal) for arg in call.args):
        return call
    try:
        return Literal(evaluate(call, _ONE_ROW)[0].as_py(), call.type)
    except (TaskError, OverflowError, ValueError):
        return call
