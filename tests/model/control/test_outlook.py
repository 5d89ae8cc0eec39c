"""Looking ahead, against windows that are filled interval by interval."""

from __future__ import annotations

from collections import deque
from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.control.outlook import LASTING, outlook
from tidegate.model.operation import Lookback

RATES = st.lists(
    st.tuples(st.integers(0, 50), st.integers(0, 50)).map(lambda p: (float(p[0]), float(p[1]))),
    min_size=1,
    max_size=15,
)


def twin(rates: list[tuple[float, float]], held, ahead: int) -> list[float]:
    """The most work, with the rates going on, and with those of before over the windows of now."""
    found = []
    for i in range(len(rates)):
        past = rates[: i + 1]
        works = []
        for steps in range(ahead + 1):
            lasted = past[-max(ceil(steps / LASTING), 1) :]
            low_r, low_s = min(p[0] for p in lasted), min(p[1] for p in lasted)
            of_r, of_s = held([*past, *[(low_r, low_s)] * steps])
            works.append(low_r * of_s + low_s * of_r)
        of_r, of_s = held(past)
        works += [r * of_s + s * of_r for r, s in past[-ahead:]]
        found.append(max(works))
    return found


@given(rates=RATES, span=st.integers(1, 6), ahead=st.integers(1, 14))
def test_windows_of_time(rates: list[tuple[float, float]], span: int, ahead: int) -> None:
    def held(past):
        newest = deque(past, maxlen=span)
        return sum(p[0] for p in newest), sum(p[1] for p in newest)

    r, s = np.array(rates).T
    seen = outlook(r, s, Lookback(seconds=span), ahead_s=ahead)
    assert seen.expected.tolist() == pytest.approx(twin(rates, held, ahead))


@given(rates=RATES, rows=st.integers(1, 200), ahead=st.integers(1, 14))
def test_windows_of_tuples(rates: list[tuple[float, float]], rows: int, ahead: int) -> None:
    def held(past):
        return min(sum(p[0] for p in past), rows), min(sum(p[1] for p in past), rows)

    r, s = np.array(rates).T
    seen = outlook(r, s, Lookback(rows=rows), ahead_s=ahead)
    assert seen.expected.tolist() == pytest.approx(twin(rates, held, ahead))


def test_work_has_settled_when_the_windows_are_renewed() -> None:
    r = np.repeat([100.0, 300.0], 30)
    seen = outlook(r, r, Lookback(seconds=10), ahead_s=5)
    assert seen.settled.tolist() == [False] * 9 + [True] * 21 + [False] * 9 + [True] * 21
    rows = outlook(r, r, Lookback(rows=1_000), ahead_s=5)
    assert rows.settled.tolist() == [False] * 9 + [True] * 51
