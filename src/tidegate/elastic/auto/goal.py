"""What a user asks of `auto`: how late results may be, how far off, and with how many instances."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class LatencyGoal:
    """A target for the slowest tuple of a batch, from its arrival to the commit.

    `error` is the relative error that shedding may cause, None where nothing may be shed. `cost` is
    the most instances of all subqueries together, None for as many as can run at once.
    """

    latency_s: float
    error: float | None = None
    cost: int | None = None

    def within(self, limit: int | None) -> LatencyGoal:
        """With no more instances than a limit, where there is one."""
        if limit is None or (self.cost is not None and self.cost <= limit):
            return self
        return replace(self, cost=limit)
