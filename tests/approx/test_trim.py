"""Which bins are trimmed, beside the algorithm as it is printed."""

from __future__ import annotations

from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracle.trim import shed_part
from tidegate.approx.bound import least
from tidegate.approx.trim import TrimThresholds, sample_size, trim

GROUPS = st.lists(
    st.tuples(st.integers(0, 5), st.integers(1, 400), st.integers(1, 400)), min_size=1, max_size=40
)


THRESHOLDS = TrimThresholds()


@given(GROUPS, st.sampled_from([0.01, 0.15, 0.5]), st.sampled_from([1, 3, 200, None]))
def test_what_is_trimmed_is_what_the_printed_algorithm_trims(
    groups: list[tuple[int, int, int]], saving: float, cold_rows: int | None
) -> None:
    place, tuples, needed = (np.array(column) for column in zip(*groups, strict=True))
    found = trim(place, tuples, needed, 6, TrimThresholds(saving, cold_rows))
    load = np.bincount(place, tuples, 6).astype(int)
    cold = ceil(sum(load) / len(groups)) if cold_rows is None else cold_rows
    expected = shed_part(load.tolist(), dict(enumerate(groups)), cold)
    if found.skipped:
        assert found.saving < saving
        assert not found.bins.any()
        return
    assert np.flatnonzero(found.bins & (needed < tuples)).tolist() == sorted(expected)


def test_where_little_can_be_saved_nothing_is_looked_for() -> None:
    place, tuples = np.array([0, 1]), np.array([1000, 10])
    assert trim(place, tuples, np.array([860, 10]), 2, THRESHOLDS).skipped
    assert not trim(place, tuples, np.array([100, 10]), 2, THRESHOLDS).skipped


def test_buckets_below_the_highest_floor_are_left_as_they_are() -> None:
    tuples, needed = np.array([900, 300, 200]), np.array([250, 100, 100])
    found = trim(np.array([0, 1, 2]), tuples, needed, 3, TrimThresholds(cold_rows=3))
    assert found.bins.tolist() == [True, True, False]
    assert found.saving == pytest.approx(950 / 1400)


def test_unless_given_only_groups_above_the_mean_are_trimmed() -> None:
    """T_g >= |S| / G: bins without tuples are not groups."""
    tuples, needed = np.array([900, 0, 300, 200, 0]), np.array([50, 0, 50, 50, 0])
    found = trim(np.array([0, 1, 0, 2, 2]), tuples, needed, 3, THRESHOLDS)
    assert found.bins.tolist() == [True, False, False, False, False]
    assert found.saving == pytest.approx(850 / 1400)
    assert THRESHOLDS.hot_from(tuples) == 467


def test_samples_are_as_large_as_the_equation_says() -> None:
    tuples = np.array([10_000_000, 1000, 200])
    sizes = sample_size(tuples, tuples, np.full(3, 10.0), np.full(3, 100.0), 0.05, 0.95)
    plain = (1.96 * 10 / (0.05 * 10)) ** 2
    assert sizes[0] == pytest.approx(plain, rel=0.001)
    assert sizes[1] == pytest.approx(plain / (1 + plain / 1000), rel=0.01)
    assert sizes[2] == 200


def test_samples_show_what_is_rare_and_are_everything_where_nothing_is_known() -> None:
    alike = sample_size(
        np.array([5000] * 3),
        np.array([5000, 5000, 1]),
        np.array([7.0, 0.0, 7.0]),
        np.array([0.01, 1.0, np.nan]),
        0.1,
        0.95,
    )
    assert alike.tolist() == [int(least(0.05)), 5000, 5000]
