"""WITH SHED: drops some of the tuples on purpose and estimates results from the rest."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import pyarrow as pa

from tidegate.errors import QueryError
from tidegate.query.clause.clause import Clause, Placed, check_share
from tidegate.query.clause.column import KEPT
from tidegate.query.clause.error import ErrorBound
from tidegate.query.clause.pairs import join_below, refused, sheds_sides, thinned, weighted
from tidegate.query.clause.within import Within, sheds_or_bounds
from tidegate.query.grammar import PERCENT, SyntaxPart, WordValue
from tidegate.query.node.node import Aggregate, Node
from tidegate.query.window import Use

CONCEPT = "concept"
TOTAL = "concept total"
UNIFORM = "uniform"

TO = "to"
"""After UP: the share is the most that may be shed; how much is shed follows the backlog."""


@dataclass(frozen=True)
class Shed(Clause):
    """Drops this share of the tuples, chosen uniformly or by concept.

    By concept, every group stays represented; by concept total, exactly the share is kept, even if
    groups disappear. With `up` the share is the maximum, and nothing is shed without a backlog. The
    last column is the share of the group's tuples that were kept. If the aggregate is over the
    pairs of a join by equality, tuples of both sides of the join are dropped.
    """

    word: ClassVar = "SHED"
    method: ClassVar = "shed"
    parts: ClassVar = (
        SyntaxPart("up", WordValue(words=(TO,)), "UP"),
        SyntaxPart("share", PERCENT),
        SyntaxPart("by", WordValue(words=(CONCEPT, TOTAL, UNIFORM)), "BY"),
    )
    last: ClassVar = ((KEPT, pa.float64()),)
    sheds: ClassVar = True
    only_for: ClassVar = "is for aggregates over windows of time and for joins by equality"
    remedy: ClassVar = (
        "Write it after the SELECT that has the aggregate or the join, or leave it out."
    )

    share: float
    by: str = CONCEPT
    up: str | None = None

    def __post_init__(self) -> None:
        example = "WITH SHED 98 PERCENT, in Python .shed(0.98), or leave it out"
        check_share("WITH SHED", "the share", self.share, example)
        if self.by not in (CONCEPT, TOTAL, UNIFORM):
            raise QueryError(
                "WITH SHED", "BY must be CONCEPT, CONCEPT TOTAL or UNIFORM", str(self.by)
            )

    @staticmethod
    def called(share: float | None, by: str, up_to: float | None) -> Shed:
        """The clause for Python arguments: either the share or the most that may be shed."""
        if share is not None and up_to is None:
            return Shed(share, by)
        if up_to is not None and share is None:
            return Shed(up_to, by, TO)
        raise QueryError(
            "shed",
            "needs a share, or the most that may be shed, as up_to",
            "neither" if up_to is None else "both",
            "Write .shed(0.98), or .shed(up_to=0.98).",
        )

    @property
    def rate(self) -> Fraction:
        """The share that is kept, exactly: 1/50 for SHED 98 PERCENT. For UP TO, the smallest."""
        return 1 - Fraction(repr(float(self.share)))

    @property
    def first(self) -> Fraction:
        """The share that is kept until somebody changes it."""
        return self.rate if self.up is None else Fraction(1)

    @property
    def by_concept(self) -> bool:
        return self.by != UNIFORM

    def placed(self, node: Node) -> Placed | None:
        """Goes on an aggregate, or on a join whose pairs are not aggregated."""
        join = None if node.windowed else join_below(node)
        if join is None:
            return super().placed(node)
        found = refused(join)
        if found is not None:
            raise QueryError(
                self.where,
                f"needs {found[0]}",
                found[1],
                "Write it after an aggregate over the pairs, which are shed then, or leave it out.",
            )
        self._check_sides()
        return thinned(node, self), ()

    def _check_sides(self) -> None:
        """Raises for options that a join's sides lack: their keys have no windows."""
        if self.by == TOTAL or self.up is not None:
            raise QueryError(
                self.where,
                "sheds one share of both sides of a join, and keeps every key",
                "TOTAL" if self.by == TOTAL else "UP TO",
                f"Write WITH SHED {PERCENT.text(self.share)} BY CONCEPT.",
            )

    def meet(self, other: Clause, aggregate: Aggregate) -> None:
        if other.sheds:
            raise QueryError(
                self.where, "an aggregate sheds once", f"also {other}", "Leave one of them out."
            )
        if isinstance(other, ErrorBound) and sheds_sides(aggregate.without(other)):
            raise QueryError(
                self.where,
                "comes before WITH ERROR, over the pairs of a join",
                f"after {other}",
                "Write WITH SHED ... WITH ERROR ..., in Python .shed(...).within(...).",
            )
        if isinstance(other, Within):
            raise sheds_or_bounds(self.where, other)

    def check(self, aggregate: Aggregate) -> None:
        """Raises for windows and functions that a sample of the tuples cannot answer."""
        aggregate.window.check(
            Use.SHED,
            self.where,
            "Write a window of time, [RANGE 1 MINUTE], or leave the clause out.",
        )
        for _, call in aggregate.aggregates:
            if call.definition.unscaled is not None:
                raise QueryError(
                    self.where,
                    f"must be able to estimate each aggregate: {call.definition.unscaled}",
                    str(call),
                    "Ask for it in a query of its own, without the clause.",
                )

    def taken(self, aggregate: Aggregate) -> Node:
        """Over a join by equality, samples the sides if the aggregates can be estimated so."""
        if not sheds_sides(aggregate):
            return super().taken(aggregate)
        self._check_sides()
        return weighted(aggregate, self)
