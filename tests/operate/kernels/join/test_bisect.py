"""Counting smaller values by looking for either in the other."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidegate.operate.kernels.join.bisect import below

NUMBERS = st.lists(st.integers(-3, 3), max_size=12).map(sorted)


@given(NUMBERS, NUMBERS)
def test_how_many_are_below(values: list[int], wanted: list[int]) -> None:
    found = below(np.array(values, np.int64), np.array(wanted, np.int64))
    assert found.tolist() == [sum(v < w for v in values) for w in wanted]
