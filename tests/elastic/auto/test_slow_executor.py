"""An executor that runs for a part of the time: its map tasks and its instance take longer."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tests.elastic.auto.test_driver_bound import Nothing, worst_s
from tidegate.elastic.auto.history import KnownQuery
from tidegate.elastic.auto.policy import ByTarget
from tidegate.elastic.simulated_query import (
    SimulatedBatch,
    SimulatedFault,
    SimulatedLoad,
    SimulatedQuery,
)

RATE, READING, SECONDS = 1_000.0, 0.4, 90
FORTY_PERCENT = 2.5
"""How many times as long what runs for 40 percent of the time takes."""


def query_of(work: float, *, reading: float, stalled: float = FORTY_PERCENT) -> SimulatedQuery:
    """Two instances with so much work; from 30 to 60 s one executor is slow."""
    load = SimulatedLoad(tuples=np.full(SECONDS, RATE), work_s=np.full(SECONDS, work))
    return SimulatedQuery(
        load=load,
        batch_s=0.03,
        tuple_s=READING / RATE,
        trigger_s=0.0,
        most_share=0.95,
        slots=2,
        faults=[
            SimulatedFault("start", 0.0, 0.5),
            SimulatedFault("reading", 30.0, 30.0, reading),
            SimulatedFault("stalled", 30.0, 30.0, stalled),
        ],
    )


def under_auto(query: SimulatedQuery) -> list[SimulatedBatch]:
    return query.run(ByTarget(latency=2.0, error=0.1, cost=2), instances=2)


def first_after(batches: list[SimulatedBatch], at_s: float) -> float:
    return next(batch.end_s for batch in batches if batch.why and batch.end_s > at_s)


def test_the_slow_executor_of_the_measurement_is_within_the_target() -> None:
    """Work for 0.2 instances and reading for 0.4 of the time: 22 percent of its seconds were late.

    It adds the instance that it had given back, and sheds nothing.
    """
    batches = under_auto(query_of(0.2, reading=1.5))
    assert worst_s(batches) <= 2.0
    assert max(batch.share for batch in batches) == 0.0
    counts = [batch.instances for batch in batches if batch.why]
    assert counts == [2, 1], "given back at once, and added while it is slow"


@pytest.mark.parametrize(("work", "reading"), [(0.4, 1.5), (0.4, 2.0), (1.0, 1.0), (1.0, 1.5)])
def test_more_than_a_slow_executor_can_do_is_less_late_than_with_nothing_done(
    work: float, reading: float
) -> None:
    """Batches grow while it is slow, so that nothing may wait for several of them."""
    query = query_of(work, reading=reading)
    nothing, auto = query.run(Nothing(), instances=2), under_auto(query)
    assert worst_s(auto) <= 0.5 * worst_s(nothing)
    assert first_after(auto, 30.0) <= 38.0


def test_shares_do_not_go_up_and_down_while_an_executor_is_slow() -> None:
    """They went from 95 to 5 percent and back every two seconds, as long as it was late."""
    shares = [batch.share for batch in under_auto(query_of(0.4, reading=2.0))]
    changes = [(a, b) for a, b in pairwise(shares) if a != b]
    assert all(b == 0.0 or b > a for a, b in changes), "less only once all of it can be done"


@pytest.mark.parametrize("seconds", [1.0, 2.0])
def test_a_pause_of_an_executor_changes_nothing(seconds: float) -> None:
    query = query_of(0.6, reading=1.0)
    pauses = [SimulatedFault("stalled", at, seconds, 3.0) for at in (30.0, 45.0, 60.0)]
    auto = under_auto(SimulatedQuery(**{**vars(query), "faults": [query.faults[0], *pauses]}))
    assert not [batch.why for batch in auto if batch.end_s > 30.0 and batch.why]


def test_several_pauses_in_a_row_are_how_a_query_runs_now() -> None:
    """Of batches that take ever longer each would be the one with a pause, for a minute."""
    query = query_of(0.1, reading=12.0, stalled=1.0)
    state, memory, unclean_s = query.start(2), dict[str, Any](), 0.0
    policy = ByTarget(latency=2.0, cost=2)
    while not state.over:
        state, batch = state.step()
        known = KnownQuery.restored(memory).after([batch.observed])
        if 30.0 <= batch.start_s < 60.0 and known.pauses > 1:
            unclean_s += batch.end_s - batch.start_s
        memory = dict(policy.decide((batch.observed,), memory).memory)
    assert unclean_s <= 8.0


def test_what_an_instance_does_too_little_of_says_nothing_of_its_pace() -> None:
    """With most of the tuples shed it is still slow."""
    query = query_of(1.0, reading=1.5)
    state, memory = query.start(2), dict[str, Any]()
    policy = ByTarget(latency=2.0, error=0.1, cost=2)
    paces = []
    while not state.over:
        state, batch = state.step()
        decision = policy.decide((batch.observed,), memory)
        memory = dict(decision.memory)
        state = state.after(decision, batch.observed.buckets.tolist())
        if batch.share >= 0.9 and batch.start_s < 59.0:
            (known,) = KnownQuery.restored(memory).subqueries.values()
            paces.append(max(known.paces, default=1.0))
    assert paces
    assert min(paces) >= 1.6
