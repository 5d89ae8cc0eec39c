"""Queries that the driver and map tasks hold up: nothing that `auto` can do makes it much worse."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tidegate.elastic.auto.policy import ByTarget
from tidegate.elastic.policy import Decision
from tidegate.elastic.simulated_query import SimulatedBatch, SimulatedLoad, SimulatedQuery

TUPLE_S = 0.001


class Nothing:
    """Does nothing."""

    name = "nothing"

    def decide(self, observed: object, memory: object) -> Decision:
        return Decision()


def query_of(*parts: tuple[float, int], sieve: float = 0.0) -> SimulatedQuery:
    """So much of the driver's time, for so many seconds each; instances have next to no work."""
    driver = np.concatenate([np.full(seconds, float(of)) for of, seconds in parts])
    load = SimulatedLoad(tuples=driver / TUPLE_S, work_s=np.full(len(driver), 0.02))
    return SimulatedQuery(
        load=load,
        tuple_s=TUPLE_S,
        sieve_s=sieve * TUPLE_S,
        trigger_s=0.1,
        most_share=0.95,
    )


def worst_s(batches: list[SimulatedBatch]) -> float:
    return max(batch.end_s - batch.after_s for batch in batches)


LOADS = {
    "an early step": ((0.5, 3), (1.3, 12)),
    "a late step": ((0.5, 20), (1.3, 12), (0.4, 20)),
    "a spike": ((0.4, 10), (2.0, 3), (0.4, 20)),
}


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("sieve", [0.0, 0.6])
def test_what_the_driver_has_no_time_for_is_left_as_it_is(load: str, sieve: float) -> None:
    """Map tasks read a tuple before they shed it: no share and no instances make that less."""
    query = query_of(*LOADS[load], sieve=sieve)
    nothing, auto = query.run(Nothing(), instances=1), query.run(ByTarget(error=0.1), instances=1)
    assert worst_s(nothing) > 2.0
    assert worst_s(auto) == worst_s(nothing)
    assert {(batch.instances, batch.share) for batch in auto} == {(1, 0.0)}


def test_it_says_that_the_driver_takes_the_time() -> None:
    policy, memory = ByTarget(error=0.1), dict[str, Any]()
    state = query_of((0.5, 20), (1.3, 30)).start(1)
    while not state.over:
        state, batch = state.step()
        memory = dict(policy.decide((batch.observed,), memory).memory)
    assert re.search("driver and map tasks 1[0-4].% of the time", policy.told(memory)["cannot"])


def test_a_batch_of_many_more_tuples_is_no_pause() -> None:
    """The load jumps to many times what it was: that is decided about at once."""
    seconds = [10, 8]
    work = np.repeat([0.02, 1.6], seconds)
    load = SimulatedLoad(tuples=work / TUPLE_S, work_s=work)
    query = SimulatedQuery(load=load, tuple_s=0.3 * TUPLE_S, trigger_s=0.1)
    batches = query.run(ByTarget(), instances=1)
    decided = [batch.end_s for batch in batches if batch.why]
    assert decided[0] <= 11.6
