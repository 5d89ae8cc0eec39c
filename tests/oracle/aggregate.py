"""Windowed aggregation row by row and window by window, without panes: the twin of the engine's."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction
from typing import Any

import pyarrow as pa

from tidegate.operate.aggregate.pane import AggregateSpec, Function

Row = Mapping[str, Any]
User = Callable[[list[tuple[Any, ...]]], Any]


def windows(
    spec: AggregateSpec,
    rows: Sequence[Row],
    above_us: float = -math.inf,
    upto_us: float = math.inf,
    users: Mapping[str, User] | None = None,
) -> list[tuple[Any, ...]]:
    """(start, end, keys..., results...) of each window with above < end <= upto, in output order.

    `users` gives the plain function of each user aggregate, over the argument tuples of a group.
    """
    groups: dict[tuple[int, tuple[Any, ...]], list[Row]] = {}
    for row in rows:
        k = row["ts"] // spec.slide_us
        while row["ts"] < k * spec.slide_us + spec.range_us:
            if above_us < k * spec.slide_us + spec.range_us <= upto_us:
                key = tuple(sort_key(row[name]) for name, _ in spec.keys)
                groups.setdefault((k, key), []).append(row)
            k -= 1
    output = []
    for k, key in sorted(groups):
        members = sorted(groups[k, key], key=lambda r: (r["ts"], r["src"], r["seq"]))
        start = k * spec.slide_us
        keys = tuple(one_zero(members[0][name]) for name, _ in spec.keys)
        results = tuple(result(f, members, users or {}) for f in spec.functions)
        output.append((start, start + spec.range_us, *keys, *results))
    return output


def sort_key(value: Any) -> tuple[Any, ...]:
    """NULL first, then values, NaN last; -0.0 and 0.0 alike; strings by their bytes."""
    if value is None:
        return (0,)
    if isinstance(value, float):
        return (2,) if math.isnan(value) else (1, value + 0.0)
    return (1, value.encode() if isinstance(value, str) else value)


def one_zero(value: Any) -> Any:
    return value + 0.0 if isinstance(value, float) else value


def result(function: Function, rows: list[Row], users: Mapping[str, User]) -> Any:
    """One aggregate over the rows of one group, which come in the total order."""
    if function.kind == "user":
        return users[function.name]([tuple(r[a] for a in function.arguments) for r in rows])
    if function.kind == "count":
        return sum(all(r[a] is not None for a in function.arguments) for r in rows)
    values = [r[function.arguments[0]] for r in rows]
    if function.kind in ("first", "last"):
        return values[0 if function.kind == "first" else -1]
    present = [v for v in values if v is not None]
    if function.kind == "distinct":
        return len({sort_key(v) for v in present})
    if not present:
        return None
    return _OF_VALUES[function.kind](present, function)


def _sum(values: list[Any], function: Function) -> Any:
    if pa.types.is_floating(function.types[0]):
        return float_sum(values)
    if pa.types.is_decimal(function.types[0]):
        return _decimal(sum(map(Fraction, values)), function.result)
    return sum(values)


def _mean(values: list[Any], function: Function) -> Any:
    if pa.types.is_floating(function.types[0]):
        return float_sum(values) / len(values)
    if pa.types.is_decimal(function.types[0]):
        return _decimal(sum(map(Fraction, values)) / len(values), function.result)
    return float(sum(values)) / len(values)


def _decimal(exact: Fraction, type_: pa.DataType) -> Decimal:
    with localcontext() as context:
        context.prec = 200
        value = Decimal(exact.numerator) / Decimal(exact.denominator)
        return value.quantize(Decimal(1).scaleb(-type_.scale), rounding=ROUND_HALF_UP)


def float_sum(values: list[float]) -> float:
    return math.fsum(values) if all(map(math.isfinite, values)) else sum(values)


def _least(values: list[Any], function: Function) -> Any:
    return min(values, key=_signed)


def _greatest(values: list[Any], function: Function) -> Any:
    return max(values, key=_signed)


def _signed(value: Any) -> tuple[Any, ...]:
    sign = math.copysign(1.0, value) if isinstance(value, float) else 0.0
    return (*sort_key(value), sign if not (isinstance(value, float) and value) else 0.0)


def _variance(values: list[Any], function: Function) -> float | None:
    numbers = [float(v) for v in values]
    if len(numbers) < 2:
        return None
    if not all(map(math.isfinite, numbers)):
        return math.nan
    exact = [Fraction(v) for v in numbers]
    mean = sum(exact) / len(exact)
    return float(sum((v - mean) ** 2 for v in exact) / (len(exact) - 1))


def _deviation(values: list[Any], function: Function) -> float | None:
    variance = _variance(values, function)
    return None if variance is None else math.sqrt(variance)


def _quantile(values: list[Any], function: Function) -> float:
    numbers = sorted((float(v) + 0.0 for v in values), key=sort_key)
    place = (len(numbers) - 1) * function.parameters[0]
    low, high = math.floor(place), math.ceil(place)
    below, above = numbers[low], numbers[high]
    return below if below == above else (high - place) * below + (place - low) * above


_OF_VALUES: dict[str, Callable[[list[Any], Function], Any]] = {
    "sum": _sum,
    "mean": _mean,
    "min": _least,
    "max": _greatest,
    "var": _variance,
    "stddev": _deviation,
    "quantile": _quantile,
}
