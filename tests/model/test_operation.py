"""Windows, against sums over their intervals."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidegate
from tests.model.join.traces import changing
from tidegate.errors import OptionError
from tidegate.model.cost.calibration import JoinCosts
from tidegate.model.join.predict import predict
from tidegate.model.operation import Lookback

RATES = st.lists(st.floats(0, 1000), min_size=1, max_size=30)


@given(RATES, st.integers(1, 40), st.sampled_from([0.25, 1.0, 2.0]))
def test_a_window_of_time_ends_with_its_interval(
    rates: list[float], intervals: int, step_s: float
) -> None:
    held = Lookback(seconds=intervals * step_s).contents(np.array(rates), step_s)
    wanted = [sum(rates[max(i - intervals + 1, 0) : i + 1]) * step_s for i in range(len(rates))]
    assert held == pytest.approx(wanted, abs=1e-6)


def test_a_window_may_have_a_part_of_its_oldest_interval() -> None:
    held = Lookback(seconds=1.5).contents(np.array([10.0, 20.0, 40.0, 0.0]), 1.0)
    assert held.tolist() == [10, 25, 50, 20]


@given(RATES, st.integers(1, 5000))
def test_a_window_of_tuples_fills_up(rates: list[float], rows: int) -> None:
    held = Lookback(rows=rows).contents(np.array(rates), 0.5)
    wanted = [min(sum(rates[: i + 1]) / 2, rows) for i in range(len(rates))]
    assert held == pytest.approx(wanted)


def test_the_streams_may_have_windows_of_their_own() -> None:
    trace = changing([10.0] * 9, [20.0] * 9)
    windows = (Lookback(seconds=2), Lookback(rows=100))
    said = predict(trace, windows, JoinCosts(1e-6, 0, 0.1), instances=1)
    assert (said.window_r[-1], said.window_s[-1]) == (20, 100)
    assert said.comparisons[-1] == 10 * 100 + 20 * 20


def test_rows_fill_up_at_any_rate_and_time_by_its_rate() -> None:
    assert [Lookback(rows=7).full(rate) for rate in (0.0, 5.0)] == [7, 7]
    assert [Lookback(seconds=3).full(rate) for rate in (0.0, 5.0)] == [0, 15]


def test_a_window_without_an_end_is_refused() -> None:
    with pytest.raises(OptionError, match="a window: must be of seconds or of rows"):
        Lookback()


def test_the_package_has_one_pair_of_window_classes() -> None:
    root = Path(tidegate.__file__).parent
    found = sorted(
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        for _ in re.finditer(r"^class (Time|Tuple)Window\b", path.read_text(), re.MULTILINE)
    )
    assert found == ["query/window/range.py", "query/window/rows.py"]
