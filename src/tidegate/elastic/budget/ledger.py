"""Divides a budget of instances among the queries of a session; pure: no clock, no Spark.

`divide` makes the worst ratio of what a query wants to what it gets as small as any division can.
What a query wants holds its target with hardly any room, so that ratio is the load of a query that
has too few instances: the smallest worst ratio is the smallest worst backlog.

Why two queries do not oscillate. What is granted depends on what is wanted alone, not on who has
what, so it stays where demands stay. A query that has more than it was granted gives back what
others were granted, and no more, when its next batch begins; what others were granted is not taken
in the meantime. So after a step in what one query wants each other query changes once at most, and
that query once for each that gives back and once more (tests/elastic/budget/test_ledger.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from tidegate.elastic.budget.claim import BY_POLICY, Claim

QueryNumber = int
"""Which query of the session, in the order in which they began."""


def divide(wanted: Sequence[int], least: Sequence[int], most: int) -> list[int]:
    """To each of several as many as it wants, or where that is too much, its part of `most`.

    Nobody gets less than `least`, which all have room for. One more goes to who wants the most
    times what it has, the earlier of two, until nothing is left: the largest of these ratios is as
    small as it can be. Who wants one more never gets fewer, and the others never more.
    """
    wanted = [max(pair) for pair in zip(wanted, least, strict=True)]
    if sum(wanted) <= most:
        return wanted
    counts = list(least)
    for _ in range(most - sum(counts)):
        ratios = [
            (wants / count, -place) for place, (wants, count) in enumerate(zip(wanted, counts))
        ]
        counts[-max(ratios)[1]] += 1
    return counts


def cut_text(wanted: int, left: int) -> str:
    """What to say of a query that has fewer instances than it would have."""
    return f"wanted {wanted}, the budget leaves {left}"


@dataclass(frozen=True)
class BudgetHolder:
    """One query: what it wants, and what it has.

    It keeps `least` whatever others want. `wanted` is what it would have without a budget.
    `running` are the instances of the batch that runs, 0 between batches, and `following` those
    that the next batch may begin with. Its `claim` says what of them nobody takes.
    """

    least: int
    wanted: int
    running: int = 0
    following: int = 0
    claim: Claim = BY_POLICY

    @property
    def held(self) -> int:
        return max(self.running, self.following)

    @property
    def sure(self) -> int:
        """How many instances nobody takes from it."""
        return self.claim.sure(self.least, self.wanted)

    def wanting(self, wanted: int) -> BudgetHolder:
        """The same with another want, never below what it cannot do without."""
        return replace(self, wanted=max(wanted, self.least))


@dataclass(frozen=True)
class BudgetLedger:
    """All queries of a session; `held` together is never more than `most`.

    A query has `joined`, was `admitted`, and then its batches have `begun` and `ended` until it has
    `left`. Grows with the queries that run.
    """

    most: int
    holders: Mapping[QueryNumber, BudgetHolder] = field(default_factory=dict)

    @property
    def held(self) -> int:
        return sum(one.held for one in self.holders.values())

    @cached_property
    def grants(self) -> Mapping[QueryNumber, int]:
        """What each query is to have; it depends on what they want alone."""
        every = self.holders.values()
        counts = divide([one.wanted for one in every], [one.sure for one in every], self.most)
        return dict(zip(self.holders, counts, strict=True))

    def limit(self, number: QueryNumber) -> int:
        """The most that a query may have now: what nobody else holds, and nobody else was granted.

        It keeps what it holds of what it was granted, until those who hold too much give back.
        """
        own = min(self.holders[number].held, self.grants[number])
        others = (n for n in self.holders if n != number)
        return max(own, self.most - sum(max(self.holders[n].held, self.grants[n]) for n in others))

    def room(self, number: QueryNumber) -> int:
        """How many instances others cannot be without; of these a query can be sure."""
        return self.most - sum(one.sure for n, one in self.holders.items() if n != number)

    def joined(self, number: QueryNumber, holder: BudgetHolder) -> BudgetLedger:
        """With one more query, for which there is room."""
        return self._with(number, holder)

    def left(self, number: QueryNumber) -> BudgetLedger:
        """Without a query."""
        return replace(self, holders={n: o for n, o in self.holders.items() if n != number})

    def admitted(self, number: QueryNumber, first: int, needed: int) -> BudgetLedger:
        """With instances for the first batch of a query, at most `first`; as it was where there are
        fewer than `needed` to be had."""
        limit = self.limit(number)
        return self if limit < needed else self.reserved(number, min(first, limit))

    def wanting(self, number: QueryNumber, wanted: int) -> BudgetLedger:
        """After the policy of a query has said what it wants."""
        one = self.holders[number]
        return self._with(number, one.wanting(one.claim.after_said(one.wanted, wanted)))

    def turned(self, number: QueryNumber, claim: Claim) -> BudgetLedger:
        """After a query got a policy, or lost it."""
        one = replace(self.holders[number], claim=claim)
        wanted = claim.after_turned(one.wanted, one.following, self.room(number))
        return self._with(number, one.wanting(wanted))

    def reserved(self, number: QueryNumber, total: int) -> BudgetLedger:
        """With so many instances for the next batch of a query, or as many as it may have."""
        one = self.holders[number]
        following = min(total, self.limit(number))
        wanted = one.claim.after_reserved(one.wanted, following)
        return self._with(number, replace(one, following=following, wanted=wanted))

    def begun(self, number: QueryNumber, total: int) -> BudgetLedger:
        """A batch begins that would have so many instances; it has what is `running` then."""
        after = self.reserved(number, total)
        one = after.holders[number]
        return after._with(number, replace(one, running=one.following))

    def ended(self, number: QueryNumber) -> BudgetLedger:
        """No batch of a query runs: it can give back without waiting for one."""
        return self._with(number, replace(self.holders[number], running=0))

    def _with(self, number: QueryNumber, holder: BudgetHolder) -> BudgetLedger:
        """With a query as it is now; what others were granted goes from those between batches."""
        found = BudgetLedger(self.most, {**self.holders, number: holder})
        for n, one in found.holders.items():
            if not one.running and one.following > found.limit(n):
                lower = replace(one, following=found.limit(n))
                found = BudgetLedger(self.most, {**found.holders, n: lower})
        return found
