"""Panes and windows against counting."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidegate.operate.kernels.window import Cover, expand, spans

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
