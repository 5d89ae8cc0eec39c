"""WITH PARTITIONER: the partitioner for an aggregate, instead of the run's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tidegate.errors import QueryError
from tidegate.query.clause.clause import Clause
from tidegate.query.grammar import NameValue, SyntaxPart
from tidegate.query.node.node import Aggregate
from tidegate.route.registry import partitioner_of


@dataclass(frozen=True)
class PartitionedBy(Clause):
    """A partitioner by name, with its parameters."""

    word: ClassVar = "PARTITIONER"
    parts: ClassVar = (
        SyntaxPart(
            "partitioner",
            NameValue("expected a partitioner, as WITH PARTITIONER cam or 'cam?d=3'"),
        ),
    )

    partitioner: str

    def __post_init__(self) -> None:
        partitioner_of(self.partitioner, "WITH PARTITIONER")

    @property
    def shown(self) -> str:
        return f"partitioner {self.partitioner}"

    def meet(self, other: Clause, aggregate: Aggregate) -> None:
        if isinstance(other, PartitionedBy) and other != self:
            raise QueryError(
                self.where,
                "an aggregate has one partitioner",
                f"also {other.partitioner}",
                "Leave one of them out.",
            )
