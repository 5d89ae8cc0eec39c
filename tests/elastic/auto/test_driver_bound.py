"""Queries that the driver and map tasks hold up: nothing that `auto` can do makes it much worse."""

from __future__ import annotations

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


def query_of(*parts: tuple[float, int], sieve: float = 0.0, saves: bool = False) -> SimulatedQuery:
    """So much of the driver's time, for so many seconds each; instances have next to no work."""
    driver = np.concatenate([np.full(seconds, float(of)) for of, seconds in parts])
    load = SimulatedLoad(tuples=driver / TUPLE_S, work_s=np.full(len(driver), 0.02))
    return SimulatedQuery(
        load=load,
        tuple_s=TUPLE_S,
        sieve_s=sieve * TUPLE_S,
        beside_saved=0.9 if saves else 0.0,
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
@pytest.mark.parametrize("sieve", [0.0, 0.25, 0.6])
def test_where_shedding_saves_nothing_it_is_about_as_late_as_without_a_controller(
    load: str, sieve: float
) -> None:
    query = query_of(*LOADS[load], sieve=sieve)
    nothing, auto = query.run(Nothing(), instances=1), query.run(ByTarget(error=0.1), instances=1)
    assert worst_s(nothing) > 2.0
    assert worst_s(auto) <= worst_s(nothing) * (1.1 + sieve)
    assert {batch.instances for batch in auto} == {1}, "they have nothing to divide"
    changes = [why for batch in auto for why in batch.why]
    assert len(changes) <= 2
    assert auto[-1].share == 0.0


@pytest.mark.parametrize("load", ["an early step", "a late step"])
def test_where_shedding_saves_the_target_is_held(load: str) -> None:
    query = query_of(*LOADS[load], sieve=0.1, saves=True)
    auto = query.run(ByTarget(error=0.1), instances=1)
    assert worst_s(auto) <= 2.0 < worst_s(query.run(Nothing(), instances=1))


def test_a_batch_of_many_more_tuples_is_no_pause() -> None:
    """The load jumps to many times what it was: that is decided about at once."""
    query = query_of((0.02, 10), (1.6, 8))
    batches = query.run(ByTarget(error=0.1), instances=1)
    decided = [batch.end_s for batch in batches if batch.why]
    assert decided[0] <= 11.6
