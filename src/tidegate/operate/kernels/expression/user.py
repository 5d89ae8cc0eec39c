"""Calls the user's functions on columns and checks what they return."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from tidegate.errors import TaskError
from tidegate.expression.tree import Call, describe
from tidegate.expression.user_function import UserFunction
from tidegate.operate.kernels.expression.failure import show_row
from tidegate.operate.kernels.order import flat
from tidegate.schema import type_name


def called(call: Call, function: UserFunction, args: Sequence[Any], rows: int) -> Any:
    """Call a user's function with arrays of so many rows; returns an array of the call's type.

    A TaskError where it raises or returns something else. Where it raises, the error names the
    first row for which it does, at the cost of log(rows) further calls.
    """
    try:
        answer = function.call(*args)
    except Exception as error:
        row, cause = _first_failure(function, args, rows, error)
        value = "" if row is None else f", for {show_row(tuple(args), row)}"
        raise TaskError(
            f"expression {describe(call)}",
            f"the function {function.where} must not raise",
            f"{_cause(cause)}{value}",
        ) from error
    return _checked(answer, call, function, rows)


def _checked(answer: Any, call: Call, function: UserFunction, rows: int) -> Any:
    where = f"expression {describe(call)}"
    wanted = f"the function {function.where} must return"
    if isinstance(answer, pa.ChunkedArray):
        answer = flat(answer)
    if not isinstance(answer, pa.Array):
        got = type(answer).__name__
        raise TaskError(where, f"{wanted} a pyarrow array", got, "Wrap it with pa.array(...).")
    if len(answer) != rows:
        raise TaskError(where, f"{wanted} a value for each of {rows:,} rows", f"{len(answer):,}")
    if answer.type == call.type:
        return answer
    try:
        return answer.cast(call.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise TaskError(
            where,
            f"{wanted} {type_name(call.type).upper()}",
            f"an array of {answer.type} ({str(error).splitlines()[0]})",
            "Cast it, or declare another type with returns=.",
        ) from None


def _first_failure(
    function: UserFunction, args: Sequence[Any], rows: int, error: Exception
) -> tuple[int | None, Exception]:
    """The first row for which the function raises by itself, and the error; None for no row."""
    low, high = 0, rows
    while high - low > 1:
        middle = (low + high) // 2
        failed = _failure(function, args, low, middle)
        low, high = (low, middle) if failed is not None else (middle, high)
    alone = _failure(function, args, low, high)
    return (None, error) if alone is None else (low, alone)


def _failure(function: UserFunction, args: Sequence[Any], low: int, high: int) -> Exception | None:
    try:
        function.call(*(arg.slice(low, high - low) for arg in args))
    except Exception as error:
        return error
    return None


def _cause(error: Exception) -> str:
    lines = f"{type(error).__name__}: {error}".strip(": ").splitlines()
    return lines[0]
