"""The ledger of a budget: never too much, nobody without, and no oscillation between queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from tidegate.elastic.budget.claim import BY_HAND, BY_POLICY
from tidegate.elastic.budget.ledger import BudgetHolder, BudgetLedger, divide

demands = st.lists(st.integers(1, 12), min_size=2, max_size=5)


def worst(wanted: Sequence[int], counts: Sequence[int]) -> float:
    return max(want / count for want, count in zip(wanted, counts, strict=True))


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 2)), min_size=1, max_size=3),
    st.integers(0, 6),
)
def test_no_other_division_has_a_smaller_worst_ratio(
    asked: list[tuple[int, int]], more: int
) -> None:
    wanted, least = [max(pair) for pair in asked], [few for _, few in asked]
    most = sum(least) + more
    counts = divide(wanted, least, most)
    every = [
        found
        for found in product(*(range(few, want + 1) for want, few in zip(wanted, least)))
        if sum(found) <= most
    ]
    assert tuple(counts) in every
    assert worst(wanted, counts) == min(worst(wanted, found) for found in every)


@given(demands, st.integers(0, 20), st.integers(1, 12))
def test_who_wants_more_gets_no_less_and_others_no_more(
    wanted: list[int], more: int, step: int
) -> None:
    least = [1] * len(wanted)
    most = len(wanted) + more
    before = divide(wanted, least, most)
    after = divide([wanted[0] + step, *wanted[1:]], least, most)
    assert after[0] >= before[0]
    assert all(late <= early for late, early in zip(after[1:], before[1:], strict=True))


@dataclass
class Queries:
    """Toy queries: each has what it wants, or as many of that as it may have, batch by batch."""

    ledger: BudgetLedger
    wanted: list[int]
    changes: list[int] = field(default_factory=list)

    @staticmethod
    def of(most: int, wanted: list[int]) -> Queries:
        made = Queries(BudgetLedger(most), list(wanted), [0] * len(wanted))
        for number in range(len(wanted)):
            made.ledger = made.ledger.joined(number, BudgetHolder(1, 1))
            made.ledger = made.ledger.admitted(number, 1, 1)
        made.rounds(3)
        return made

    @property
    def running(self) -> list[int]:
        return [one.running for one in self.ledger.holders.values()]

    def batch(self, number: int) -> None:
        """The batch of a query ends, its policy decides, and the next one begins."""
        before = self.ledger.holders[number].running
        self.ledger = self.ledger.ended(number).wanting(number, self.wanted[number])
        self.ledger = self.ledger.reserved(number, self.wanted[number])
        self.ledger = self.ledger.begun(number, self.wanted[number])
        self.changes[number] += self.ledger.holders[number].running != before
        assert self.ledger.held <= self.ledger.most
        assert min(one.held for one in self.ledger.holders.values()) >= 1

    def rounds(self, count: int) -> None:
        for _ in range(count):
            for number in range(len(self.wanted)):
                self.batch(number)


@given(demands, st.integers(0, 20), st.permutations(range(5)))
def test_demands_that_stay_settle_after_a_round_of_giving_and_one_of_taking(
    wanted: list[int], more: int, order: list[int]
) -> None:
    queries = Queries.of(len(wanted) + more, [1] * len(wanted))
    queries.wanted = wanted
    for number in [n for n in order if n < len(wanted)] * 2:
        queries.batch(number)
    assert queries.running == divide(wanted, [1] * len(wanted), len(wanted) + more)
    queries.changes = [0] * len(wanted)
    queries.rounds(2)
    assert queries.changes == [0] * len(wanted)


@given(
    demands,
    st.integers(0, 20),
    st.integers(1, 12),
    st.lists(st.integers(0, 4), max_size=25),
)
def test_a_step_in_one_demand_changes_each_other_query_once_at_most(
    wanted: list[int], more: int, step: int, order: list[int]
) -> None:
    queries = Queries.of(len(wanted) + more, wanted)
    before = queries.running
    queries.changes = [0] * len(wanted)
    queries.wanted[0] = step
    for number in order:
        queries.batch(number % len(wanted))
    queries.rounds(2)
    gave = sum(late < early for late, early in zip(queries.running[1:], before[1:], strict=True))
    assert max(queries.changes[1:]) <= 1
    assert queries.changes[0] <= 1 + gave


events = st.lists(
    st.tuples(
        st.sampled_from(["want", "reserve", "begin", "end", "turn", "leave"]),
        st.integers(0, 3),
        st.integers(1, 12),
    ),
    max_size=60,
)


@given(st.integers(8, 16), events)
def test_together_never_more_than_the_budget_and_nobody_without(
    most: int, asked: list[tuple[str, int, int]]
) -> None:
    """Whatever is asked in whatever order; a query with two subqueries keeps two instances."""
    ledger = BudgetLedger(most)
    for what, number, count in asked:
        if number not in ledger.holders:
            least = 1 + number % 2
            if ledger.room(number) < least:
                continue  # it is refused
            claim = BY_HAND if number == 3 else BY_POLICY
            ledger = ledger.joined(number, BudgetHolder(least, least, claim=claim))
        one = ledger.holders[number]
        if what == "leave":
            ledger = ledger.left(number)
        elif what == "want":
            ledger = ledger.wanting(number, count)
        elif what == "turn":
            ledger = ledger.turned(number, BY_HAND if count % 2 == 0 else BY_POLICY)
        elif what == "end":
            ledger = ledger.ended(number)
        elif not one.held:
            ledger = ledger.admitted(number, max(count, one.least), one.least)
        elif what == "reserve":
            ledger = ledger.reserved(number, max(count, one.least))
        else:
            before = one.held
            ledger = ledger.begun(number, max(count, one.least))
            assert ledger.holders[number].running >= min(before, ledger.grants[number])
        assert ledger.held <= most
        assert all(not one.held or one.held >= one.least for one in ledger.holders.values())
        assert sum(ledger.grants.values()) <= most
    for _ in range(2):  # who has too much gives back with its next batch
        for number, one in ledger.holders.items():
            ledger = ledger.ended(number)
            if not one.held:
                ledger = ledger.admitted(number, most, one.least)
            if ledger.holders[number].held:
                ledger = ledger.begun(number, ledger.holders[number].wanted)
    assert all(one.running >= one.least for one in ledger.holders.values()), "nobody waits for ever"


def test_what_a_query_has_between_batches_is_there_for_others_at_once() -> None:
    queries = Queries.of(8, [8, 1])
    assert queries.running == [7, 1]
    ledger = queries.ledger.ended(0).wanting(1, 4)
    assert (ledger.holders[0].held, ledger.limit(1)) == (5, 3)
    assert ledger.begun(0, 7).holders[0].running == 5, "its next batch has what was left to it"


def test_of_what_was_asked_for_by_hand_nothing_is_taken() -> None:
    ledger = BudgetLedger(8).joined(0, BudgetHolder(1, 1, claim=BY_HAND)).admitted(0, 6, 1)
    ledger = ledger.joined(1, BudgetHolder(1, 1)).admitted(1, 8, 1).wanting(1, 8)
    assert (ledger.holders[0].held, ledger.holders[1].held, ledger.limit(0)) == (6, 2, 6)
    ledger = ledger.turned(0, BY_POLICY)
    assert ledger.holders[0].held == 4, "a policy has no more right to it than another"


def test_who_has_joined_gets_its_least_from_one_that_then_goes_by_hand() -> None:
    """The first has all, and is in a batch when the other joins and its policy is taken away."""
    ledger = BudgetLedger(8).joined(0, BudgetHolder(1, 1)).admitted(0, 8, 1).wanting(0, 8)
    ledger = ledger.begun(0, 8).joined(1, BudgetHolder(2, 2)).turned(0, BY_HAND)
    assert (ledger.limit(1), ledger.admitted(1, 4, 2)) == (0, ledger), "nothing is taken in a batch"
    assert ledger.ended(0).admitted(1, 4, 2).holders[1].held == 2, "one that waits for input"
    ledger = ledger.begun(0, 8).admitted(1, 4, 2)
    assert [one.held for one in ledger.holders.values()] == [6, 2]
    assert ledger.wanting(1, 8).begun(1, 8).holders[1].running == 2, "no more than that is taken"
