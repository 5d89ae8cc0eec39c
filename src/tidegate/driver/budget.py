"""Keeps the instances of a run within the budget of its session, batch by batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tidegate.clock import utc_now
from tidegate.elastic.budget.budget import QueryBudget
from tidegate.elastic.budget.claim import Claim
from tidegate.elastic.budget.ledger import divide
from tidegate.elastic.request import MOST_WHY, MappingChange, Request, Scale, ScaleEvenly
from tidegate.elastic.switchboard import Counts, Taken, WaitingRequest
from tidegate.state.epoch import time_of

BUDGET = "budget"
"""The asker in the timeline of a switch that only the budget caused."""


class BudgetGuard:
    """Translates between the instances of each subquery and the query's one share of the budget.

    With `shared`, all subqueries run on the same instances, which count once.
    """

    def __init__(self, budget: QueryBudget, subqueries: int, *, shared: bool) -> None:
        self._budget = budget
        self._least = 1 if shared else subqueries
        self._shared = shared

    def enter(self, counts: Counts, claim: Claim, *, by: str | None, again: bool) -> None:
        """Claim the instances with which a run starts; `by` names the option that asked for them.

        With `again` the first batch repeats one and needs exactly as many.
        """
        first = self._total(counts)
        self._budget.enter(self._least, first, claim, needed=first if again else self._least)
        if by is not None:
            self._budget.check(first, by)

    def allow(self, request: Request, counts: Counts) -> None:
        """Reserve the instances of a request; refuse a user's request that the budget cannot hold.

        A policy's request is cut down when the batch begins instead.
        """
        total = self._total(counts)
        if not request.by.startswith("policy "):
            self._budget.check(total, str(request.change).partition(" ")[0])
        self._budget.reserve(total)

    def begin(self, taken: Mapping[str, Taken], at: float) -> dict[str, WaitingRequest]:
        """Begin a batch; return smaller requests for the subqueries that ask for too much."""
        counts = {name: of.mapping.instances for name, of in taken.items()}
        total = self._total(counts)
        left = self._budget.begin(total)
        if left >= total:
            return {}
        stands, found = self._budget.stands(total, left), {}
        for name, most in self._divided(counts, left).items():
            if most < counts[name]:
                found[name] = _cut(taken[name], most, name, stands, at)
        return found

    def end(self) -> None:
        self._budget.end()

    def leave(self) -> None:
        self._budget.leave()

    def admits(self) -> bool:
        """Whether the budget has instances for the first batch."""
        return self._budget.admit()

    def _total(self, counts: Counts) -> int:
        return max(counts.values()) if self._shared else sum(counts.values())

    def _divided(self, counts: Counts, left: int) -> dict[str, int]:
        if self._shared:
            return dict.fromkeys(counts, left)
        parts = divide(list(counts.values()), [1] * len(counts), left)
        return dict(zip(counts, parts, strict=True))


def _cut(of: Taken, most: int, name: str, stands: str, at: float) -> WaitingRequest:
    """The request for a subquery, cut down to `most` instances, with the reason added."""
    change: MappingChange = ScaleEvenly(most)
    if most == of.before.instances:
        change = Scale(most)  # keeps the current mapping
    if of.asked is None:
        return WaitingRequest(Request(change, name, BUDGET, stands), at, time_of(utc_now()))
    before = of.asked.request
    why = f"{before.why[: MOST_WHY - len(stands) - 2]}; {stands}" if before.why else stands
    return replace(of.asked, request=Request(change, name, before.by, why))
