"""Tells how many instances a query needs, as its policy says or as its requests show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidegate.elastic.policy import Decision
    from tidegate.model.observation import Observation

LAPSE_BATCHES, LAPSE_S = 10, 30.0
"""What a policy got less of than it asked for counts for so long, and so many batches, after it."""


@dataclass(frozen=True)
class AskedInstances:
    """How many instances a policy would have; pure, its time is that of the batches it has seen.

    A policy that says what it `wanted` is taken at its word. Another one that asked for more than
    it got asks again while it needs them; when it has not for a while, it wants what it has.
    """

    instances: int = 0
    batches: int = 0
    seconds: float = 0.0

    def after(self, seen: Sequence[Observation], decision: Decision) -> AskedInstances:
        """After a batch and what was decided about it."""
        if decision.wanted is not None:
            return AskedInstances(decision.wanted)
        counts = {one.subquery: one.mapping.instances for one in seen}
        has = sum(counts.values())
        for request in decision.requests:
            for one in seen:
                if request.subquery in (None, one.subquery):
                    asked = getattr(request.change, "instances", None)
                    counts[one.subquery] = asked or counts[one.subquery]
        asks = sum(counts.values())
        if decision.requests and asks != has:
            return AskedInstances(asks)
        batches, seconds = self.batches + 1, self.seconds + seen[0].period_s
        if self.instances > has and (batches < LAPSE_BATCHES or seconds < LAPSE_S):
            return AskedInstances(self.instances, batches, seconds)
        return AskedInstances(has)
