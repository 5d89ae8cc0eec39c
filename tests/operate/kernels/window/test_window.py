"""Panes and windows against counting."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidegate.operate.kernels.window.window import Cover, expand, once, spans

PANES = st.lists(st.integers(-30, 30), min_size=1, max_size=12)
EDGE = st.one_of(st.integers(-40, 40), st.sampled_from([-(2**70), 2**70]))


@given(PANES, st.integers(1, 9), st.integers(1, 9), EDGE, EDGE, st.integers(1, 20))
def test_every_window_over_a_pane_once(
    panes: list[int], a: int, b: int, first: int, last: int, limit: int
) -> None:
    length, step = max(a, b), min(a, b)
    low, high = Cover(length, step).bounds(np.array(panes), first, last)
    rows, windows = expand(low, high)
    expected = [
        (row, k)
        for row, pane in enumerate(panes)
        for k in range(-50, 50)
        if k * step <= pane < k * step + length and first <= k <= last
    ]
    assert list(zip(rows.tolist(), windows.tolist(), strict=True)) == expected
    cut = list(spans(low, high, np.ones(len(panes), np.int64), limit))
    stepped = []
    for start, stop in cut:
        rows, windows = expand(np.maximum(low, start), np.minimum(high, stop))
        assert 0 < len(rows) <= limit or start == stop
        stepped += list(zip(windows.tolist(), rows.tolist(), strict=True))
    assert cut == sorted(cut)
    assert sorted(stepped) == sorted((k, row) for row, k in expected)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(-30, 30)), min_size=1, unique=True),
    st.integers(1, 9),
    st.integers(1, 9),
)
def test_windows_of_a_key_are_listed_once_at_the_first_pane_they_have(
    rows: list[tuple[int, int]], a: int, b: int
) -> None:
    length, step = max(a, b), min(a, b)
    rows.sort()
    codes, panes = (np.array(column) for column in zip(*rows, strict=True))
    low, high = Cover(length, step).bounds(panes, -(2**70), 2**70)
    places, windows = expand(once(codes, low, high), high)
    expected = {}
    for place, (key, pane) in enumerate(rows):
        for k in range(-50, 50):
            if k * step <= pane < k * step + length:
                expected.setdefault((key, k), place)
    found = zip(codes[places].tolist(), windows.tolist(), strict=True)
    assert dict(zip(found, places.tolist(), strict=True)) == expected
    assert len(places) == len(expected)
