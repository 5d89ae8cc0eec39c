"""WITH ERROR: answers within an error, from samples where that saves work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sqlglot import exp

from tidegate.approx.error import Metric
from tidegate.approx.error_scale import Absolute, Relative
from tidegate.errors import QueryError
from tidegate.operate.aggregate.estimate import OWN
from tidegate.query.clause.clause import Placed, check_share
from tidegate.query.clause.pairs import bounded_pairs, pairs_below
from tidegate.query.clause.within import Within
from tidegate.query.grammar import (
    PERCENT,
    RowsValue,
    SyntaxPart,
    SyntaxReader,
    SyntaxValue,
    WordValue,
    listed,
)
from tidegate.query.node.node import Aggregate, Node


class ErrorValue(SyntaxValue):
    """`10 PERCENT` is the share 0.1; `0.5 ABSOLUTE` is an error in the unit of the answer."""

    def parse(self, reader: SyntaxReader, after: str) -> exp.Expr:
        number = reader.read_count("expected a number and PERCENT")
        unit = reader.read_word(
            (PERCENT.unit, _ABSOLUTE), f"expected {PERCENT.unit} or {_ABSOLUTE}"
        )
        return exp.var(f"{number.sql()} {unit}")

    def read(self, node: exp.Expr, where: str) -> float | Absolute:
        number, unit = node.name.split()
        if unit == _ABSOLUTE:
            return Absolute(float(number))
        return PERCENT.read(exp.Literal.number(number), where)

    def text(self, value: float | Absolute) -> str:
        if isinstance(value, Absolute):
            return f"{value.size!r} {_ABSOLUTE}"
        return PERCENT.text(value)


_ABSOLUTE = "ABSOLUTE"

METRICS = tuple(metric.value for metric in Metric)
"""How the errors of a window's groups become one."""

LEAST_ROWS = 30
"""The smallest budget: fewer values say too little about their spread."""


@dataclass(frozen=True)
class ErrorBound(Within):
    """Answers differ from the exact ones by at most `error` in the share `confidence` of windows.

    A number is relative to the answer, or to the ranks for quantiles; `Absolute` is in the answer's
    unit. `budget_rows` limits the sampled tuples of a window in memory, over all its groups and
    aggregates; None leaves that to the windows. `metric` says how the errors of a window's groups
    become one.
    """

    word: ClassVar = "ERROR"
    method: ClassVar = "within"
    parts: ClassVar = (
        SyntaxPart("error", ErrorValue()),
        SyntaxPart("confidence", PERCENT, "CONFIDENCE"),
        SyntaxPart("budget_rows", RowsValue(), "BUDGET"),
        SyntaxPart("metric", WordValue(words=METRICS), "BY", quiet=True),
    )

    error: float | Absolute
    confidence: float = 0.95
    budget_rows: int | None = None
    metric: str = Metric.MAX.value

    def __post_init__(self) -> None:
        where = "WITH ERROR"
        if isinstance(self.error, Absolute):
            _check_size(where, self.error.size)
        else:
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

    @staticmethod
    def called(
        error: float | None, absolute: float | None, confidence: float, budget: int | None, by: str
    ) -> ErrorBound:
        """The clause for Python arguments: either a relative or an absolute error."""
        if error is not None and absolute is None:
            return ErrorBound(error, confidence, budget, by)
        if absolute is not None and error is None:
            return ErrorBound(Absolute(absolute), confidence, budget, by)
        raise QueryError(
            "within",
            "needs a relative error, or an absolute one",
            "neither" if error is None else "both",
            "Write .within(error=0.1), or .within(absolute=0.5).",
        )

    @property
    def allowed(self) -> Relative | Absolute:
        """The error with its scale."""
        return self.error if isinstance(self.error, Absolute) else Relative(self.error)

    def check(self, aggregate: Aggregate) -> None:
        super().check(aggregate)
        if isinstance(self.error, Absolute):
            self._check_fallback(
                aggregate, "an absolute error", "Write a relative one, ERROR 10 PERCENT, or"
            )
        if self.budget_rows is not None and aggregate.keys:
            self._check_fallback(
                aggregate,
                "a budget that groups share, which may be more than it has rows,",
                "Leave BUDGET out, or",
            )

    def _check_fallback(self, aggregate: Aggregate, what: str, remedy: str) -> None:
        """Raises for an option that needs exact answers if an aggregate keeps only samples."""
        for _, call in aggregate.aggregates:
            if call.definition.estimate == OWN and not call.parameters[0].exact_fallback:
                name = type(call.parameters[0]).__qualname__
                raise QueryError(
                    self.where,
                    f"{what} needs exact answers to fall back on, and aggregate {name} keeps no "
                    "more than samples",
                    "exact_fallback = False",
                    f"{remedy} write exact_fallback = True in the class {name}.",
                )

    def placed(self, node: Node) -> Placed | None:
        """Over the pairs of a shedding join, adds intervals to the estimates."""
        pairs = pairs_below(node)
        if pairs is None:
            return super().placed(node)
        if isinstance(self.error, Absolute):
            raise QueryError(
                self.where,
                "over a join that sheds an error must be relative, because it says how many tuples "
                "of a key are kept",
                str(self),
                "Write for example WITH ERROR 10 PERCENT.",
            )
        return bounded_pairs(pairs, self), frozenset(name for name, _ in pairs.asked.aggregates)


def _check_size(where: str, size: object) -> None:
    if isinstance(size, bool) or not isinstance(size, int | float) or not 0 < size < float("inf"):
        raise QueryError(
            where,
            "an absolute error must be a number above 0",
            repr(size),
            "Write for example ERROR 0.5 ABSOLUTE, in Python absolute=0.5.",
        )
