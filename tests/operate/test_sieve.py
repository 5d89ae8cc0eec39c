"""A sieve that sheds nothing: the same answer as by choosing among tuples, and no pass for it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.approx.compiled_loops import prepare
from tidegate.approx.priority_loop import priorities_loop
from tidegate.approx.rate import RateLog, limit_of
from tidegate.approx.rate_loop import levelled_loop
from tidegate.approx.stratum_loop import lacking_loop, strata_loop
from tidegate.batch import SEQ, SRC, TS
from tidegate.operate.operator import OUT
from tidegate.operate.sieve import PRIORITY, TUPLES, ByGroup, ExcessOfTuples, InTotal, Sieve

RATE, PANE_US = 0.05, 100
BY = ByGroup(("k",), PANE_US, 2)


@dataclass(frozen=True)
class Choosing(ByGroup):
    """The same without the short way."""

    chosen = True


def tuples(count: int) -> pa.Table:
    numbers = np.arange(count)
    keys = np.random.default_rng(3).integers(0, 7, count)
    return pa.table({TS: numbers, SRC: np.zeros(count, np.int64), SEQ: numbers, OUT + "k": keys})


def counts_of(marked: pa.Table) -> dict[tuple[int, int], tuple[int, int]]:
    """By pane and group: the tuples that it had, and how many of them are below the limit.

    A tuple that was not to be shed has no priority, and counts for itself.
    """
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for row in marked.to_pylist():
        place = row[TS] // PANE_US, row[OUT + "k"]
        had, below = found.get(place, (0, 0))
        below += (row[OUT + PRIORITY] or 0) < limit_of(RATE)
        number = row[OUT + TUPLES]
        found[place] = had + (1 if number is None else number), below
    return found


def test_while_nothing_is_shed_tuples_are_handed_on_as_they_are() -> None:
    given = tuples(1_000)
    short, rows = Sieve(1, RATE, BY, 1.0).marked(given)
    chosen, every = Sieve(1, RATE, Choosing(("k",), PANE_US, 2), 1.0).marked(given)
    assert rows is None
    assert every is not None
    assert every.tolist() == list(range(1_000))
    assert counts_of(short) == counts_of(chosen)
    assert short.drop_columns([OUT + PRIORITY, OUT + TUPLES]).equals(given)


def test_loops_are_there_before_the_first_tuple_is_shed() -> None:
    """Compiling them takes seconds, which an overload does not have."""
    loops = (priorities_loop, levelled_loop, strata_loop, lacking_loop)
    for one in (prepare, *loops):
        one.cache_clear()
    given = tuples(10)
    assert Sieve(1, RATE, BY, 1.0).at_reading(given) is given
    assert [loop.cache_info().currsize for loop in loops] == [1] * 4


def test_where_the_rate_changes_within_a_split_tuples_are_chosen() -> None:
    sieve = Sieve(1, RATE, BY, 1.0, RateLog.of(1.0).changed(500, 0.5))
    assert sieve.marked(tuples(500))[1] is None
    _, rows = sieve.marked(tuples(1_000))
    assert rows is not None
    assert 700 < len(rows) < 850


def test_a_share_of_all_is_chosen_from_an_order_that_is_always_there() -> None:
    _, rows = Sieve(1, RATE, InTotal(("k",), PANE_US, 2), 1.0).marked(tuples(100))
    assert rows is not None


def test_tuples_that_stand_for_themselves_have_no_excess() -> None:
    sieve = Sieve(1, RATE, BY, 1.0, excesses=(ExcessOfTuples(),))
    column = sieve.weighed(tuples(100)).column(f"{OUT}{ExcessOfTuples()}")
    assert column.null_count == 100
    shed = Sieve(1, RATE, BY, 1.0, RateLog.of(0.5), (ExcessOfTuples(),))
    assert shed.weighed(tuples(3)).column(f"{OUT}{ExcessOfTuples()}").to_pylist() == [1.0] * 3
