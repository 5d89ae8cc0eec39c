"""WITH LATENCY: a target for the delay of results, for the policy `auto`; ERROR adds `kept`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tidegate.calendar.duration import Duration, duration_text, duration_us
from tidegate.errors import QueryError
from tidegate.query.aim import Aim
from tidegate.query.clause.clause import Clause, check_share
from tidegate.query.clause.shed import CONCEPT, TO, Shed
from tidegate.query.grammar import PERCENT, DurationValue, InstancesValue, SyntaxPart
from tidegate.query.node.node import Node

MOST_SHED = 0.95
"""The largest share that a query with an error allowance may shed."""


@dataclass(frozen=True)
class LatencyTarget(Clause):
    """Results should follow their tuples within this time; the policy `auto` scales to reach it.

    With `error`, a query that can shed does so by concept, up to MOST_SHED, as long as the error
    stays below; one that cannot shed stays exact. `cost` is the largest number of instances.
    """

    word: ClassVar = "LATENCY"
    method: ClassVar = "latency"
    example: ClassVar = '.latency("2 seconds", error=0.1, cost=8)'
    whole: ClassVar = True
    parts: ClassVar = (
        SyntaxPart("target_us", DurationValue()),
        SyntaxPart("error", PERCENT, "ERROR"),
        SyntaxPart("cost", InstancesValue(), "COST"),
    )

    target_us: int
    error: float | None = None
    cost: int | None = None

    def __post_init__(self) -> None:
        where = "WITH LATENCY"
        if self.target_us <= 0:
            got = duration_text(self.target_us)
            raise QueryError(where, "the target must be longer than zero", got)
        if self.error is not None:
            example = "ERROR 10 PERCENT, in Python error=0.1, or leave it out"
            check_share(where, "the error", self.error, example)
        if self.cost is not None and (isinstance(self.cost, bool) or not self.cost >= 1):
            raise QueryError(where, "the cost must be at least 1 instance", str(self.cost))

    @staticmethod
    def called(
        target: Duration, error: float | None = None, cost: int | None = None
    ) -> LatencyTarget:
        """The clause for Python; the target is a text, a number of seconds or a timedelta."""
        return LatencyTarget(duration_us(target, "latency"), error, cost)

    def put(self, node: Node) -> Node:
        if isinstance(node, Aim):
            raise QueryError(
                self.where, "a query has one WITH LATENCY", "two", "Leave one of them out."
            )
        child = node if self.error is None else _shedding(node)
        return Aim(child, self.target_us, self.error, self.cost)


def _shedding(node: Node) -> Node:
    """The query with an aggregate that may shed; unchanged if it cannot, or sheds already."""
    try:
        return Shed(MOST_SHED, CONCEPT, TO).put(node)
    except QueryError:
        return node
