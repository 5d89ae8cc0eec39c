"""Finds a row for which an expression has no value, for the error that names it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.calendar.era import texts
from tidegate.expression.tree import show

OVERFLOW = "the result must fit its type"
OVERFLOW_REMEDY = "Cast an operand to a wider type first."
TIME_REMEDY = "Timestamps reach to about 290,000 years before and after 1970."
ZERO = "the divisor must not be zero"
ZERO_REMEDY = "Guard it with CASE WHEN or make the divisor NULLIF(divisor, 0)."


class RowFailure(Exception):
    """Raised by a kernel for a row without a value; the evaluator adds the expression."""

    def __init__(self, requirement: str, got: str, remedy: str) -> None:
        self.requirement = requirement
        self.got = got
        self.remedy = remedy
        super().__init__(requirement, got, remedy)


def checked(kernel: Callable[..., Any], *args: Any) -> Any:
    """Run an Arrow kernel, which only says that some row overflows; name the first such row."""
    try:
        return kernel(*args)
    except pa.ArrowInvalid:
        row = _first_failure(kernel, args)
        of_time = any(pa.types.is_timestamp(arg.type) for arg in args)
        remedy = TIME_REMEDY if of_time else OVERFLOW_REMEDY
        raise RowFailure(OVERFLOW, show_row(args, row), remedy) from None


def reject(bad: Any, args: tuple[Any, ...], requirement: str, remedy: str) -> None:
    """Fail on the first row that a boolean array marks; NULL marks nothing."""
    mask = bad.fill_null(False).to_numpy(zero_copy_only=False)
    if mask.any():
        raise RowFailure(requirement, show_row(args, int(np.argmax(mask))), remedy)


def show_row(args: tuple[Any, ...], row: int) -> str:
    """The arguments of one row, in order."""
    return " and ".join(_shown(arg if isinstance(arg, pa.Scalar) else arg[row]) for arg in args)


def _shown(scalar: pa.Scalar) -> str:
    """One value; also a time or a length of time that Python has no object for."""
    try:
        return show(scalar.as_py())
    except (ValueError, OverflowError):
        if pa.types.is_duration(scalar.type):
            return f"{scalar.cast(pa.int64()).as_py()} us"
        return str(texts(lambda times: times.cast(pa.string()), _naive(scalar))[0])


def _naive(scalar: pa.Scalar) -> pa.Array:
    """An array of one time without its zone, so that Arrow needs no zone database."""
    times = pa.array([scalar.cast(pa.int64())]) if pa.types.is_timestamp(scalar.type) else None
    return pa.repeat(scalar, 1) if times is None else times.view(pa.timestamp("us"))


def _first_failure(kernel: Callable[..., Any], args: tuple[Any, ...]) -> int:
    """Find the first row that fails by bisection; costs log(rows) further runs of the kernel."""
    low, high = 0, max(len(arg) for arg in args if isinstance(arg, pa.Array))
    while high - low > 1:
        middle = (low + high) // 2
        part = [a if isinstance(a, pa.Scalar) else a.slice(low, middle - low) for a in args]
        try:
            kernel(*part)
            low = middle
        except pa.ArrowInvalid:
            high = middle
    return low
