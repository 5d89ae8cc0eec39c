"""Searches in a grid find what binary searches find."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.operate.kernels.join.grid import SortedGrid

WHOLE = st.one_of(st.integers(-5, 20), st.integers(-(2**63), 2**63 - 1))
REAL = st.one_of(st.integers(-5, 20).map(float), st.floats(allow_nan=False))


@pytest.mark.parametrize(
    ("values", "wanted", "number"),
    [(WHOLE, WHOLE, np.int64), (REAL, st.one_of(REAL, st.just(np.nan)), np.float64)],
    ids=["int64", "float64"],
)
@given(data=st.data())
def test_a_grid_finds_what_searches_find(
    data: st.DataObject, values: st.SearchStrategy, wanted: st.SearchStrategy, number: type
) -> None:
    among = np.array(sorted(data.draw(st.lists(values, max_size=30))), number)
    asked = np.array(data.draw(st.lists(wanted, max_size=30)), number)
    grid = SortedGrid(among, few=0)
    assert grid.below(asked).tolist() == np.searchsorted(among, asked).tolist()
    assert grid.up_to(asked).tolist() == np.searchsorted(among, asked, "right").tolist()


def test_values_that_stand_close_together_are_still_found() -> None:
    among = np.r_[np.arange(10_000) * 1e-9, 1e9]
    asked = np.random.default_rng(5).permutation(np.r_[among, among + 5e-10])
    found = SortedGrid(among, few=0).up_to(asked)
    assert (found == np.searchsorted(among, asked, "right")).all()
