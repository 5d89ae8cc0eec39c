"""Aggregate functions row by row over the tuples of one group: the twins of the kernels."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from datasketches import HLL_8, hll_sketch

from tidegate.operate.aggregate.function import Function
from tidegate.route.bucket import hash_of

Row = Mapping[str, Any]
Tuples = list[tuple[Any, ...]]
User = Callable[[Tuples], Any]


class About(float):
    """The exact value of something computed with floats, and how far off the engine may be."""

    within: float

    def __new__(cls, value: float, within: float) -> About:
        made = super().__new__(cls, value)
        made.within = within
        return made


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
    given = [tuple(r[a] for a in function.arguments) for r in rows]
    if function.kind in OF_TUPLES:
        return OF_TUPLES[function.kind](given, function)
    present = [v for (v,) in given if v is not None]
    if function.kind in OF_ANY:
        return OF_ANY[function.kind](present, function)
    return OF_SOME[function.kind](present, function) if present else None


def _count(tuples: Tuples, function: Function) -> int:
    return sum(None not in t for t in tuples)


def _first(tuples: Tuples, function: Function) -> Any:
    return tuples[0][0]


def _last(tuples: Tuples, function: Function) -> Any:
    return tuples[-1][0]


def _least_by(tuples: Tuples, function: Function) -> Any:
    """`min` and `max` give the first of equal ones."""
    keyed = [t for t in tuples if t[1] is not None]
    return min(keyed, key=lambda t: sort_key(t[1]))[0] if keyed else None


def _greatest_by(tuples: Tuples, function: Function) -> Any:
    keyed = [t for t in tuples if t[1] is not None]
    return max(keyed, key=lambda t: sort_key(t[1]))[0] if keyed else None


def _population(tuples: Tuples, function: Function) -> float | None:
    pairs = [(float(x), float(y)) for x, y in tuples if x is not None and y is not None]
    return _covariance(pairs, len(pairs))


def _sample(tuples: Tuples, function: Function) -> float | None:
    pairs = [(float(x), float(y)) for x, y in tuples if x is not None and y is not None]
    return _covariance(pairs, len(pairs) - 1)


def _covariance(pairs: list[tuple[float, float]], divisor: int) -> float | None:
    if divisor < 1:
        return None
    if not all(map(math.isfinite, (v for pair in pairs for v in pair))):
        return math.nan
    return nearest(_moments(pairs)[0] / divisor)


def _correlation(tuples: Tuples, function: Function) -> float | None:
    pairs = [(float(x), float(y)) for x, y in tuples if x is not None and y is not None]
    if len(pairs) < 2:
        return None
    if not all(map(math.isfinite, (v for pair in pairs for v in pair))):
        return math.nan
    xy, xx, yy = _moments(pairs)
    if not xx or not yy:
        return None
    with localcontext() as context:
        context.prec, context.Emin, context.Emax = 60, -(10**9), 10**9
        square = xy * xy / (xx * yy)
        root = (Decimal(square.numerator) / Decimal(square.denominator)).sqrt()
        value = float(root) if xy > 0 else -float(root)
    return About(value, 1e-15 * abs(value))


def _moments(pairs: list[tuple[float, float]]) -> tuple[Fraction, Fraction, Fraction]:
    """The exact sums of products of deviations from the means: xy, xx, yy."""
    xs, ys = ([Fraction(v) for v in column] for column in zip(*pairs, strict=True))
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    both = list(zip(xs, ys, strict=True))
    xy = sum((Fraction(a - x) * (b - y) for a, b in both), Fraction(0))
    xx = sum((Fraction(a - x) ** 2 for a, _ in both), Fraction(0))
    yy = sum((Fraction(b - y) ** 2 for _, b in both), Fraction(0))
    return xy, xx, yy


def _distinct(values: list[Any], function: Function) -> int:
    return len({sort_key(v) for v in values})


def _count_true(values: list[Any], function: Function) -> int:
    return values.count(True)


def _approximate(values: list[Any], function: Function) -> int:
    """The library's own sketch, one value after the other, and its estimate without an order."""
    lg_k = next(k for k in range(8, 22) if 1.04 / math.sqrt(2**k) <= function.parameters[0])
    sketch = hll_sketch(lg_k, HLL_8)
    for value in values:
        (word,) = hash_of([pa.array([value], function.types[0])]).view(np.int64).tolist()
        sketch.update(word)
    out_of_order = bytearray(sketch.serialize_updatable())
    out_of_order[5] |= 16
    return math.floor(hll_sketch.deserialize(bytes(out_of_order)).get_estimate() + 0.5)


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
    """The exact sum, rounded once; with numbers that are not finite as they add up."""
    if not all(map(math.isfinite, values)):
        return sum(v for v in values if not math.isfinite(v))
    try:
        return math.fsum(values) + 0.0
    except OverflowError:
        return nearest(sum(map(Fraction, values), Fraction(0)))


