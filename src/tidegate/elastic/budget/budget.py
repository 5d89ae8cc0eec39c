"""Guards the ledger of a budget with a lock, for queries that run in threads of their own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import count
from typing import Any

from tidegate.elastic.budget.claim import BY_HAND, BY_POLICY, Claim
from tidegate.elastic.budget.ledger import BudgetHolder, BudgetLedger, QueryNumber, cut_text
from tidegate.errors import OptionError

WHERE = "max_instances"
"""What a user calls it, of a `Session`."""

_REMEDY = f"Ask for fewer, scale down or stop another query, or raise {WHERE} of the Session."


class QueryBudget:
    """What one query may have; this one stands for no budget at all.

    The loop calls `enter`, then `admit` until it is true, `begin` and `end` for each batch, and
    `leave`. Any thread may call the others.
    """

    def enter(self, least: int, first: int, claim: Claim, *, needed: int) -> None:
        """A query is to begin with `first` instances, and cannot with fewer than `needed`."""

    def admit(self) -> bool:
        """Whether there are instances for the first batch; they are kept for it then."""
        return True

    def limit(self) -> int | None:
        """The most that the query may have now; None without a budget."""
        return None

    def want(self, wanted: int) -> None:
        """Say what the policy of the query would have without a budget."""

    def turn(self, claim: Claim) -> None:
        """From now on somebody else asks for the instances of the query."""

    def check(self, total: int, where: str) -> None:
        """Refuse so many instances, asked for by hand, where there are not as many to be had."""

    def reserve(self, total: int) -> None:
        """Keep so many instances for the next batch, or as many of them as there are."""

    def begin(self, total: int) -> int:
        """How many instances a batch has that would have so many."""
        return total

    def end(self) -> None:
        """The batch is done."""

    def leave(self) -> None:
        """The query has ended; also of one that never entered."""

    def stands(self, total: int, left: int) -> str:
        """Why a batch that would have had so many instances has so many that were left."""
        return cut_text(total, left)

    def told(self) -> dict[str, Any] | None:
        """What the query wants and may have, as plain data; None without a budget."""
        return None


NO_BUDGET = QueryBudget()


class InstanceBudget:
    """The most instances that the queries of a session have together, at any time.

    An instance is held from the begin of the batch that runs with it, or from when it is kept for
    that batch, to the begin of one without it, or to the end of a batch where others wait.
    """

    def __init__(self, most: int) -> None:
        if isinstance(most, bool) or not isinstance(most, int) or most < 1:
            raise OptionError(WHERE, "must be a whole number, at least 1", repr(most))
        self.most = most
        self._lock = threading.Lock()
        self._numbers = count()
        self.ledger = BudgetLedger(most)
        """As it is now; it is replaced, never changed."""

    def query(self) -> QueryBudget:
        """The part of a query that is to be started."""
        return _Part(self, next(self._numbers))

    def update(self, change: Callable[[BudgetLedger], BudgetLedger]) -> BudgetLedger:
        """Put another ledger in the place of the one that is there; that is given."""
        with self._lock:
            self.ledger = change(self.ledger)
            return self.ledger


class _Part(QueryBudget):
    """The part of one query in the budget of its session."""

    def __init__(self, budget: InstanceBudget, number: QueryNumber) -> None:
        self._budget, self._number = budget, number
        self._first = self._needed = 0
        self._claim: Claim = BY_POLICY

    @property
    def _held(self) -> BudgetHolder:
        return self._budget.ledger.holders[self._number]

    def enter(self, least: int, first: int, claim: Claim, *, needed: int) -> None:
        self._first, self._needed, self._claim = first, needed, claim

        def join(ledger: BudgetLedger) -> BudgetLedger:
            if needed > ledger.room(self._number):
                got = f"{needed} more, with {ledger.most - ledger.room(self._number)} for others"
                raise OptionError(
                    WHERE, f"{_together(ledger)}, one for each subquery", got, _REMEDY
                )
            # A batch that runs again has what it had, whatever others want.
            exact = BY_HAND if needed > least else claim
            return ledger.joined(self._number, BudgetHolder(least, needed, claim=exact))

        self._budget.update(join)

    def admit(self) -> bool:
        if not self._held.held:
            number, first, needed = self._number, self._first, self._needed
            self._budget.update(lambda ledger: ledger.admitted(number, first, needed))
        return self._held.held > 0

    def limit(self) -> int:
        return self._budget.ledger.limit(self._number)

    def want(self, wanted: int) -> None:
        self._change(lambda ledger: ledger.wanting(self._number, wanted))

    def turn(self, claim: Claim) -> None:
        self._claim = claim
        self._change(lambda ledger: ledger.turned(self._number, claim))

    def check(self, total: int, where: str) -> None:
        ledger = self._budget.ledger
        one = ledger.holders.get(self._number)
        if one is None:
            return
        limit = ledger.limit(self._number)
        if total > max(limit, one.held):
            got = f"{total} for this query, to which others leave {limit}"
            raise OptionError(where, _together(ledger), got, _REMEDY)

    def reserve(self, total: int) -> None:
        self._change(lambda ledger: ledger.reserved(self._number, total))

    def begin(self, total: int) -> int:
        if not self.admit():
            raise AssertionError("a batch begins when the query was admitted")
        after = self._budget.update(lambda ledger: ledger.begun(self._number, total))
        return after.holders[self._number].running

    def end(self) -> None:
        if self._held.claim is not self._claim:
            self.turn(self._claim)
        self._budget.update(lambda ledger: ledger.ended(self._number))

    def leave(self) -> None:
        self._budget.update(lambda ledger: ledger.left(self._number))

    def _change(self, change: Callable[[BudgetLedger], BudgetLedger]) -> None:
        """Nothing of a query that has left: who asks from another thread may come too late."""
        number = self._number
        self._budget.update(lambda now: change(now) if number in now.holders else now)

    def stands(self, total: int, left: int) -> str:
        return cut_text(max(total, self._held.wanted), left)

    def told(self) -> dict[str, Any] | None:
        ledger = self._budget.ledger
        one = ledger.holders.get(self._number)
        if one is None:
            return None
        return {
            "instances": ledger.most,
            "queries": len(ledger.holders),
            "held": one.held,
            "wanted": one.wanted,
            "leaves": ledger.limit(self._number),
        }


def _together(ledger: BudgetLedger) -> str:
    return f"the queries of this session may have {ledger.most} instances together"
