"""The as-of join as a logical node: each left tuple with the right tuple nearest to it in time.

`>=` and `>` look back, to the latest right tuple of the key that is not later (`>`: earlier). `<=`
and `<` look ahead, to the earliest that is not earlier (`<`: later). Of several right tuples at
that instant the last in the total order counts. A row has the time of its left tuple.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from sqlglot import exp

from tidegate.calendar.duration import duration_text
from tidegate.calendar.microsecond import LAST_US
from tidegate.errors import QueryError
from tidegate.query.binder import UnknownKernel, bind
from tidegate.query.check import key_type, types_of
from tidegate.query.name import EVENT_TIME, SideName, canonical, expression_text
from tidegate.query.node.stream_pair import SIDES, Paired

if TYPE_CHECKING:
    from tidegate.query.node.node import Node

BACKWARD = (">=", ">")
FORWARD = ("<=", "<")


@dataclass(frozen=True, eq=False)
class AsOf(Paired):
    """Left tuples with their right partner; without one, NULLs if `keep`, else no row.

    `equalities` define the key, each with one side on either hand; without any, all tuples have one
    key. Right tuples further away than `tolerance_us` do not count.
    """

    left: Node
    right: Node
    comparison: str
    equalities: tuple[exp.Expression, ...] = ()
    tolerance_us: int | None = None
    keep: bool = False
    labels: tuple[str, str] = SIDES
    shared: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.check_labels()
        if self.comparison not in (*BACKWARD, *FORWARD):
            raise QueryError("ASOF JOIN", "must compare by >=, >, <= or <", self.comparison)
        if self.tolerance_us is None and self.comparison in FORWARD:
            raise QueryError(
                "ASOF JOIN",
                f"{self.comparison} waits for a later tuple, so it needs a tolerance",
                "none",
                f"Write {self.labels[1]} [RANGE 5 SECONDS], in Python tolerance='5 seconds': how "
                "long to wait.",
            )
        if self.tolerance_us is not None and not 0 <= self.tolerance_us <= LAST_US:
            far = duration_text(self.tolerance_us)
            raise QueryError("ASOF JOIN", "the tolerance must be from 0 to 10,000 years", far)
        for label, child in zip(self.labels, self.children, strict=True):
            if child.own_time:
                raise QueryError(
                    "ASOF JOIN",
                    "needs rows that are decided at their own time",
                    f"{label}, whose rows are decided later",
                    "Write the as-of join first, and what looks ahead over its result.",
                )
        written = tuple(canonical(e, self.names, "ON") for e in self.equalities)
        object.__setattr__(self, "equalities", tuple(map(self._sides_of, written)))
        with suppress(UnknownKernel):
            types = types_of(self)
            for equality in self.equalities:
                bind(equality, types, "ON")
                for hand in (equality.this, equality.expression):
                    key_type(bind(hand, types, "ON").type, expression_text(hand), "ON")

    def _sides_of(self, condition: exp.Expression) -> exp.EQ:
        """An equality with the left side on the left; raises for anything else."""
        hands = (condition.this, condition.expression) if isinstance(condition, exp.EQ) else ()
        sides = [set(self.side_names(side)) for side in (0, 1)]
        used = [{c.name for c in hand.find_all(exp.Column)} for hand in hands]
        for first, second in ((0, 1), (1, 0)):
            if hands and all(used) and used[first] <= sides[0] and used[second] <= sides[1]:
                return exp.EQ(this=hands[first].copy(), expression=hands[second].copy())
        left, right = self.labels
        raise QueryError(
            "ON",
            "an as-of join takes equalities of its two sides only, joined by AND",
            expression_text(condition),
            f"Write for example {left}.k = {right}.k; filter a side in a subquery: (SELECT * FROM "
            f"... WHERE ...) AS {right}.",
        )

    @cached_property
    def own_time(self) -> bool:
        return not self.looks_back

    @property
    def reach_us(self) -> int:
        return 0 if self.looks_back else self.tolerance_us or 0

    @property
    def looks_back(self) -> bool:
        return self.comparison in BACKWARD

    @property
    def event_names(self) -> frozenset[str]:
        own = () if self.left.windowed or not self.looks_back else self.left.event_names
        return frozenset({EVENT_TIME, *(SideName(self.labels[0], n) for n in own)})

    @property
    def summary(self) -> str:
        left, right = self.labels
        far = ""
        if self.tolerance_us is not None:
            far = f" [RANGE {duration_text(self.tolerance_us)}]"
        on = "".join(f" and {expression_text(e)}" for e in self.equalities)
        join = "as-of left join" if self.keep else "as-of join"
        return f"{join} {left} and {right}{far} on {left}.ts {self.comparison} {right}.ts{on}"

    @property
    def kind(self) -> str:
        """The kind of join in words. The state is the same for both kinds."""
        return f"as-of {'left ' if self.keep else ''}join by {self.comparison}"
