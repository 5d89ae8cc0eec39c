"""Keeps the subqueries of a run within the budget of its session, at the begin of each batch."""

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
"""Who asks, in the timeline, where nobody else has."""


class BudgetGuard:
    """Between the subqueries of a query, with instances each, and its part of the budget, a number.

    With `shared` instances those of all subqueries are the same.
    """

    def __init__(self, budget: QueryBudget, subqueries: int, *, shared: bool) -> None:
        self._budget = budget
        self._least = 1 if shared else subqueries
        self._shared = shared

    def enter(self, counts: Counts, claim: Claim, *, by: str | None, again: bool) -> None:
        """A run goes on with so many instances, which somebody may have asked for by an option.

        With `again` its first batch has to have as many.
        """
        first = self._total(counts)
        self._budget.enter(self._least, first, claim, needed=first if again else self._least)
        if by is not None:
            self._budget.check(first, by)

    def allow(self, request: Request, counts: Counts) -> None:
        """Refuse what there is no room for, where it was asked for by hand.

        What a policy has asked for is cut down when the batch begins.
        """
        total = self._total(counts)
        if not request.by.startswith("policy "):
            self._budget.check(total, str(request.change).partition(" ")[0])
        self._budget.reserve(total)

    def begin(self, taken: Mapping[str, Taken], at: float) -> dict[str, WaitingRequest]:
        """A batch begins: what is to be in the place of what was asked for where it is too much."""
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
        """Whether there are instances for the first batch."""
        return self._budget.admit()

    def _total(self, counts: Counts) -> int:
        return max(counts.values()) if self._shared else sum(counts.values())

    def _divided(self, counts: Counts, left: int) -> dict[str, int]:
        if self._shared:
            return dict.fromkeys(counts, left)
        parts = divide(list(counts.values()), [1] * len(counts), left)
        return dict(zip(counts, parts, strict=True))


def _cut(of: Taken, most: int, name: str, stands: str, at: float) -> WaitingRequest:
    """What was asked of a subquery with fewer instances, and why."""
    change: MappingChange = ScaleEvenly(most)
    if most == of.before.instances:
        change = Scale(most)  # with the mapping there is
    if of.asked is None:
        return WaitingRequest(Request(change, name, BUDGET, stands), at, time_of(utc_now()))
    before = of.asked.request
    why = f"{before.why[: MOST_WHY - len(stands) - 2]}; {stands}" if before.why else stands
    return replace(of.asked, request=Request(change, name, before.by, why))
