"""Functions of doubles as Java computes them (NaN and NULL cases included), over Arrow arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.operate.kernels.expression.vector import both, join, none_where, split_all

ZERO = pa.scalar(0.0, pa.float64())


def _plain(function: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda _, value: function(value)


def _numpy(function: Callable[..., Any]) -> Callable[..., Any]:
    def kernel(type_: pa.DataType, *args: Any) -> Any:
        if len(args) == 2:
            args = both(*args)
        values, valid = split_all(*args)
        with np.errstate(all="ignore"):
            return join(function(*values), valid, type_)

    return kernel


def _logarithm(function: Callable[[Any], Any], above: float = 0.0) -> Callable[..., Any]:
    """A logarithm is NULL at and below its asymptote, NaN only for NaN."""
    bound = pa.scalar(above, pa.float64())

    def kernel(_: pa.DataType, value: Any) -> Any:
        return function(none_where(pc.less_equal(value, bound), value))

    return kernel


def log_of_base(_: pa.DataType, base: Any, value: Any) -> Any:
    base, value = both(base, value)
    base = none_where(pc.less_equal(base, ZERO), base)
    value = none_where(pc.less_equal(value, ZERO), value)
    return pc.divide(pc.ln(value), pc.ln(base))


def _power(base: Any, exponent: Any) -> Any:
    """Java's pow: one to the power of NaN, and minus or plus one to an infinite power, are NaN."""
    result = np.power(base, exponent)
    undefined = (np.abs(base) == 1.0) & np.isinf(exponent)
    undefined |= np.isnan(exponent)
    return np.where(undefined, np.nan, result)


def _sign(value: Any) -> Any:
    """Java's signum keeps the zero it is given."""
    return np.where(value == 0.0, value, np.sign(value))


_ARROW = "sqrt exp expm1 sin cos tan asin acos atan sinh cosh tanh"

OPS: dict[str, Callable[..., Any]] = {
    **{name: _plain(getattr(pc, name)) for name in _ARROW.split()},
    "cbrt": _numpy(np.cbrt),
    "ln": _logarithm(pc.ln),
    "log10": _logarithm(pc.log10),
    "log1p": _logarithm(pc.log1p, -1.0),
    "log": log_of_base,
    "power": _numpy(_power),
    "hypot": _numpy(np.hypot),
    "sign": _numpy(_sign),
    "rint": _numpy(np.rint),
    "cot": _numpy(lambda value: 1.0 / np.tan(value)),
    "atan2": lambda _, y, x: pc.atan2(pc.add(y, ZERO), pc.add(x, ZERO)),
    "radians": _numpy(lambda value: value * (np.pi / 180.0)),
    "degrees": _numpy(lambda value: value * (180.0 / np.pi)),
}
