"""Windows, against sums over their intervals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.model.traces import changing
from tidegate.model.costs import Costs
from tidegate.model.predict import predict
from tidegate.model.window import TimeWindow, TupleWindow

RATES = st.lists(st.floats(0, 1000), min_size=1, max_size=30)


@given(RATES, st.integers(1, 40), st.sampled_from([0.25, 1.0, 2.0]))
def test_a_window_of_time_ends_with_its_interval(
    rates: list[float], intervals: int, step_s: float
) -> None:
    held = TimeWindow(intervals * step_s).contents(np.array(rates), step_s)
    wanted = [sum(rates[max(i - intervals + 1, 0) : i + 1]) * step_s for i in range(len(rates))]
    assert held == pytest.approx(wanted, abs=1e-6)


def test_a_window_may_have_a_part_of_its_oldest_interval() -> None:
    held = TimeWindow(1.5).contents(np.array([10.0, 20.0, 40.0, 0.0]), 1.0)
    assert held.tolist() == [10, 25, 50, 20]


@given(RATES, st.integers(1, 5000))
def test_a_window_of_tuples_fills_up(rates: list[float], rows: int) -> None:
    held = TupleWindow(rows).contents(np.array(rates), 0.5)
    wanted = [min(sum(rates[: i + 1]) / 2, rows) for i in range(len(rates))]
    assert held == pytest.approx(wanted)


def test_the_streams_may_have_windows_of_their_own() -> None:
    trace = changing([10.0] * 9, [20.0] * 9)
    windows = (TimeWindow(2), TupleWindow(100))
    said = predict(trace, windows, Costs(1e-6, 0, 0.1), instances=1)
    assert (said.window_r[-1], said.window_s[-1]) == (20, 100)
    assert said.comparisons[-1] == 10 * 100 + 20 * 20
