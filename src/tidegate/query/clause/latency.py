"""WITH LATENCY: a target for the delay of results, which nothing keeps yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tidegate.duration import duration_text
from tidegate.errors import NO_WAY, QueryError, UnavailableError
from tidegate.query.clause.clause import Clause
from tidegate.query.grammar import DurationValue, SyntaxPart
from tidegate.query.node import Node


@dataclass(frozen=True)
class LatencyTarget(Clause):
    """Results should follow their tuples within this time; remedies are taken to keep it."""

    word: ClassVar = "LATENCY"
    parts: ClassVar = (SyntaxPart("target_us", DurationValue()),)

    target_us: int

    def __post_init__(self) -> None:
        if self.target_us <= 0:
            raise QueryError(
                "WITH LATENCY",
                "the target must be longer than zero",
                duration_text(self.target_us),
            )

    def put(self, node: Node) -> Node:
        raise UnavailableError(self.where, "is not available yet", None, NO_WAY)
