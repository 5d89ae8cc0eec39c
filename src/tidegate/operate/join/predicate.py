"""Calls a predicate that is the user's own function on candidate pairs."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.errors import TaskError
from tidegate.operate.join.spec import PairFunction


def call_predicate(
    function: PairFunction, left: pa.Table, right: pa.Table
) -> npt.NDArray[np.bool_]:
    """The function's answer for each pair, NULL as false; a TaskError where it raises.

    SystemExit counts as raising: a user's `exit()` must not end a worker in silence.
    """
    where = _where(function.call)
    try:
        answer = function.call(
            left.rename_columns(list(function.left_names)),
            right.rename_columns(list(function.right_names)),
        )
    except (Exception, SystemExit) as error:
        got = f"{type(error).__name__}: {error}".strip(": ")
        raise TaskError(where, "the predicate must not raise", got) from error
    return _checked(answer, left.num_rows, where)


def _checked(answer: Any, pairs: int, where: str) -> npt.NDArray[np.bool_]:
    wanted = f"the predicate must return one boolean for each of {pairs:,} pairs"
    if isinstance(answer, pa.ChunkedArray):
        answer = answer.combine_chunks()
    if isinstance(answer, pa.Array):
        if not pa.types.is_boolean(answer.type):
            raise TaskError(where, wanted, f"an array of {answer.type}")
        answer = answer.fill_null(False).to_numpy(zero_copy_only=False)
    try:
        array = np.asarray(answer)
    except ValueError as error:
        raise TaskError(where, wanted, str(error)) from None
    if array.shape != (pairs,):
        shape = "a single value" if array.shape == () else f"shape {array.shape}"
        raise TaskError(where, wanted, shape)
    if array.dtype != np.bool_:
        raise TaskError(where, wanted, f"an array of {array.dtype}")
    return array


def _where(call: Any) -> str:
    """The function's name, file and line."""
    name = getattr(call, "__qualname__", None) or type(call).__name__
    code = getattr(inspect.unwrap(call), "__code__", None)
    return f"{name} ({code.co_filename}:{code.co_firstlineno})" if code else name
