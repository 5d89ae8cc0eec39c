"""A budget divided among groups: nothing is lost, nothing is given to those who cannot use it."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidegate.approx.allot import congress


@given(counts=st.lists(st.integers(0, 10**6), max_size=40), budget=st.integers(0, 10**6))
def test_the_budget_is_used_up_and_no_group_gets_more_than_it_has(
    counts: list[int], budget: int
) -> None:
    sizes = congress(np.array(counts, np.int64), budget)
    assert sizes.dtype == np.int64
    assert sizes.sum() == min(budget, sum(counts))
    assert ((sizes >= 0) & (sizes <= counts)).all()


@given(counts=st.lists(st.integers(1, 1000), min_size=1, max_size=20), budget=st.integers(1, 5000))
def test_groups_of_one_size_get_the_same_but_for_one_row(counts: list[int], budget: int) -> None:
    sizes = congress(np.array(counts), budget)
    for count in set(counts):
        own = sizes[np.array(counts) == count]
        assert own.max() - own.min() <= 1
        larger = sizes[np.array(counts) > count]
        assert not len(larger) or larger.min() >= own.min() - 1


def test_congress_is_fair_to_small_groups_and_to_large_ones() -> None:
    """House 90, 9, 1 and senate 33.3 of 100: the larger are 90, 33.3 and 33.3, scaled to 100."""
    counts = np.array([90_000, 9_000, 1_000])
    assert congress(counts, 100).tolist() == [58, 21, 21]


def test_what_a_small_group_cannot_use_goes_to_the_others() -> None:
    assert congress(np.array([3, 500, 500]), 303).tolist() == [3, 150, 150]
    assert congress(np.array([3, 4]), 100).tolist() == [3, 4]
