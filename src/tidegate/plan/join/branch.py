"""Makes the branches of a join's disjunctions, among which the method is chosen.

One index cannot find the pairs of `a.k = b.k OR a.k = b.j`, but each branch has one of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import pyarrow as pa

from tidegate.expression.tree import Call, Expr, Literal, is_total
from tidegate.operate.join.spec import EQUAL, PairInterval
from tidegate.plan.join.conjunct import Conjunct, Shown, intervals_of, sure
from tidegate.plan.join.disjunct import Way, parts_of, ways_of
from tidegate.plan.join.inequality import LEFT, RIGHT, Sides

_BOOL = pa.bool_()
_TRUE = Literal(True, _BOOL)
_NULL = Literal(None, _BOOL)


@dataclass(frozen=True)
class PredicateBranch:
    """One way in which a disjunction can be true: intervals that its pairs pass.

    `gates` are conditions on one side alone, as equalities of the two: they leave out the tuples
    for which the branch cannot be true.
    """

    text: str
    intervals: tuple[PairInterval, ...]
    gates: tuple[PairInterval, ...]


@dataclass(frozen=True)
class Disjunction:
    """A condition that every pair must meet, by one of its branches."""

    text: str
    branches: tuple[PredicateBranch, ...]


def disjunctions_of(
    conjuncts: Sequence[Conjunct], left: Collection[str], shown: Shown
) -> tuple[Disjunction, ...]:
    """The conditions that can be true in several ways, or in one that stands behind a guard."""
    found = []
    common = sure(conjuncts, shown)
    for conjunct in conjuncts:
        for part in parts_of(conjunct.expr):
            ways = ways_of(part)
            known = {c.expr for c in common}
            if ways and not any(set(way) <= known for way in ways):
                branches = tuple(_branch(way, common, left, shown) for way in ways)
                found.append(Disjunction(conjunct.text, branches))
    return tuple(found)


def _branch(
    way: Way, common: Sequence[Conjunct], left: Collection[str], shown: Shown
) -> PredicateBranch:
    own = [Conjunct(expr, shown(expr)) for expr in way]
    sides = Sides(left)
    gates = [_gate(c, sides.of(c.expr)) for c in own if _is_gate(c.expr, sides)]
    text = " AND ".join(c.text for c in own) or "TRUE"
    return PredicateBranch(text, intervals_of([*common, *own], left, shown), tuple(gates))


def _is_gate(expr: Expr, sides: Sides) -> bool:
    return is_total(expr) and sides.of(expr) in (LEFT, RIGHT)


def _gate(conjunct: Conjunct, side: int) -> PairInterval:
    """TRUE or NULL on the side of the condition, TRUE on the other."""
    value = Call("case", (conjunct.expr, _TRUE, _NULL), _BOOL)
    left, right = (value, _TRUE) if side == LEFT else (_TRUE, value)
    return PairInterval(EQUAL, conjunct.text, left, None, None, right, None, None)
