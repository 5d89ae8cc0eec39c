"""Random loads and faults: the controller never gets stuck, and ends within target or says why."""

from __future__ import annotations

import numpy as np
import pytest

from tidegate.elastic.auto.policy import ByTarget
from tidegate.elastic.simulated_query import SimulatedFault, SimulatedLoad, SimulatedQuery

CALM_S, JUDGED_S = 180, 30
"""How long the end is calm, and how much of that is judged: a backlog may be minutes of work."""


def chaos(seed: int, seconds: int) -> SimulatedQuery:
    """Levels, spikes, skew and faults at random; the last minutes are calm."""
    draw = np.random.default_rng(seed)
    work = np.empty(seconds)
    start = 0
    while start < seconds:
        length = int(draw.integers(5, 120))
        work[start : start + length] = draw.uniform(0.3, 14.0)
        start += length
    for at in draw.integers(0, seconds, seconds // 60):
        work[at : at + int(draw.integers(1, 20))] *= draw.uniform(1.0, 4.0)
    work *= draw.gamma(50, 1 / 50, seconds)
    work[-CALM_S:] = draw.uniform(0.5, 6.0)
    faults = [
        SimulatedFault(
            kind=str(draw.choice(["slow", "pause", "retry"])),
            at_s=float(at),
            seconds=float(draw.uniform(0.2, 3.0)),
            times=float(draw.uniform(1.5, 4.0)),
            instance=int(draw.integers(0, 16)),
        )
        for at in draw.uniform(0, seconds - CALM_S, seconds // 30)
    ]
    hottest = np.repeat(draw.uniform(0.0, 0.05, seconds // 60 + 1), 60)[:seconds]
    return SimulatedQuery(
        load=SimulatedLoad(tuples=work * 1000, work_s=work, hottest=hottest),
        slots=24,
        most_share=0.9 if seed % 2 else None,
        faults=faults,
    )


def check(seed: int, seconds: int) -> int:
    """How many decisions there were; what must be so is asserted."""
    query = chaos(seed, seconds)
    policy = ByTarget(latency=2.0, error=0.1 if seed % 2 else None, cost=20)
    decided, last = 0, list[float]()
    for batch in query.start(4).batches(policy):
        decided += bool(batch.why)
        assert not (batch.why and batch.observed.disturbed), seed
        assert batch.instances <= 20, seed
        error = 0.02 * np.sqrt(batch.share / (1 - batch.share))
        assert error <= 0.1 + 1e-9, seed
        if batch.start_s > seconds - JUDGED_S:
            last.append(batch.end_s - batch.after_s)
            assert batch.share == 0.0, (seed, "what is calm is not shed")
    assert last, seed
    assert max(last) <= 2.0, seed
    return decided


@pytest.mark.parametrize("seed", range(2))
def test_ten_minutes(seed: int) -> None:
    assert check(seed, 600) > 3


@pytest.mark.long
@pytest.mark.parametrize("seed", range(30))
def test_an_hour(seed: int) -> None:
    assert check(seed, 3_600) > 10
