"""WITH BALANCE: the largest groups of uneven windows are answered from a sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tidegate.errors import QueryError
from tidegate.query.clause.clause import check_share
from tidegate.query.clause.within import Within
from tidegate.query.grammar import PERCENT, SyntaxPart
from tidegate.query.node import Aggregate


@dataclass(frozen=True)
class Balance(Within):
    """Trim groups of the fullest buckets, each row within `error` in this share of cases."""

    word: ClassVar = "BALANCE"
    method: ClassVar = "balance"
    parts: ClassVar = (
        SyntaxPart("error", PERCENT, "ERROR", required=True),
        SyntaxPart("confidence", PERCENT, "CONFIDENCE"),
    )

    error: float
    confidence: float = 0.95

    def __post_init__(self) -> None:
        example = "BALANCE ERROR 10 PERCENT, in Python .balance(error=0.1)"
        check_share("WITH BALANCE", "the error", self.error, example)
        example = "CONFIDENCE 95 PERCENT, in Python confidence=0.95"
        check_share("WITH BALANCE", "the confidence", self.confidence, example)

    def check(self, aggregate: Aggregate) -> None:
        """Refuse what has no groups to trim, and what no sample can answer."""
        if not aggregate.keys:
            raise QueryError(
                self.where,
                "is for groups, of which the largest are trimmed",
                "an aggregate without GROUP BY",
                "Add GROUP BY, or write WITH ERROR in place of WITH BALANCE ERROR.",
            )
        super().check(aggregate)
