"""The controller against the paper's Algorithm 1 as it is printed, and its own promises."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import OptionError
from tidegate.model.control.controller import ControllerState, Demand, Limits, bounds

UNIT_S = 1e-6


def printed(asked: float, n: int, limits: Limits) -> int:
    """Algorithm 1, line by line; where no number of threads is enough, all there may be."""

    def upper(k: int) -> float:
        return limits.upper * limits.quota / UNIT_S * k

    def lower(k: int) -> float:
        return limits.lower * limits.quota / UNIT_S * (k - 1)

    if asked >= upper(n):
        for more in range(n + 1, limits.maximum + 1):
            if asked < upper(more):
                return more
        return limits.maximum
    if asked < lower(n):
        for fewer in range(n - 1, 0, -1):
            if asked >= lower(fewer):
                return max(fewer, limits.minimum)
    return n


@given(
    work=st.lists(st.floats(0, 2e7), min_size=1, max_size=30),
    first=st.integers(1, 12),
    quota=st.sampled_from([1.0, 0.5]),
)
def test_it_decides_as_the_paper_prints_it(work: list[float], first: int, quota: float) -> None:
    limits = Limits(maximum=12, quota=quota)
    table = bounds(UNIT_S, limits)
    standing = ControllerState(first)
    reported = done = 0.0
    for comparisons in work:
        reported += comparisons
        asked = reported - done  # equation 27
        done += min(quota / UNIT_S * standing.instances, asked)  # 28, no more than there was
        wanted = printed(asked, standing.instances, limits)
        assert standing.asked(Demand(comparisons)) == pytest.approx(asked, rel=1e-9, abs=1e-3)
        standing = standing.after(Demand(comparisons), table)
        assert standing.instances == wanted
        assert standing.waiting == pytest.approx(reported - done, rel=1e-9, abs=1e-3)
        assert standing.waiting >= 0


def test_idle_time_is_not_saved_up() -> None:
    table = bounds(UNIT_S, Limits(maximum=4))
    standing = ControllerState(4)
    for _ in range(100):
        standing = standing.after(Demand(0.0), table)
    assert standing == ControllerState(1, 0.0)
    assert standing.after(Demand(2e6), table) == ControllerState(3, 1e6)


def test_a_table_is_made_anew_where_costs_have_changed() -> None:
    limits = Limits(maximum=8)
    assert bounds(UNIT_S, limits) is bounds(UNIT_S, Limits(maximum=8))
    standing = ControllerState(2)
    for unit_s, instances in [(1e-6, 2), (1.5e-6, 4), (4e-6, 8), (1e-6, 3)]:
        for _ in range(20):
            standing = standing.after(Demand(1.5e6), bounds(unit_s, limits))
        assert standing.instances == instances, unit_s


@given(asked=st.floats(0, 1e8), n=st.integers(1, 40))
def test_a_load_that_stays_is_decided_about_once(asked: float, n: int) -> None:
    table = bounds(UNIT_S, Limits(maximum=40))
    for expected in (None, asked):
        demand = Demand(asked, expected=expected)
        once = ControllerState(n).after(demand, table).instances
        assert ControllerState(once).after(demand, table).instances == once


@given(asked=st.floats(0, 3e7), n=st.integers(1, 40))
def test_looking_ahead_no_more_than_one_is_kept_that_is_not_needed(asked: float, n: int) -> None:
    table = bounds(UNIT_S, Limits(maximum=40))
    settled = ControllerState(n).after(Demand(asked, expected=asked), table).instances
    assert 0 <= settled - table.fewest(asked) <= 1


def test_while_windows_fill_it_asks_once_for_what_will_be_needed() -> None:
    table = bounds(UNIT_S, Limits(maximum=40))
    filling = np.linspace(1e6, 20e6, 60)
    plain, ahead = [ControllerState(1)], [ControllerState(1)]
    for work in filling:
        plain.append(plain[-1].after(Demand(work), table))
        ahead.append(ahead[-1].after(Demand(work, expected=20e6, settled=False), table))
    steps = [
        sum(a.instances != b.instances for a, b in itertools.pairwise(row))
        for row in (plain, ahead)
    ]
    assert steps[1] == 1 < steps[0]
    assert plain[-1].instances == ahead[-1].instances == 26


def test_what_takes_no_time_needs_one_instance() -> None:
    table = bounds(0.0, Limits(maximum=4))
    assert ControllerState(3).after(Demand(1e9), table) == ControllerState(1, 0.0)


def test_others_may_have_asked_for_more_or_fewer_than_it_would() -> None:
    table = bounds(UNIT_S, Limits(minimum=2, maximum=4))
    assert ControllerState(9).after(Demand(1.0), table).instances == 2
    assert ControllerState(1).after(Demand(1.0), table).instances == 2
    assert ControllerState(9).after(Demand(3e6), table).instances == 4


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (
            {"upper": 0.6},
            "policy model: lower must not be above upper, both above 0 and at most 1; got lower "
            "0.7 and upper 0.6.",
        ),
        (
            {"upper": 1.2},
            "policy model: lower must not be above upper, both above 0 and at most 1; got lower "
            "0.7 and upper 1.2.",
        ),
        ({"quota": 0.0}, "policy model: quota must be above 0 and at most 1; got 0."),
        ({"minimum": 0}, "policy model: minimum must be at least 1; got 0."),
        ({"minimum": 5}, "policy model: maximum must be at least minimum (5); got 4."),
    ],
)
def test_limits_that_cannot_be(limits: dict[str, float], message: str) -> None:
    with pytest.raises(OptionError) as error:
        Limits(**{"maximum": 4, **limits})  # type: ignore[arg-type]
    assert str(error.value) == message
