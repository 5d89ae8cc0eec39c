"""A join that sheds: which tuples of its sides are kept, and what its pairs know of that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil

import pyarrow as pa
from sqlglot import exp

from tidegate.approx.priority import seed_of
from tidegate.approx.student import deviate
from tidegate.errors import QueryError
from tidegate.operate.join.concept import ConceptSieve, EveryKey, KeyRule, KeysWithPartners
from tidegate.operate.join.kind import LEFT, RIGHT
from tidegate.operate.join.spec import EQUAL, JoinSpec, PairInterval
from tidegate.operate.sieve import Sieve
from tidegate.plan.aggregate.shed import numbered
from tidegate.plan.physical import Prefix
from tidegate.query.clause.column import KEPT
from tidegate.query.clause.error import LEAST_ROWS, ErrorBound
from tidegate.query.clause.shed import Shed
from tidegate.query.join import DRAWN, SIGNS, Join
from tidegate.query.name import SideName, column, substitute

FEWEST = 2
"""How many tuples of each key are kept at least in a pane of a side, by concept."""

PANES = 4
"""Into how many panes the shorter window of the sides is divided. The first tuples of a key are a
pane before those they stand for, at most, so pairs that are less than the window less a pane apart
have one that stands for them."""

MEMORY = 4 * PANES
"""For how many panes the keys of a side are remembered: four windows of the shorter kind, or one of
its own, where that is longer."""

_SEEDS = (seed_of("shed", "left"), seed_of("shed", "right"))
"""One for each side: the sides may be of one stream, and must be thinned independently."""

_PARTNERS_FIRST = "keys that the other side does not have are shed first"
"""Tells checkpoints apart from those of a time when all keys were alike."""

_COLUMNS = ("lkept", "rkept")
_SIGNS = (("lsigns", seed_of("signs", "left")), ("rsigns", seed_of("signs", "right")))


class WholeSides:
    """What a join keeps of its sides: everything, unless a clause says otherwise."""

    together: str | None = None
    """Why the tuples of a key must be in one place, where they must."""
    refilters = True
    """Whether the tuples of a side that are kept depend on no condition on that side."""

    @property
    def lines(self) -> tuple[str, ...]:
        """What it means, for fingerprints and records."""
        return ()

    @property
    def names(self) -> dict[str, str]:
        """The columns that the join adds to its sides, as pairs have them."""
        return {}

    @property
    def types(self) -> dict[str, pa.DataType]:
        """The types of these."""
        added = self.columns(LEFT) | self.columns(RIGHT)
        return {flat: added[name] for flat, name in self.names.items()}

    def columns(self, side: int) -> dict[str, pa.DataType]:
        """What the join adds to the columns of a side."""
        return {}

    def over(self, expression: exp.Expression) -> exp.Expression:
        """An expression over pairs, in which `kept` is what it is made of."""
        return expression

    def check(self, intervals: Sequence[PairInterval]) -> None:
        """Refuse a join that has no key after all."""

    def sieve(self, spec: JoinSpec) -> ConceptSieve | None:
        """What the join itself keeps of its sides."""
        return None

    def sieved(self, prefixes: Sequence[Prefix], sides: Sequence[int]) -> tuple[Prefix, ...]:
        """The prefixes of the sides, with what they keep."""
        return tuple(prefixes)


@dataclass(frozen=True)
class UniformSides(WholeSides):
    """Prefixes keep a share of each side, and all pairs have one probability."""

    shed: Shed

    @property
    def lines(self) -> tuple[str, ...]:
        return (str(self.shed).lower(),)

    def over(self, expression: exp.Expression) -> exp.Expression:
        return substitute(expression, {KEPT: _number(repr(float(self.shed.rate**2)))})

    def check(self, intervals: Sequence[PairInterval]) -> None:
        if not any(i.kind == EQUAL for i in intervals):
            raise QueryError(
                self.shed.where,
                "needs an equality of both sides, of values that can be compared as they are",
                "none",
                "Cast both sides to one type, or leave the clause out.",
            )

    def sieved(self, prefixes: Sequence[Prefix], sides: Sequence[int]) -> tuple[Prefix, ...]:
        sieves = [Sieve(_SEEDS[side], float(self.shed.rate)) for side in sides]
        named = zip(numbered(prefixes), sieves, strict=True)
        return tuple(replace(prefix, sieve=sieve) for prefix, sieve in named)


@dataclass(frozen=True)
class ConceptSides(UniformSides):
    """The join keeps the first tuples of each key, and a share of the others.

    Which tuples of a key are first follows from all conditions before them.
    """

    bound: ErrorBound | None
    labels: tuple[str, str]
    pane_us: int
    together = "which tuples of a key are kept is decided where all of them are"
    refilters = False

    @property
    def lines(self) -> tuple[str, ...]:
        asked = _PARTNERS_FIRST if self.bound is None else str(self.bound).lower()
        return (*super().lines, asked)

    @property
    def names(self) -> dict[str, str]:
        return {
            SideName(self.labels[side], f"~{name}"): name
            for side in (LEFT, RIGHT)
            for name in self.columns(side)
        }

    def columns(self, side: int) -> dict[str, pa.DataType]:
        kept = {_COLUMNS[side]: pa.float64()}
        return kept if self.bound is None else kept | {_SIGNS[side][0]: pa.int64()}

    def over(self, expression: exp.Expression) -> exp.Expression:
        flats = {name: column(flat) for flat, name in self.names.items()}
        both = [flats[name] for name in _COLUMNS]
        drawn: dict[str, exp.Expression] = {KEPT: exp.Mul(this=both[0], expression=both[1])}
        if self.bound is not None:
            signs = [flats[name] for name, _ in _SIGNS]
            drawn |= {name: _chance(both, signs, sign) for sign, name in enumerate(DRAWN[1:])}
        return substitute(expression, drawn)

    def sieve(self, spec: JoinSpec) -> ConceptSieve:
        return ConceptSieve(
            equalities=spec.equalities,
            seeds=_SEEDS,
            kept=_COLUMNS,
            rate=float(self.shed.rate),
            fewest=self._fewest,
            pane_us=self.pane_us,
            reach=(self._reach(spec, LEFT), self._reach(spec, RIGHT)),
            rule=self._rule,
            signs=None if self.bound is None else _SIGNS,
        )

    def sieved(self, prefixes: Sequence[Prefix], sides: Sequence[int]) -> tuple[Prefix, ...]:
        return numbered(prefixes)

    @property
    def _rule(self) -> KeyRule:
        """Which keys are worth more. An error is promised of new keys too, so of every key."""
        return KeysWithPartners() if self.bound is None else EveryKey()

    def _reach(self, spec: JoinSpec, side: int) -> int:
        """For how many panes the keys of a side are remembered."""
        range_us = spec.side(side).extent.range_us
        assert range_us is not None, "windows of tuples shed pairs"
        return max(-(-range_us // self.pane_us), MEMORY)

    @property
    def _fewest(self) -> int:
        """How many first tuples of a key are kept: with a bound, so many that the error is kept.

        Of n tuples of a key, k of them certain and others with probability p, a count is off by
        sqrt((n - k) (1 - p) / p) / n, relatively, if all have as many partners: most for n = 2 k.
        So both sides together are off by at most sqrt((1 - p) / (2 p k)).
        """
        if self.bound is None:
            return FEWEST
        rate = float(self.shed.rate)
        width = float(deviate(1 - self.bound.confidence, SIGNS)) / self.bound.allowed.size
        return max(ceil(width**2 * (1 - rate) / (2 * rate)), LEAST_ROWS)


def kept_sides(join: Join) -> WholeSides:
    """What the clauses of a join have it keep."""
    if join.shed is None:
        return WholeSides()
    if not join.shed.by_concept:
        return UniformSides(join.shed)
    windows = (join.left_window, join.right_window)
    shortest = min(range_us for range_us, _ in (w.extent for w in windows) if range_us is not None)
    return ConceptSides(join.shed, join.bound, join.labels, max(shortest // PANES, 1))


def _chance(
    kept: Sequence[exp.Expression], signs: Sequence[exp.Expression], sign: int
) -> exp.Expression:
    """What both tuples of a pair have to do with chance, each with one of its signs."""
    parts = []
    for probability, bits in zip(kept, signs, strict=True):
        rest = exp.Sub(this=_number("1.0"), expression=probability.copy())
        root = exp.Sqrt(this=rest)
        bit = exp.BitwiseAnd(this=bits.copy(), expression=exp.Literal.number(1 << sign))
        unset = exp.EQ(this=exp.Paren(this=bit), expression=exp.Literal.number(0))
        parts.append(exp.If(this=unset, true=exp.Neg(this=root), false=root.copy()))
    return exp.Add(this=parts[0], expression=parts[1])


def _number(text: str) -> exp.Expression:
    return exp.cast(exp.Literal.string(text), "DOUBLE", dialect="spark")
