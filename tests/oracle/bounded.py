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
from tests.oracle.sample import priority, sample
from tidegate.approx.allot import congress
from tidegate.approx.bound import Interval, Kind, Sample
from tidegate.approx.decision import Windows, decide, decided, early_fail, hopeless, sizes_for
from tidegate.approx.error import combined
from tidegate.approx.moments import Moments
from tidegate.approx.replicate import PARTS, agrees, replicated, replicated_rows
from tidegate.operate.aggregate.bounded.answering import Answer, Answering
from tidegate.operate.aggregate.bounded.user_aggregate import PART_ROWS
from tidegate.operate.aggregate.estimate import (
    DRAWN_QUANTILES,
    DRAWN_VALUES,
    KEPT,
    MOMENTS,
    OWN,
    QUANTILES,
)
from tidegate.operate.aggregate.pane.pane import AggregateSpec

_ROUNDINGS = (ROUND_HALF_EVEN, ROUND_FLOOR, ROUND_CEILING)

Cell = tuple[Any, Any, Any, bool]
"""A value, the ends of its interval, and whether it is exact."""


@dataclass(frozen=True)
class Bounded:
    """Windows and keys, and how aggregates are answered."""

    spec: AggregateSpec
    rules: Answering
    users: Mapping[str, User]

    def seen(self, answer: Answer, members: Sequence[Row]) -> list[Row]:
        """The tuples that an aggregate sees: of which some argument is not NULL."""
        names = answer.function.arguments
        return [m for m in members if not names or any(m[name] is not None for name in names)]

    def most(self, answer: Answer) -> int | None:
        """How many sampled tuples of a group a quantile is computed from at most."""
        return None

    def drawn(self, answer: Answer, members: Sequence[Row], size: int | None = None) -> list[Row]:
        """The sample of the tuples of a group that an aggregate sees, or the beginning of it."""
        assert answer.sampled is not None
        (rule,) = answer.sampled.parameters
        sampling = getattr(rule, "sampling", rule)
        seen = self.seen(answer, members)
        tuples = [(_priority(sampling.seed, row["src"], row["seq"]), row) for row in seen]
        return [row for _, row in sample(tuples, sampling.k)][: sampling.most][:size]

    def crowded(self, groups: list[list[Row]]) -> bool:
        """Whether a window has more groups than the budget has rows."""
        return self.rules.budget_rows is not None and len(groups) > self.rules.budget_rows


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
    return _quantile_of(query, answer, groups, query.most(answer))


def _drawn_quantile(query: Bounded, answer: Answer, groups: list[list[Row]]) -> list[Cell]:
    rows = query.rules.quantile_rows(answer.function)
    total = sum(min(rows, len(query.seen(answer, members))) for members in groups)
    if query.crowded(groups) or total > (query.rules.budget_rows or 0):
        return _kept(query, answer, groups)
    return _quantile_of(query, answer, groups, rows)


def _drawn_value(query: Bounded, answer: Answer, groups: list[list[Row]]) -> list[Cell]:
    """Within an error of values: the farther end is at most so far from the value."""
    exact = _kept(query, answer, groups)
    if query.crowded(groups):
        return exact
    tuples = np.array([len(query.seen(answer, members)) for members in groups])
    shares = congress(tuples, query.rules.budget_rows or 0).tolist()
    found = [
        _quantile_of(query, answer, [members], size)[0]
        for members, size in zip(groups, shares, strict=True)
    ]
    errors = [0.0 if whole else max(v - low, high - v) for v, low, high, whole in found]
    metric = query.rules.promise.metric
    error = combined(metric, np.array(errors), np.zeros(len(errors), np.int64), 1)[0]
    return found if error <= query.rules.error else exact


def _quantile_of(
    query: Bounded, answer: Answer, groups: list[list[Row]], rows: int | None
) -> list[Cell]:
    (column,), (fraction,) = answer.function.arguments, answer.function.parameters
    alpha = 1 - query.rules.rank_confidence
    found: list[Cell] = []
    for members in groups:
        drawn = query.drawn(answer, members, rows)
        value = result(answer.function, drawn, {})
        values = sorted(float(r[column]) for r in drawn)
        n, tuples = len(values), len(query.seen(answer, members))
        if n == tuples:
            found.append((value, value, value, True))
            continue
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
    sizes = _sizes(query, answer, groups)
    first = _sample(query, answer, groups, np.minimum(sizes, promise.pilot))
    failed = early_fail(kind, first, sizes, promise, budget=query.rules.budget_rows)
    sample = _sample(query, answer, groups, sizes)
    decision = decide(kind, sample, promise, failed=failed)
    exact = _kept(query, answer, groups)
    if not decision.answered.all():
        return exact
    return _estimated(decision.interval, sample.whole, exact)


