"""Reads the conjuncts of a join's predicate as interval tests that an index can answer.

Conservative throughout: a pair for which the predicate is true passes every interval. Terms that
are moved across a comparison widen the bounds by the rounding this may cost; NaN, the greatest of
all values in Spark's order, becomes the infinity that keeps its pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from tidegate.expression.tree import Call, Expr, describe
from tidegate.operate.join.spec import BAND, BOUND, EQUAL, PairInterval
from tidegate.plan.join.disjunct import certain, parts_of
from tidegate.plan.join.double import Sum, double_of, is_steady, without_nan
from tidegate.plan.join.inequality import LEFT, RIGHT, InequalityBound, Sides, inequalities

_OTHER = {LEFT: RIGHT, RIGHT: LEFT}

Shown = Callable[[Expr], str]
"""How a bound condition is written for people."""


@dataclass(frozen=True)
class Conjunct:
    """A condition that every pair must meet, and how the query writes it."""

    expr: Expr
    text: str


def intervals_of(
    conjuncts: Sequence[Conjunct], left: Collection[str], shown: Shown = describe
) -> tuple[PairInterval, ...]:
    """The interval tests that follow from the conjuncts, in their order.

    `left` are the columns of the left side. Equalities come from a comparison of the two sides;
    a lower and an upper bound of one value become a band, wherever they are written. `shown` writes
    a condition that stands in all branches of a disjunction.
    """
    sides = Sides(left)
    found: list[PairInterval | list[InequalityBound]] = []
    for conjunct in sure(conjuncts, shown):
        equal = _equality(conjunct.expr, conjunct.text, sides)
        if equal is not None:
            found.append(equal)
            continue
        for inequality in inequalities(conjunct.expr, conjunct.text, sides):
            if reaches := inequality.reaches(sides):
                found.append(reaches)
    return _merged(found)


def sure(conjuncts: Sequence[Conjunct], shown: Shown) -> list[Conjunct]:
    """The conditions that hold for every pair that matches, each once."""
    found: dict[Expr, str] = {}
    for conjunct in conjuncts:
        parts = parts_of(conjunct.expr)
        for condition in certain(conjunct.expr):
            found.setdefault(condition, conjunct.text if condition in parts else shown(condition))
    return [Conjunct(expr, text) for expr, text in found.items()]


def _equality(expr: Expr, text: str, sides: Sides) -> PairInterval | None:
    if not isinstance(expr, Call) or expr.op not in ("eq", "null_safe_eq"):
        return None
    by_side = {sides.of(arg): arg for arg in expr.args}
    if set(by_side) != {LEFT, RIGHT} or not all(is_steady(arg) for arg in expr.args):
        return None
    values = by_side[LEFT], None, None, by_side[RIGHT], None, None
    return PairInterval(EQUAL, text, *values, null_safe=expr.op == "null_safe_eq")


def _merged(found: Sequence[PairInterval | list[InequalityBound]]) -> tuple[PairInterval, ...]:
    result: list[PairInterval] = []
    used: set[int] = set()
    for i, here in enumerate(found):
        if isinstance(here, PairInterval):
            result.append(here)
            continue
        if i in used:
            continue
        for j in range(i + 1, len(found)):
            there = found[j]
            band = None if isinstance(there, PairInterval) or j in used else _band(here, there)
            if band is not None:
                used.add(j)
                result.append(band)
                break
        else:
            result.append(_bound(here[0]))
    return tuple(result)


def _band(here: Sequence[InequalityBound], there: Sequence[InequalityBound]) -> PairInterval | None:
    """Two inequalities as one band, if they bound the same value from both ends."""
    best: PairInterval | None = None
    for one in here:
        for other in there:
            # As doubles: an integer between an integer and a double is compared as both.
            of_one = one.side == other.side and double_of(one.value) == double_of(other.value)
            if not of_one or one.upper == other.upper:
                continue
            upper, lower = (one, other) if one.upper else (other, one)
            if _has_floats(upper, lower) and upper.greedy & lower.greedy & one.side:
                continue  # a NaN of this value is in the band, whatever the other side is
            text = one.text if one.text == other.text else f"{one.text} AND {other.text}"
            band, full = _made(upper, lower, text)
            if full:
                return band
            best = best or band
    return best


def _made(upper: InequalityBound, lower: InequalityBound, text: str) -> tuple[PairInterval, bool]:
    """A band, and whether it is one as seen from either side."""
    side, other = upper.side, _OTHER[upper.side]
    floats = _has_floats(upper, lower)
    value = _value(upper.value, floats, 1)
    seen = {(other, "low"): lower.bound.low(), (other, "high"): upper.bound.high()}
    values = {side: value}
    full = upper.rest == lower.rest and len(upper.rest) == 1
    if full and floats and upper.greedy & lower.greedy & other:
        full = False
    if full:
        sign, single = upper.rest[0]
        values[other] = _value(single, floats, 1)
        pair = (lower, upper) if sign < 0 else (upper, lower)
        seen[side, "low"] = _turned(pair[0], sign).low()
        seen[side, "high"] = _turned(pair[1], sign).high()
    else:
        values[other] = seen[other, "high"]
        seen[side, "low"] = _value(upper.value, floats, -1)
    return _interval(BAND, text, values, seen), full


def _has_floats(upper: InequalityBound, lower: InequalityBound) -> bool:
    """Whether one of the ends may be NaN."""
    return upper.bound.floats or lower.bound.floats


def _turned(reach: InequalityBound, sign: int) -> Sum:
    """A bound of one value by another, said of the other: q from p = sign * q + constant."""
    value = double_of(reach.value)
    assert value is not None
    bound = reach.bound
    return Sum(((sign, value),), -sign * bound.constant, bound.slack, bound.floats)


def _bound(reach: InequalityBound) -> PairInterval:
    """One inequality alone: the same comparison, seen from either side."""
    side, other = reach.side, _OTHER[reach.side]
    bound = reach.bound.high() if reach.upper else reach.bound.low()
    value = _value(reach.value, reach.bound.floats, -1 if reach.upper else 1)
    ends = ("high", "low") if reach.upper else ("low", "high")
    seen = {(other, ends[0]): bound, (side, ends[1]): value}
    return _interval(BOUND, reach.text, {side: value, other: bound}, seen)


def _value(expr: Expr, floats: bool, sign: int) -> Expr:
    value = double_of(expr)
    assert value is not None
    return without_nan(value, sign) if floats else value


def _interval(
    kind: str, text: str, values: dict[int, Expr], seen: dict[tuple[int, str], Expr]
) -> PairInterval:
    return PairInterval(
        kind,
        text,
        left_value=values[LEFT],
        left_low=seen.get((LEFT, "low")),
        left_high=seen.get((LEFT, "high")),
        right_value=values[RIGHT],
        right_low=seen.get((RIGHT, "low")),
        right_high=seen.get((RIGHT, "high")),
    )
