"""The base of WITH ERROR and WITH BALANCE: results from a sample, each with an interval."""

from __future__ import annotations

from typing import ClassVar

import pyarrow as pa

from tidegate.errors import QueryError
from tidegate.operate.aggregate.estimate import OWN
from tidegate.operate.aggregate.user import Aggregator
from tidegate.query.clause.clause import Clause
from tidegate.query.clause.column import ENDS, EXACT
from tidegate.query.node.node import Aggregate
from tidegate.query.window import Use


class Within(Clause):
    """Adds a lower and an upper bound after each aggregate, and last whether the row is exact."""

    beside: ClassVar = ENDS
    last: ClassVar = ((EXACT, pa.bool_()),)

    def meet(self, other: Clause, aggregate: Aggregate) -> None:
        if isinstance(other, Within):
            raise QueryError(
                self.where,
                "an aggregate has one error bound",
                f"also {other}",
                "Leave one of them out.",
            )
        if other.sheds:
            raise sheds_or_bounds(self.where, other)

    def check(self, aggregate: Aggregate) -> None:
        """Raises if no sample can answer the aggregate within a bound."""
        aggregate.window.check(
            Use.BOUND,
            self.where,
            "Write a window of time, [RANGE 1 MINUTE], or leave the clause out.",
        )
        if not aggregate.aggregates:
            raise QueryError(
                self.where,
                "is for aggregates",
                "a query that has keys alone",
                "Add an aggregate, or leave the clause out.",
            )
        for _, call in aggregate.aggregates:
            definition = call.definition
            if definition.unsampled is not None:
                raise QueryError(
                    self.where,
                    f"each aggregate must be one that a sample can answer: {definition.unsampled}",
                    str(call),
                    "Ask for it in a query of its own, without the clause.",
                )
            if definition.estimate == OWN:
                _check_own(self.where, call.parameters[0])


def sheds_or_bounds(where: str, other: Clause) -> QueryError:
    """The error for an aggregate with both kinds of clause."""
    return QueryError(
        where,
        "an aggregate sheds or has an error bound, because no bound holds for what is shed",
        f"also {other}",
        "Leave one of them out.",
    )


def _check_own(where: str, user: Aggregator) -> None:
    """Raises if a user's own aggregate does not declare that a sample can represent a window."""
    name, result = type(user).__qualname__, getattr(user, "result", None)
    if not user.mean_like:
        raise QueryError(
            where,
            f"needs to know that a sample gives nearly the result of aggregate {name}, as for a "
            "mean; of a sum it would not",
            "mean_like = False",
            f"Write mean_like = True in the class {name}, or leave the clause out.",
        )
    if result is not None and not (pa.types.is_floating(result) or pa.types.is_integer(result)):
        raise QueryError(
            where,
            f"needs a number as the result of aggregate {name}",
            str(result),
            "Leave the clause out, or return a number.",
        )
