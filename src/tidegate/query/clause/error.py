"""WITH ERROR: answers within an error, from samples where that is less work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tidegate.approx.error import Metric
from tidegate.errors import QueryError
from tidegate.operate.aggregate.estimate import OWN
from tidegate.query.clause.clause import Placed, check_share
from tidegate.query.clause.pairs import bounded_pairs, pairs_below
from tidegate.query.clause.within import Within
from tidegate.query.grammar import PERCENT, RowsValue, SyntaxPart, WordValue, listed
from tidegate.query.node import Aggregate, Node

METRICS = tuple(metric.value for metric in Metric)
"""How the errors of the groups of a window become one."""

LEAST_ROWS = 30
"""Of a budget: fewer values say too little of how far they lie apart."""


@dataclass(frozen=True)
class ErrorBound(Within):
    """Answers differ from the exact ones by at most `error` (relative) in this share of windows.

    `budget_rows` is how many sampled tuples of a window are in memory, over all of its groups and
    aggregates; None leaves that to the windows. `metric` is how the errors of the groups of a
    window become one.
    """

    word: ClassVar = "ERROR"
    method: ClassVar = "within"
    parts: ClassVar = (
        SyntaxPart("error", PERCENT),
        SyntaxPart("confidence", PERCENT, "CONFIDENCE"),
        SyntaxPart("budget_rows", RowsValue(), "BUDGET"),
        SyntaxPart("metric", WordValue(words=METRICS), "BY", quiet=True),
    )

    error: float
    confidence: float = 0.95
    budget_rows: int | None = None
    metric: str = Metric.MAX.value

    def __post_init__(self) -> None:
        where = "WITH ERROR"
        check_share(where, "the error", self.error, "ERROR 10 PERCENT, in Python error=0.1")
        confidence = "CONFIDENCE 95 PERCENT, in Python confidence=0.95"
        check_share(where, "the confidence", self.confidence, confidence)
        rows = self.budget_rows
        if rows is not None and (isinstance(rows, bool) or not isinstance(rows, int)):
            raise QueryError(
                where,
                "the budget must be a whole number of rows",
                repr(rows),
                "Write for example BUDGET 1000 ROWS, in Python budget=1000.",
            )
        if rows is not None and rows < LEAST_ROWS:
            raise QueryError(
                where,
                f"the budget must be at least {LEAST_ROWS} rows",
                str(rows),
                "Write a greater one, or leave BUDGET out: windows then take what they need.",
            )
        if self.metric not in METRICS:
            requirement = f"the metric of groups must be {listed(METRICS)}"
            raise QueryError(where, requirement, repr(self.metric))

    def check(self, aggregate: Aggregate) -> None:
        super().check(aggregate)
        if self.budget_rows is None or not aggregate.keys:
            return
        for _, call in aggregate.aggregates:
            if call.definition.estimate == OWN and not call.parameters[0].exact_fallback:
                name = type(call.parameters[0]).__qualname__
                raise QueryError(
                    self.where,
                    f"a budget needs exact answers to fall back on where a window has more groups "
                    f"than the budget has rows, and aggregate {name} keeps no more than samples",
                    f"BUDGET {self.budget_rows} ROWS, GROUP BY, exact_fallback = False",
                    f"Leave BUDGET out, or write exact_fallback = True in the class {name}.",
                )

    def placed(self, node: Node) -> Placed | None:
        """Over the pairs of a join that sheds, the estimates get intervals."""
        pairs = pairs_below(node)
        if pairs is None:
            return super().placed(node)
        return bounded_pairs(pairs, self), frozenset(name for name, _ in pairs.asked.aggregates)
