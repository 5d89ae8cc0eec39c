"""Work that is done late, against the paper's equations 11 to 14 for every pair of intervals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cost import calls
from tidegate.model.work import capacity, done

AMOUNTS = st.one_of(st.just(0.0), st.floats(0.01, 10))


def _by_pairs(
    arriving: list[float], capacities: list[float], values: list[float], step_s: float
) -> tuple[list[float], list[float], list[float]]:
    """y, the residual and the latency of each interval, with rho and w as the paper has them."""
    size = len(arriving)
    residual = [0.0] * size  # rho_{i,m} at the end of i
    made, left, latency = [], [], []
    for i in range(size):
        residual[i] = arriving[i]
        budget, shares = capacities[i], []
        for m in range(i + 1):
            share = min(residual[m], budget)
            residual[m] -= share
            budget -= share
            shares.append(share)
        made.append(sum(shares))
        left.append(sum(residual))
        late = sum(w * (values[m] + (i - m) * step_s) for m, w in enumerate(shares))
        latency.append(late / made[-1] if made[-1] > 0 else np.nan)
    return made, left, latency


@given(st.lists(st.tuples(AMOUNTS, st.floats(0.1, 8), st.floats(0, 2)), min_size=1, max_size=40))
def test_running_sums_say_what_pairs_of_intervals_say(
    rows: list[tuple[float, float, float]],
) -> None:
    arriving, capacities, values = (list(column) for column in zip(*rows))
    work = done(np.array(arriving), np.array(capacities))
    made, left, latency = _by_pairs(arriving, capacities, values, 0.5)
    assert work.made == pytest.approx(made, abs=1e-9)
    assert work.left == pytest.approx(left, abs=1e-9)
    certain = np.array(made) > 1e-6  # of work as small as the errors of sums, nothing can be said
    found = work.delayed(np.array(values), 0.5)
    assert found[certain] == pytest.approx(np.array(latency)[certain], rel=1e-4, abs=1e-6)


def test_the_sample_execution_of_figure_4() -> None:
    """Intervals that keep up have their own latency, to the bit."""
    work = done(np.array([0.5, 0.75, 1.5, 1.25, 1.0, 0.25]), np.ones(6))
    assert work.made.tolist() == [0.5, 0.75, 1, 1, 1, 1]
    assert work.left.tolist() == [0, 0, 0.5, 0.75, 0.75, 0]
    latency = work.delayed(np.full(6, 0.001), 1.0)
    assert latency[:3].tolist() == [0.001] * 3
    assert latency[3:] == pytest.approx([0.501, 0.751, 0.751])


def test_long_overload_costs_no_more_than_none() -> None:
    def overloaded(intervals: int) -> None:
        work = done(np.full(intervals, 2.0), np.ones(intervals))
        latency = work.delayed(np.zeros(intervals), 1.0)
        assert latency[-1] == pytest.approx(intervals / 2, rel=1e-2)

    assert calls(lambda: overloaded(200_000)) < 2 * calls(lambda: overloaded(200))


def test_comparisons_that_take_no_time_never_wait() -> None:
    work = done(np.array([1e12, 0.0]), capacity(np.ones(2), 1.0, 0.0, 1.0))
    assert work.made.tolist() == [1e12, 0.0]
    assert np.isnan(work.delayed(np.zeros(2), 1.0)).tolist() == [False, True]
