"""How a user wants a query to be planned, apart from what it says; no choice changes the result."""

from __future__ import annotations

from dataclasses import dataclass, field

from tidegate.plan.method import AUTO, JoinOptions
from tidegate.plan.physical import OPERATOR_SET
from tidegate.route.registry import DEFAULT as DEFAULT_PARTITIONER

DEFAULT_STRATEGY = OPERATOR_SET

__all__ = ["AUTO", "DEFAULT_PARTITIONER", "DEFAULT_STRATEGY", "JoinOptions", "PlanOptions"]


@dataclass(frozen=True)
class PlanOptions:
    """What is asked of joins, how the query is cut into subqueries, who partitions keyed tuples."""

    join: JoinOptions = field(default_factory=JoinOptions)
    strategy: str = DEFAULT_STRATEGY
    partitioner: str = DEFAULT_PARTITIONER
