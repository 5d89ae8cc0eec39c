"""What an error bound makes of an aggregate: its columns, and which aggregates can have one."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from tidegate.errors import QueryError
from tidegate.operate.aggregate.estimate import OWN
from tidegate.operate.aggregate.user import Aggregator
from tidegate.query.aggregate import AggregateCall
from tidegate.query.option import Balance, ErrorBound
from tidegate.query.window import TupleWindow, Window

EXACT = "exact"
"""The last column: whether all of a row is exact."""


def interval_names(name: str) -> tuple[str, str]:
    """The columns after an aggregate: where its exact value is, with the confidence asked for."""
    return f"{name}_low", f"{name}_high"


def check_balance(
    balance: Balance, window: Window, keys: Sequence[str], calls: Sequence[AggregateCall]
) -> None:
    """Refuse what has no groups to trim, and what no sample can answer."""
    if not keys:
        raise QueryError(
            f"WITH {balance}",
            "is for groups, of which the largest are trimmed",
            "an aggregate without GROUP BY",
            "Add GROUP BY, or write WITH ERROR in place of WITH BALANCE ERROR.",
        )
    check_bound(balance, window, calls)


def check_bound(
    bound: ErrorBound | Balance, window: Window, calls: Sequence[AggregateCall]
) -> None:
    """Refuse what no sample can answer within a bound."""
    where = f"WITH {bound}"
    if isinstance(window, TupleWindow):
        raise QueryError(
            where,
            "is for windows of time; those of tuples hold no more than they are given",
            f"[{window}]",
            "Write a window of time, [RANGE 1 MINUTE], or leave the clause out.",
        )
    if not calls:
        raise QueryError(
            where,
            "is for aggregates",
            "a query that has keys alone",
            "Add an aggregate, or leave the clause out.",
        )
    for call in calls:
        definition = call.definition
        if definition.unsampled is not None:
            raise QueryError(
                where,
                f"each aggregate must be one that a sample can answer: {definition.unsampled}",
                str(call),
                "Ask for it in a query of its own, without the clause.",
            )
        if definition.estimate == OWN:
            _check_own(where, call.parameters[0])


def _check_own(where: str, user: Aggregator) -> None:
    """A user's own aggregate says itself that a sample can stand for a window."""
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
