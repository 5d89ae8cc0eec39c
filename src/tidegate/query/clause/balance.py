"""WITH BALANCE: answers the largest groups of uneven windows from a sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tidegate.approx.trim import TrimThresholds
from tidegate.errors import QueryError
from tidegate.operate.aggregate.estimate import MOMENTS, OWN, QUANTILES
from tidegate.query.clause.clause import check_share
from tidegate.query.clause.within import Within
from tidegate.query.grammar import PERCENT, RowsValue, SyntaxPart, WordValue, listed
from tidegate.query.node.node import Aggregate

COSTLY, ALL = "costly", "all"
TRIMMED = {COSTLY: (OWN,), ALL: (OWN, QUANTILES, *MOMENTS)}
"""The kinds of estimates that are trimmed, by the value of TRIM.

Aggregates other than users' own cost little per tuple. Holding their tuples for a later sample
would cost more than trimming saves."""


@dataclass(frozen=True)
class Balance(Within):
    """Samples groups of full buckets; each row is within `error` with probability `confidence`.

    A window is trimmed only if that saves at least the share `saving` of its tuples. Groups with
    fewer than `cold_rows` tuples are exact; None stands for the mean group of each window. `trim`
    says which aggregates are trimmed, a key of `TRIMMED`.
    """

    word: ClassVar = "BALANCE"
    method: ClassVar = "balance"
    parts: ClassVar = (
        SyntaxPart("error", PERCENT, "ERROR", required=True),
        SyntaxPart("confidence", PERCENT, "CONFIDENCE"),
        SyntaxPart("saving", PERCENT, "SAVING", quiet=True),
        SyntaxPart("cold_rows", RowsValue(), "COLD"),
        SyntaxPart("trim", WordValue(words=tuple(TRIMMED)), "TRIM", quiet=True),
    )

    error: float
    confidence: float = 0.95
    saving: float = TrimThresholds.saving
    cold_rows: int | None = TrimThresholds.cold_rows
    trim: str = COSTLY

    def __post_init__(self) -> None:
        example = "BALANCE ERROR 10 PERCENT, in Python .balance(error=0.1)"
        check_share("WITH BALANCE", "the error", self.error, example)
        example = "CONFIDENCE 95 PERCENT, in Python confidence=0.95"
        check_share("WITH BALANCE", "the confidence", self.confidence, example)
        example = "SAVING 15 PERCENT, in Python saving=0.15"
        check_share("WITH BALANCE", "the saving", self.saving, example)
        rows = self.cold_rows
        if rows is not None and (isinstance(rows, bool) or not isinstance(rows, int) or rows < 1):
            raise QueryError(
                "WITH BALANCE",
                "COLD must be a whole number of rows, 1 or more",
                repr(rows),
                "Write for example COLD 1000 ROWS, in Python cold=1000.",
            )

        if self.trim not in TRIMMED:
            words = tuple(word.upper() for word in TRIMMED)
            raise QueryError(
                "WITH BALANCE",
                f"TRIM must be {listed(words)}",
                repr(self.trim),
                "Write for example TRIM ALL, in Python trim='all'.",
            )

    def check(self, aggregate: Aggregate) -> None:
        """Raises for aggregates without groups, and for those that no sample can answer."""
        if not aggregate.keys:
            raise QueryError(
                self.where,
                "is for groups, of which the largest are trimmed",
                "an aggregate without GROUP BY",
                "Add GROUP BY, or write WITH ERROR in place of WITH BALANCE ERROR.",
            )
        super().check(aggregate)
