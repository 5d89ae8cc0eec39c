"""What there is to do at given rates, by kind of operator."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tidegate.model.cost.sample import WorkCounts
from tidegate.model.operation import Lookback
from tidegate.model.sizing.workload import (
    GroupWorkload,
    JoinWorkload,
    TupleWorkload,
    groups_of,
    keys_of,
)


def test_a_join_compares_each_tuple_with_the_window_of_the_other_side() -> None:
    scan = JoinWorkload((Lookback(seconds=10), Lookback(seconds=20)), (0, 1), (1.0, 1.0), 1.0, 0.01)
    pairs = 100 * 50 * 20 + 50 * 100 * 10
    assert scan.counts([100, 50]) == WorkCounts(150, pairs, pairs * 0.01)


def test_windows_of_tuples_filters_several_inputs_and_an_index() -> None:
    windows = (Lookback(rows=1_000), Lookback(seconds=10))
    join = JoinWorkload(windows, (0, 1, 0), (0.5, 1.0), compared=0.1, sigma=0.02)
    left, right = (100 + 60) * 0.5, 20
    pairs = left * right * 10 + right * 1_000
    assert join.counts([100, 20, 60]) == WorkCounts(180, pytest.approx(pairs * 0.1), pairs * 0.02)


def test_windows_put_out_all_groups_where_there_are_many_tuples_and_tuples_where_few() -> None:
    grouped = GroupWorkload(range_s=10, slide_s=5, keys=100)
    assert grouped.counts([1e6]).outputs == pytest.approx(100 / 5)
    assert grouped.counts([0.1]).outputs == pytest.approx(0.1 * 10 / 5, rel=0.01)
    assert GroupWorkload(10, 5, math.inf).counts([70]) == WorkCounts(70, 0, 140)
    assert GroupWorkload(10, 5, 0).counts([70]) == WorkCounts(70, 0, 0)


def test_keys_from_the_groups_that_were_seen() -> None:
    rng = np.random.default_rng(1)
    for keys in (1, 7, 500, 20_000):
        seen = len(np.unique(rng.integers(0, keys, 5_000)))
        assert keys_of(5_000, seen) == pytest.approx(keys, rel=0.1)
    assert keys_of(100, 100) == math.inf
    assert keys_of(100, 0) == 0
    assert groups_of(100, keys_of(100, 63)) == pytest.approx(63)


def test_other_operators_put_out_rows_for_tuples() -> None:
    assert TupleWorkload(0.25).counts([100, 300]) == WorkCounts(400, 0, 100)
