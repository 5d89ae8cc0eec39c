"""A join that sheds: which tuples of its sides are kept, and what its pairs know of that.

Uniformly, prefixes keep a share of each side, and all pairs have one probability. By concept the
join itself keeps tuples (`operate.join.concept`), and its sides have a column more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil

import pyarrow as pa
from sqlglot import exp

from tidegate.approx.priority import seed_of
from tidegate.approx.student import deviate
from tidegate.errors import QueryError
from tidegate.operate.join.concept import ConceptSieve
from tidegate.operate.join.spec import EQUAL, LEFT, RIGHT, Interval, JoinSpec
from tidegate.operate.sieve import Sieve
from tidegate.plan.physical import Prefix
from tidegate.plan.shed import numbered
from tidegate.query.join import DRAWN, SIGNS, Join
from tidegate.query.name import SideName, column, substitute
from tidegate.query.option import CONCEPT, KEPT, LEAST_ROWS, ErrorBound, Shed
from tidegate.query.window import Distance

FEWEST = 2
"""How many tuples of each key are kept at least in a pane of a side, by concept."""

PANES = 4
"""Into how many panes the shorter window of the sides is divided. The first tuples of a key are a
pane before those they stand for, at most, so pairs that are less than the window less a pane apart
have one that stands for them."""

_SEEDS = (seed_of("shed", "left"), seed_of("shed", "right"))
"""One for each side: the sides may be of one stream, and must be thinned independently."""

_COLUMNS = ("lkept", "rkept")
_SIGNS = (("lsigns", seed_of("signs", "left")), ("rsigns", seed_of("signs", "right")))


@dataclass(frozen=True)
class JoinShedding:
    """What a join drops of its sides; nothing where `shed` is None."""

    shed: Shed | None
    bound: ErrorBound | None
    labels: tuple[str, str]
    pane_us: int

    @staticmethod
    def of(join: Join) -> JoinShedding:
        windows = (join.left_window, join.right_window)
        shortest = min((w.range_us for w in windows if isinstance(w, Distance)), default=0)
        return JoinShedding(join.shed, join.bound, join.labels, max(shortest // PANES, 1))

    @property
    def names(self) -> dict[str, str]:
        """The columns that the join adds to its sides, as pairs have them."""
        return {
            SideName(self.labels[side], f"~{name}"): name
            for side in (LEFT, RIGHT)
            for name in self.columns(side)
        }

    @property
    def types(self) -> dict[str, pa.DataType]:
        """The types of these."""
        added = self.columns(LEFT) | self.columns(RIGHT)
        return {flat: added[name] for flat, name in self.names.items()}

    @property
    def together(self) -> str | None:
        """Why the tuples of a key must be in one place, where they must."""
        return (
            "which tuples of a key are kept is decided where all of them are"
            if self._by_concept
            else None
        )

    @property
    def refilters(self) -> bool:
        """Whether the tuples of a side that are kept depend on no condition on that side.

        By concept, which tuples of a key are first follows from all conditions before them.
        """
        return not self._by_concept

    @property
    def lines(self) -> list[str]:
        """What it means, for fingerprints and records."""
        given = (self.shed, self.bound)
        return [str(option).lower() for option in given if option is not None]

    def columns(self, side: int) -> dict[str, pa.DataType]:
        """What the join adds to the columns of a side."""
        kept = {_COLUMNS[side]: pa.float64()} if self._by_concept else {}
        return kept if self.bound is None else kept | {_SIGNS[side][0]: pa.int64()}

    def over(self, expression: exp.Expression) -> exp.Expression:
        """An expression over pairs, in which `kept` is what it is made of."""
        if self.shed is None:
            return expression
        if self._by_concept:
            flats = {name: column(flat) for flat, name in self.names.items()}
            left, right = (flats[name] for name in _COLUMNS)
            kept: exp.Expression = exp.Mul(this=left, expression=right)
            if self.bound is not None:
                signs = [flats[name] for name, _ in _SIGNS]
                chances = (_chance((left, right), signs, sign) for sign in range(SIGNS))
                return substitute(expression, dict(zip(DRAWN, (kept, *chances), strict=True)))
        else:
            kept = _number(repr(float(self.shed.rate**2)))
        return substitute(expression, {KEPT: kept})

    def check(self, intervals: Sequence[Interval]) -> None:
        """Refuse a join that has no key after all."""
        if self.shed is not None and not any(i.kind == EQUAL for i in intervals):
            raise QueryError(
                f"WITH {self.shed}",
                "needs an equality of both sides, of values that can be compared as they are",
                "none",
                "Cast both sides to one type, or leave the clause out.",
            )

    def sieve(self, spec: JoinSpec) -> ConceptSieve | None:
        """What the join keeps of its sides, where it does so by concept."""
        if self.shed is None or not self._by_concept:
            return None
        return ConceptSieve(
            equalities=spec.equalities,
            seeds=_SEEDS,
            kept=_COLUMNS,
            rate=float(self.shed.rate),
            fewest=self._fewest,
            pane_us=self.pane_us,
            signs=None if self.bound is None else _SIGNS,
        )

    def sieved(self, prefixes: Sequence[Prefix], sides: Sequence[int]) -> tuple[Prefix, ...]:
        """The prefixes of the sides; where tuples are kept uniformly, with what they keep."""
        if self.shed is None:
            return tuple(prefixes)
        if self._by_concept:
            return numbered(prefixes)
        rate = float(self.shed.rate)
        sieves = [Sieve(_SEEDS[side], rate) for side in sides]
        named = zip(numbered(prefixes), sieves, strict=True)
        return tuple(replace(prefix, sieve=sieve) for prefix, sieve in named)

    @property
    def _by_concept(self) -> bool:
        return self.shed is not None and self.shed.by == CONCEPT

    @property
    def _fewest(self) -> int:
        """How many first tuples of a key are kept: with a bound, so many that the error is kept.

        Of n tuples of a key, k of them certain and others with probability p, a count is off by
        sqrt((n - k) (1 - p) / p) / n, relatively, if all have as many partners: most for n = 2 k.
        So both sides together are off by at most sqrt((1 - p) / (2 p k)).
        """
        if self.shed is None or self.bound is None:
            return FEWEST
        rate = float(self.shed.rate)
        width = float(deviate(1 - self.bound.confidence, SIGNS)) / self.bound.error
        return max(ceil(width**2 * (1 - rate) / (2 * rate)), LEAST_ROWS)


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
