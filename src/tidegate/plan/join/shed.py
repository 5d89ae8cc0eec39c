"""Plans a join that sheds: which tuples of its sides are kept, and the columns that say so."""

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
from tidegate.query.name import SideName, column, substitute
from tidegate.query.node.join import DRAWN, SIGNS, Join

FEWEST = 2
"""By concept, at least so many tuples of each key are kept in each pane of a side."""

PANES = 4
"""The shorter window of the two sides is divided into so many panes. The first tuples of a key come
at most one pane before the tuples that they stand for. So every pair that is closer than the window
minus one pane has a pair that stands for it."""

MEMORY = 4 * PANES
"""The keys of a side are remembered for so many panes: four of the shorter windows, or the side's
own window if that is longer."""

_SEEDS = (seed_of("shed", "left"), seed_of("shed", "right"))
"""A seed for each side: both sides may read one stream and must be thinned independently."""

_PARTNERS_FIRST = "keys that the other side does not have are shed first"
"""A line of the fingerprint; it excludes checkpoints of versions that treated all keys alike."""

_COLUMNS = ("lkept", "rkept")
_SIGNS = (("lsigns", seed_of("signs", "left")), ("rsigns", seed_of("signs", "right")))


class WholeSides:
    """Decides what a join keeps of its sides; this one keeps everything."""

    together: str | None = None
    """Why all tuples of a key must be in one place; None if they need not."""
    refilters = True
    """Whether the choice of kept tuples ignores conditions on their side."""

    @property
    def lines(self) -> tuple[str, ...]:
        """The meaning as text, for fingerprints and records."""
        return ()

    @property
    def names(self) -> dict[str, str]:
        """The columns that the join adds to its sides, by their names in pairs."""
        return {}

    @property
    def types(self) -> dict[str, pa.DataType]:
        """The types of the added columns, by their names in pairs."""
        added = self.columns(LEFT) | self.columns(RIGHT)
        return {flat: added[name] for flat, name in self.names.items()}

    def columns(self, side: int) -> dict[str, pa.DataType]:
        """The columns that the join adds to a side, with their types."""
        return {}

    def over(self, expression: exp.Expression) -> exp.Expression:
        """An expression over pairs, with `kept` replaced by what it is computed from."""
        return expression

    def check(self, intervals: Sequence[PairInterval]) -> None:
        """Refuse a join whose equalities turn out not to be usable as keys."""

    def sieve(self, spec: JoinSpec) -> ConceptSieve | None:
        """The sieve of the join operator; None if only prefixes shed."""
        return None

    def sieved(self, prefixes: Sequence[Prefix], sides: Sequence[int]) -> tuple[Prefix, ...]:
        """The prefixes of both sides, with their sieves."""
        return tuple(prefixes)


@dataclass(frozen=True)
class UniformSides(WholeSides):
    """The prefixes keep a random share of each side; all pairs have the same probability."""

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
    """The join operator keeps the first tuples of each key, and a share of the others.

    A condition before the join changes which tuples of a key are first.
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
        """Which keys are preferred. An error bound holds for every key, new ones included, so with
        one all keys are equal."""
        return KeysWithPartners() if self.bound is None else EveryKey()

    def _reach(self, spec: JoinSpec, side: int) -> int:
        """The number of panes for which the keys of a side are remembered."""
        range_us = spec.side(side).extent.range_us
        assert range_us is not None, "windows of tuples shed pairs"
        return max(-(-range_us // self.pane_us), MEMORY)

    @property
    def _fewest(self) -> int:
        """How many first tuples of a key are kept; with a bound, enough to keep the error.

        Of n tuples of a key, k are kept for certain and the others with probability p. If all have
        the same number of partners, the relative error of a count is
        sqrt((n - k) (1 - p) / p) / n, which is largest for n = 2 k. So the error of both sides
        together is at most sqrt((1 - p) / (2 p k)).
        """
        if self.bound is None:
            return FEWEST
        rate = float(self.shed.rate)
        width = float(deviate(1 - self.bound.confidence, SIGNS)) / self.bound.allowed.size
        return max(ceil(width**2 * (1 - rate) / (2 * rate)), LEAST_ROWS)


def kept_sides(join: Join) -> WholeSides:
    """What a join keeps of its sides, by its clauses."""
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
    """s_i sqrt(1 - p_i) + s_j sqrt(1 - q_j) of a pair, for one sign (`clause/pairs.py`)."""
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
