"""Places of sorted numbers among others, added up."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.operate.kernels.join import place_loop

sorted_numbers = st.lists(st.integers(-5, 20), max_size=30).map(
    lambda n: np.array(sorted(n), np.int64)
)


@pytest.mark.parametrize("few", [0, 1_000])
@given(among=sorted_numbers, asked=sorted_numbers)
def test_one_pass_finds_what_searches_find(few: int, among: np.ndarray, asked: np.ndarray) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(place_loop, "_FEW", few)
        found = place_loop.sum_of_places(among, asked)
    assert found == sum(int((among < one).sum()) for one in asked)
