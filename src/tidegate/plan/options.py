"""How a user wants a query to be planned, apart from what it says; no choice changes the result."""

from __future__ import annotations

from dataclasses import dataclass, field

from tidegate.errors import OptionError
from tidegate.plan.method import JoinOptions
from tidegate.plan.physical import OPERATOR_SET, STRATEGIES
from tidegate.route.registry import DEFAULT as DEFAULT_PARTITIONER
from tidegate.route.registry import partitioner_of


@dataclass(frozen=True)
class PlanOptions:
    """What is asked of joins, how the query is cut into subqueries, who partitions keyed tuples."""

    join: JoinOptions = field(default_factory=JoinOptions)
    strategy: str = OPERATOR_SET
    partitioner: str = DEFAULT_PARTITIONER

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            raise OptionError(
                "--strategy", f"must be one of {', '.join(STRATEGIES)}", self.strategy
            )
        partitioner_of(self.partitioner)
