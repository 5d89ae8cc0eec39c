"""What batches come to at given loads, beside batches that are gone through one by one."""

from __future__ import annotations

import math

import pytest

from tidegate.model.pace import BatchPace


def one_by_one(pace: BatchPace, batch_s: float, seconds: float) -> float:
    """The batch that runs after so many seconds."""
    while seconds > 0:
        cycle_s = max(batch_s, pace.trigger_s)
        seconds -= cycle_s
        batch_s = pace.fixed_s + pace.load * cycle_s
    return batch_s


@pytest.mark.parametrize("load", [0.0, 0.3, 0.9, 1.0, 1.5])
@pytest.mark.parametrize("trigger_s", [0.0, 0.2])
def test_batches_grow_and_shrink_as_one_follows_the_other(load: float, trigger_s: float) -> None:
    pace = BatchPace(0.01, load, 0.002, 100.0, trigger_s)
    batch_s = 0.01
    for _ in range(3):
        batch_s = pace.after(batch_s, 1.0)
    assert batch_s == pytest.approx(one_by_one(pace, 0.01, 3.0), rel=0.5)
    if load < 1:
        assert pace.after(0.01, 100.0) == pytest.approx(pace.settled_s, rel=1e-3)
        assert pace.after(5.0, 1e4) == pytest.approx(pace.settled_s, rel=1e-3)
    else:
        assert pace.settled_s == math.inf


def test_in_overload_a_batch_longer_than_a_second_goes_on_growing() -> None:
    pace = BatchPace(0.01, 1.5, 0.0, 100.0)
    assert pace.after(4.0, 1.0) == pytest.approx(4.5, rel=0.01), "by half a second in a second"
    more = pace.unfinished(4.5) - pace.unfinished(4.0)
    assert more == pytest.approx(100 * 0.5 / 1.5, rel=0.01), "of 100 tuples 67 get done"


def test_latency_is_the_wait_and_the_batch_or_of_rare_tuples_their_own() -> None:
    busy = BatchPace(0.01, 0.5, 0.002, 1_000.0)
    assert busy.settled_s == 0.02
    assert busy.latency_s(0.02) == pytest.approx(0.002 + 0.01 + 0.02)
    rare = BatchPace(0.01, 0.001, 0.0, 2.0)
    assert rare.latency_s(rare.settled_s) == pytest.approx(0.0105)
