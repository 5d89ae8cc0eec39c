"""Windows that slide over values, against sorting and counting each by itself."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.cost import times_dearer
from tidegate.operate.kernels.order import Floats
from tidegate.operate.kernels.window.slide import Sliding, distinct_counts

VALUES = st.lists(
    st.sampled_from([-1.5, 0.0, 2.0, 2.5, math.inf, -math.inf, math.nan]), max_size=40
)


@st.composite
def bounds(draw: st.DrawFn, size: int) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    """Windows with gaps between them, empty ones, repeated ones; neither bound falls."""
    places = st.integers(0, size)
    pairs = draw(st.lists(st.tuples(places, places), max_size=15))
    first, last = ([sorted(p)[i] for p in pairs] for i in (0, 1))
    return np.array(sorted(first), np.int64), np.array(sorted(last), np.int64)


@given(VALUES, st.data())
def test_places_in_order_are_those_of_the_sorted_window(
    given_values: list[float], data: st.DataObject
) -> None:
    values = np.array(given_values)
    first, last = data.draw(bounds(len(values)))
    k = np.array(
        [data.draw(st.integers(0, max(b - a - 1, 0))) for a, b in zip(first, last, strict=True)],
        np.int64,
    )
    low, high = Sliding(values, first, last).places(k)
    assert len(low) == len(high) == len(first)
    for w in np.flatnonzero(last > first):
        window = np.sort(values[first[w] : last[w]])
        wanted = window[[k[w], min(k[w] + 1, len(window) - 1)]]
        np.testing.assert_array_equal([low[w], high[w]], wanted)


@given(st.lists(st.integers(0, 5), max_size=40), st.data())
def test_distinct_counts_are_those_of_sets(codes: list[int], data: st.DataObject) -> None:
    first, last = data.draw(bounds(len(codes)))
    found = distinct_counts(np.array(codes, np.int64), 6, first, last)
    wanted = [len(set(codes[a:b])) for a, b in zip(first, last, strict=True)]
    assert found.tolist() == wanted


def test_a_value_costs_its_coming_and_going_and_not_every_window() -> None:
    """As many windows as values in each: ten times as many, sorted one by one, would cost 100."""
    size = 50_000
    values = np.random.default_rng(5).normal(size=2 * size)

    def middles(size: int) -> Floats:
        first = np.arange(size)
        return Sliding(values, first, first + size).places(np.full(size, size // 2))[0]

    assert times_dearer(lambda: middles(size), lambda: middles(size // 10)) < 30
    low = middles(size)
    for w in (0, 1, size - 1):
        assert low[w] == np.sort(values[w : w + size])[size // 2]