def nearest(exact: Fraction) -> float:
    """The nearest double, half to even; infinite beyond the largest, and one zero."""
    try:
        return float(exact) + 0.0
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


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
    return nearest(sum(((v - mean) ** 2 for v in exact), Fraction(0)) / (len(exact) - 1))


def _deviation(values: list[Any], function: Function) -> float | None:
    variance = _variance(values, function)
    return None if variance is None else math.sqrt(variance)


def _quantile(values: list[Any], function: Function) -> float:
    numbers = sorted((float(v) + 0.0 for v in values), key=sort_key)
    place = (len(numbers) - 1) * function.parameters[0]
    low, high = math.floor(place), math.ceil(place)
    below, above = numbers[low], numbers[high]
    return below if below == above else (high - place) * below + (place - low) * above


def _from_above(values: list[Any], function: Function) -> float:
    numbers = sorted((float(v) + 0.0 for v in values), key=sort_key, reverse=True)
    place = (len(numbers) - 1) * function.parameters[0]
    low, high = math.floor(place), math.ceil(place)
    first, second = numbers[low], numbers[high]
    return first if first == second else (high - place) * first + (place - low) * second


def _at_share(values: list[Any], share: float, descending: bool) -> Any:
    """The first value in order of which the share up to it, and itself, is at least this one."""
    ranked = sorted((one_zero(v) for v in values), key=sort_key, reverse=descending)
    return ranked[max(math.ceil(share * len(ranked)) - 1, 0)]


def _discrete(values: list[Any], function: Function) -> float:
    return float(_at_share(list(map(float, values)), function.parameters[0], descending=False))


def _discrete_from_above(values: list[Any], function: Function) -> float:
    return float(_at_share(list(map(float, values)), function.parameters[0], descending=True))


def _of_its_type(values: list[Any], function: Function) -> Any:
    return _at_share(values, function.parameters[0], descending=False)


def _mode(values: list[Any], function: Function) -> Any:
    """Values that occur equally often: the smallest, or the greatest where DESC asks for it."""
    times = Counter(sort_key(v) for v in values)
    most = max(times.values())
    tied = [one_zero(v) for v in values if times[sort_key(v)] == most]
    return (max if function.kind == "mode_desc" else min)(tied, key=sort_key)


def _set(values: list[Any], function: Function) -> list[Any]:
    found = {sort_key(v): one_zero(v) for v in values}
    return [found[key] for key in sorted(found)]


def _text_of_set(values: list[Any], function: Function) -> str:
    return str(function.parameters[0]).join(_set(values, function))


def _list(tuples: Tuples, function: Function) -> list[Any]:
    """Sorting is stable, so one pass for each key, the last one first, orders by all of them."""
    kept = [t for t in tuples if t[0] is not None]
    for at, way in reversed(list(enumerate(function.parameters[-1], start=1))):
        with_key = [t for t in kept if t[at] is not None]
        without = [t for t in kept if t[at] is None]
        # NaN is greater than any number, in both directions; equal keys keep their order.
        with_key.sort(key=lambda t, at=at: sort_key(t[at]), reverse=way.descending)  # type: ignore[misc]
        kept = [*without, *with_key] if way.nulls_first else [*with_key, *without]
    return [t[0] for t in kept]


def _text(tuples: Tuples, function: Function) -> str | None:
    found = _list(tuples, function)
    return str(function.parameters[0]).join(found) if found else None


def _last_by(tuples: Tuples, function: Function) -> Any:
    return _greatest_by(tuples[::-1], function)


def _all_true(values: list[Any], function: Function) -> bool:
    return all(values)


def _any_true(values: list[Any], function: Function) -> bool:
    return any(values)


OF_TUPLES: dict[str, Callable[[Tuples, Function], Any]] = {
    "count": _count,
    "first": _first,
    "last": _last,
    "min_by": _least_by,
    "max_by": _greatest_by,
    "last_by": _last_by,
    "array_agg": _list,
    "string_agg": _text,
    "corr": _correlation,
    "covar_samp": _sample,
    "covar_pop": _population,
}
"""Functions of whole argument tuples."""

OF_ANY: dict[str, Callable[[list[Any], Function], Any]] = {
    "distinct": _distinct,
    "count_if": _count_true,
    "collect_set": _set,
    "approx_count_distinct": _approximate,
}
"""Functions of the values that are not NULL, however few."""

OF_SOME: dict[str, Callable[[list[Any], Function], Any]] = {
    "sum": _sum,
    "mean": _mean,
    "min": _least,
    "max": _greatest,
    "var": _variance,
    "stddev": _deviation,
    "quantile": _quantile,
    "percentile_cont_desc": _from_above,
    "percentile_disc": _discrete,
    "percentile_disc_desc": _discrete_from_above,
    "approx_percentile": _of_its_type,
    "mode": _mode,
    "mode_desc": _mode,
    "string_set": _text_of_set,
    "bool_and": _all_true,
    "bool_or": _any_true,
}
"""Functions that are NULL where no value is left."""
