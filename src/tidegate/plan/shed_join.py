"""A join that sheds: which tuples of its sides are kept, and what its pairs know of that.

Uniformly, prefixes keep a share of each side, and all pairs have one probability. By concept the
join itself keeps tuples (`operate.join.concept`), and its sides have a column more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from tidegate.approx.priority import seed_of
from tidegate.errors import QueryError
from tidegate.operate.join.concept import ConceptSieve
from tidegate.operate.join.spec import EQUAL, LEFT, RIGHT, Interval, JoinSpec
from tidegate.operate.sieve import Sieve
from tidegate.plan.physical import Prefix
from tidegate.plan.shed import numbered
from tidegate.query.join import Join
from tidegate.query.name import SideName, column, substitute
from tidegate.query.option import CONCEPT, KEPT, Shed
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


@dataclass(frozen=True)
class JoinShedding:
    """What a join drops of its sides; nothing where `shed` is None."""

    shed: Shed | None
    labels: tuple[str, str]
    pane_us: int

    @staticmethod
    def of(join: Join) -> JoinShedding:
        windows = (join.left_window, join.right_window)
        shortest = min((w.range_us for w in windows if isinstance(w, Distance)), default=0)
        return JoinShedding(join.shed, join.labels, max(shortest // PANES, 1))

    @property
    def names(self) -> dict[str, str]:
        """The columns of the sides that say how probable their tuples were, as pairs have them."""
        if not self._by_concept:
            return {}
        return {self._flat(side): _COLUMNS[side] for side in (LEFT, RIGHT)}

    @property
    def together(self) -> str | None:
        """Why the tuples of a key must be in one place, where they must."""
        return (
            "the first tuples of a key are found where all of it are" if self._by_concept else None
        )

    @property
    def lines(self) -> list[str]:
        """What it means, for fingerprints and records."""
        return [] if self.shed is None else [str(self.shed).lower()]

    def columns(self, side: int) -> dict[str, pa.DataType]:
        """What the join adds to the columns of a side."""
        return {_COLUMNS[side]: pa.float64()} if self._by_concept else {}

    def over(self, expression: exp.Expression) -> exp.Expression:
        """An expression over pairs, in which `kept` is what it is made of."""
        if self.shed is None:
            return expression
        if self._by_concept:
            left, right = (column(self._flat(side)) for side in (LEFT, RIGHT))
            kept: exp.Expression = exp.Mul(this=left, expression=right)
        else:
            rate = exp.Literal.string(repr(float(self.shed.rate**2)))
            kept = exp.cast(rate, "DOUBLE", dialect="spark")
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
            fewest=FEWEST,
            pane_us=self.pane_us,
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

    def _flat(self, side: int) -> SideName:
        return SideName(self.labels[side], "~kept")