def _own(query: Bounded, answer: Answer, groups: list[list[Row]]) -> list[Cell]:
    promise, falls_back = query.rules.promise, answer.falls_back
    if falls_back and query.crowded(groups):
        return _kept(query, answer, groups)
    tuples = np.array([len(query.seen(answer, g)) for g in groups])
    most = np.minimum(query.rules.mean_rows, tuples)
    shared = query.rules.budget_rows is not None and falls_back
    if shared:
        most = np.minimum(most, congress(tuples, query.rules.budget_rows or 0))
    one = Windows.single(len(groups))

    def looked(sizes: Any) -> dict[str, Any]:
        values, parts = [], []
        for members, size in zip(groups, sizes.tolist(), strict=True):
            drawn = query.drawn(answer, members, size)
            empty = not query.seen(answer, members)
            values.append(_value(query, answer, members if empty else drawn))
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
    needed = replicated_rows(**looked(first), allowed=promise.allowed)
    sizes = most if shared else np.where(needed > 0, np.clip(needed, first, most), most)
    failed = hopeless(needed, most, first < tuples, one)
    if falls_back and failed.any():
        sizes = first
    interval, relied_on = replicated(**looked(sizes))
    whole = sizes >= tuples
    relied_on = relied_on & (_agrees(query, answer, groups, sizes) | whole)
    if not falls_back:
        low = np.where(relied_on, interval.low, -np.inf)
        high = np.where(relied_on, interval.high, np.inf)
        said = [
            _value(query, answer, query.drawn(answer, g, n) if n else g)
            for g, n in zip(groups, sizes.tolist(), strict=True)
        ]
        cells: list[Cell] = [(value, value, value, True) for value in said]
        return _estimated(Interval(interval.value, low, high), whole, cells)
    error = np.where(whole, 0.0, np.where(relied_on, promise.allowed.of(interval), np.inf))
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


def _agrees(query: Bounded, answer: Answer, groups: list[list[Row]], sizes: Any) -> Any:
    """Groups whose samples have nearly the mean that each numeric argument has."""
    found = np.ones(len(groups), np.bool_)
    for name, mean in zip(answer.function.arguments, answer.means, strict=True):
        if mean is None:
            continue
        for i, (members, size) in enumerate(zip(groups, sizes.tolist(), strict=True)):
            there = [float(m[name]) for m in members if m[name] is not None]
            drawn = query.drawn(answer, members, size)
            taken = np.array([float(r[name]) for r in drawn if r[name] is not None])
            known = math.fsum(there) / len(there) if there else math.nan
            tuples = np.array([len(query.seen(answer, members))])
            own = Moments.of(np.zeros(len(taken), np.int64), 1, taken)
            near = agrees(
                own, np.array([known]), sizes[i : i + 1], tuples, query.rules.promise.allowed
            )
            found[i] &= near[0]
    return found


def _sizes(query: Bounded, answer: Answer, groups: list[list[Row]]) -> Any:
    tuples = np.array([len(query.seen(answer, g)) for g in groups])
    kept = np.array([len(query.drawn(answer, g)) for g in groups])
    if query.rules.budget_rows is not None:
        return np.minimum(congress(tuples, query.rules.budget_rows), kept)
    first = np.full(len(groups), query.rules.promise.pilot)
    pilot = _sample(query, answer, groups, first)
    needed = sizes_for(Kind(answer.way), pilot, query.rules.promise)
    return np.minimum(np.maximum(first, needed), np.minimum(kept, query.rules.mean_rows))


def _sample(query: Bounded, answer: Answer, groups: list[list[Row]], sizes: Any) -> Sample:
    (column,) = answer.function.arguments
    drawn = [
        (code, row[column])
        for code, (members, size) in enumerate(zip(groups, sizes.tolist(), strict=True))
        for row in query.drawn(answer, members, size)
    ]
    return Sample.of(
        np.array([len(query.seen(answer, g)) for g in groups]),
        np.array([code for code, _ in drawn], np.int64),
        np.array([float(v) for _, v in drawn]),
    )


_WAYS = {
    KEPT: _kept,
    QUANTILES: _quantile,
    DRAWN_QUANTILES: _drawn_quantile,
    DRAWN_VALUES: _drawn_value,
    OWN: _own,
    **dict.fromkeys(MOMENTS, _moment),
}
