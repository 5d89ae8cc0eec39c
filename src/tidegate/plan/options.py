"""How a user wants a query to be planned, apart from what it says; no choice changes the result."""

from __future__ import annotations

from dataclasses import dataclass, field

from tidegate.errors import OptionError
from tidegate.operate.aggregate.pane.fold_placement import FOLDINGS
from tidegate.plan.join.method import AUTO, JoinOptions
from tidegate.plan.physical import OPERATOR_SET
from tidegate.route.registry import DEFAULT as DEFAULT_PARTITIONER

DEFAULT_STRATEGY = OPERATOR_SET

MAX_WINDOWS = 1_000_000
"""In how many windows a tuple may be, unless more are asked for."""

PARTIALS = (AUTO, *FOLDINGS)
"""Who folds tuples into partials; auto asks the functions."""

__all__ = [
    "AUTO",
    "DEFAULT_PARTITIONER",
    "DEFAULT_STRATEGY",
    "MAX_WINDOWS",
    "PARTIALS",
    "JoinOptions",
    "PlanOptions",
]


@dataclass(frozen=True)
class PlanOptions:
    """What is asked of joins, how the query is cut into subqueries, who partitions keyed tuples.

    `max_windows` is in how many windows of time a tuple may be. `partial` says who folds the tuples
    of an aggregate into partials. Without a `partitioner` it is the default one, and with a latency
    target the one that the policy may change.
    """

    join: JoinOptions = field(default_factory=JoinOptions)
    strategy: str = DEFAULT_STRATEGY
    partitioner: str | None = None
    max_windows: int = MAX_WINDOWS
    partial: str = AUTO

    def __post_init__(self) -> None:
        if self.partial not in PARTIALS:
            raise OptionError("--partial", f"must be one of {', '.join(PARTIALS)}", self.partial)
        if self.max_windows < 1:
            raise OptionError(
                "--max-windows-per-tuple", "must be at least 1", f"{self.max_windows}"
            )
