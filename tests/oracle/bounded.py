"""Windows within an error bound row by row: each sample drawn from all tuples of its group.

What a sample says of all tuples is asked of `tidegate.approx`, for one window at a time; which
tuples are in it, and what becomes of them, is done plainly here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from functools import cache
from itertools import groupby, repeat
from typing import Any

import numpy as np

from tests.oracle.aggregate import groups_of
from tests.oracle.function import About, Row, User, result
from tests.oracle.sample import priority
from tidegate.approx.allot import congress
from tidegate.approx.bound import Interval, Kind, Sample
from tidegate.approx.decision import Windows, decide, decided, early_fail, hopeless, sizes_for
from tidegate.approx.replicate import PARTS, replicated, replicated_rows
from tidegate.operate.aggregate.bounded.answering import Answer, Answering
from tidegate.operate.aggregate.bounded.own import PART_ROWS
from tidegate.operate.aggregate.estimate import KEPT, MOMENTS, OWN, QUANTILES
from tidegate.operate.aggregate.pane import AggregateSpec

_ROUNDINGS = (ROUND_HALF_EVEN, ROUND_FLOOR, ROUND_CEILING)

Cell = tuple[Any, Any, Any, bool]
"""A value, the ends of its interval, and whether it is exact."""


@dataclass(frozen=True)
class Bounded:
    """Windows and keys, how aggregates are answered, and the seed of the sample."""

    spec: AggregateSpec
    rules: Answering
    seed: int
    users: Mapping[str, User]

    def drawn(self, members: Sequence[Row], size: int | None = None) -> list[Row]:
        """The sample of a group, or the beginning of it."""
        by_priority = sorted(members, key=lambda r: _priority(self.seed, r["src"], r["seq"]))
        return by_priority[: self.rules.size if size is None else min(size, self.rules.size)]


_priority = cache(priority)


def bounded(query: Bounded, rows: Sequence[Row]) -> list[tuple[Any, ...]]:
    """(start, end, keys..., by aggregate value, low, high, exact) of every window, in order."""
    output = []
    for _, group in groupby(groups_of(query.spec, rows), key=lambda g: g[1]):
        groups = list(group)
        members = [m for *_, m in groups]
        answers = [cells_of(query, a, members) for a in query.rules.answers]
        for place, (start, end, keys, _) in enumerate(groups):
            cells = [of[place] for of in answers]
            ends = [cell for c in cells for cell in c[:3]]
            output.append((start, end, *keys, *ends, all(c[3] for c in cells)))
    return output


def cells_of(query: Bounded, answer: Answer, groups: list[list[Row]]) -> list[Cell]:
    """One aggregate of the groups of a window."""
    return _WAYS[answer.way](query, answer, groups)


def exact_cells(query: Bounded, answer: Answer, groups: list[list[Row]]) -> list[Cell]:
    """The same without samples."""
    return _kept(query, answer, groups)


def _kept(query: Bounded, answer: Answer, groups: list[list[Row]]) -> list[Cell]:
    values = [result(answer.function, g, query.users) for g in groups]
    return [(value, value, value, True) for value in values]


def _quantile(query: Bounded, answer: Answer, groups: list[list[Row]]) -> list[Cell]:
    (column,), (fraction,) = answer.function.arguments, answer.function.parameters
    alpha = 1 - query.rules.rank_confidence
    found: list[Cell] = []
    for members in groups:
        drawn = query.drawn(members)
        value = result(answer.function, drawn, {})
        values = sorted(float(r[column]) for r in drawn if r[column] is not None)
        if len(drawn) == len(members) or not values:
            found.append((value, value, value, len(drawn) == len(members)))
            continue
        n, tuples = len(values), len(members)
        off = math.sqrt((1 - (n - 1) / tuples) * math.log(2 / alpha) / (2 * n))
        off += max(fraction, 1 - fraction) / tuples
        first, last = math.floor(n * (fraction - off)) - 1, math.ceil(n * (fraction + off)) - 1
        least = values[0] if (1 - fraction) ** n <= alpha / 2 else -math.inf
        most = values[-1] if fraction**n <= alpha / 2 else math.inf
        low = values[first] if first >= 0 else least
        found.append((value, low, values[last] if last < n else most, False))
    return found


def _moment(query: Bounded, answer: Answer, groups: list[list[Row]]) -> list[Cell]:
    kind, promise = Kind(answer.way), query.rules.promise
    sizes = _sizes(query, groups)
    first = _sample(query, answer, groups, np.minimum(sizes, promise.pilot))
    failed = early_fail(kind, first, sizes, promise, budget=query.rules.budget_rows)
    sample = _sample(query, answer, groups, sizes)
    decision = decide(kind, sample, promise, failed=failed)
    exact = _kept(query, answer, groups)
    if not decision.answered.all():
        return exact
    return _estimated(decision.interval, sample.whole, exact)


def _own(query: Bounded, answer: Answer, groups: list[list[Row]]) -> list[Cell]:
    promise, falls_back = query.rules.promise, answer.state is not None
    tuples = np.array([len(g) for g in groups])
    most = np.minimum(query.rules.mean_rows, np.minimum(tuples, query.rules.size))
    shared = query.rules.budget_rows is not None and falls_back
    if shared:
        most = np.minimum(most, congress(tuples, query.rules.budget_rows or 0))
    one = Windows.single(len(groups))

    def looked(sizes: Any) -> dict[str, Any]:
        values, parts = [], []
        for members, size in zip(groups, sizes.tolist(), strict=True):
            drawn = query.drawn(members, size)
            values.append(_value(query, answer, drawn))
            enough = size >= PARTS * PART_ROWS
            dealt = [drawn[i::PARTS] if enough else [] for i in range(PARTS)]
            parts += [_value(query, answer, part) for part in dealt]
        return {
            "values": np.array(values, np.float64),
            "of_parts": np.array(parts, np.float64),
            "rows": sizes,
            "tuples": tuples,
            "alpha": promise.alphas(one.groups(sizes < tuples))[0],
        }

    first = np.minimum(most, max(promise.pilot, PARTS * PART_ROWS))
    needed = replicated_rows(**looked(first), error=promise.error)
    sizes = most if shared else np.where(needed > 0, np.clip(needed, first, most), most)
    failed = hopeless(needed, most, first < tuples, one)
    if falls_back and failed.any():
        sizes = first
    interval, relied_on = replicated(**looked(sizes))
    whole = sizes >= tuples
    if not falls_back:
        low = np.where(relied_on, interval.low, -np.inf)
        high = np.where(relied_on, interval.high, np.inf)
        said = [
            _value(query, answer, query.drawn(g, n))
            for g, n in zip(groups, sizes.tolist(), strict=True)
        ]
        cells: list[Cell] = [(value, value, value, True) for value in said]
        return _estimated(Interval(interval.value, low, high), whole, cells)
    error = np.where(whole, 0.0, np.where(relied_on, interval.error, np.inf))
    decision = decided(interval, error, promise, one, failed)
    exact = _kept(query, answer, groups)
    return _estimated(interval, whole, exact) if decision.answered.all() else exact


def _value(query: Bounded, answer: Answer, rows: list[Row]) -> Any:
    return result(answer.function, rows, query.users) if rows else None


def _estimated(interval: Interval, whole: Any, exact: list[Cell]) -> list[Cell]:
    ends = zip(interval.value, interval.low, interval.high, strict=True)
    return [
        cell if all_there else (*map(_like, repeat(cell[0]), three, _ROUNDINGS), False)
        for three, all_there, cell in zip(ends, whole, exact, strict=True)
    ]


def _like(exact: Any, estimate: float, rounding: str) -> Any:
    """An estimate as a number of the type of an exact one: to the nearest, downwards, upwards."""
    if isinstance(exact, float):
        return About(float(estimate), 1e-9 * abs(estimate))
    places = exact.as_tuple().exponent if isinstance(exact, Decimal) else 0
    unit = Decimal(1).scaleb(int(places))
    return type(exact)(Decimal(float(estimate)).quantize(unit, rounding=rounding))


def _sizes(query: Bounded, groups: list[list[Row]]) -> Any:
    tuples = np.array([len(g) for g in groups])
    kept = np.minimum(tuples, query.rules.size)
    if query.rules.budget_rows is not None:
        return np.minimum(congress(tuples, query.rules.budget_rows), kept)
    first = np.full(len(groups), query.rules.promise.pilot)
    sizes = [first]
    for answer in query.rules.answers:
        if answer.way in MOMENTS:
            pilot = _sample(query, answer, groups, first)
            sizes.append(sizes_for(Kind(answer.way), pilot, query.rules.promise))
    return np.minimum(np.max(sizes, axis=0), np.minimum(kept, query.rules.mean_rows))


def _sample(query: Bounded, answer: Answer, groups: list[list[Row]], sizes: Any) -> Sample:
    (column,) = answer.function.arguments
    drawn = [
        (code, row[column])
        for code, (members, size) in enumerate(zip(groups, sizes.tolist(), strict=True))
        for row in query.drawn(members, size)
    ]
    values = np.array([0.0 if v is None else float(v) for _, v in drawn])
    return Sample.of(
        Kind(answer.way),
        np.array([len(g) for g in groups]),
        np.array([code for code, _ in drawn], np.int64),
        values,
        np.array([v is not None for _, v in drawn], np.bool_),
    )


_WAYS = {KEPT: _kept, QUANTILES: _quantile, OWN: _own, **dict.fromkeys(MOMENTS, _moment)}
