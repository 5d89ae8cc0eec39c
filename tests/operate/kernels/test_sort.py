"""Values sorted within groups, against numpy's sort of one group after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.operate.kernels import sort
from tidegate.operate.kernels.group import Groups
from tidegate.operate.kernels.sort import order_of_hashes, sorted_rows, sorted_values
from tidegate.operate.kernels.sort_loop import loop

KEYS = st.sampled_from([0.0, 1.5, -2.0, np.inf, -np.inf, np.nan])


def check(codes: Any, groups: int, keys: Any) -> None:
    of = Groups(codes, groups)
    expected = [np.sort(keys[codes == group]) for group in range(groups)]
    rows = sorted_rows(of, keys)
    assert sorted(rows.tolist()) == list(range(len(keys)))
    np.testing.assert_array_equal(codes[rows], np.sort(codes))
    np.testing.assert_array_equal(keys[rows], np.concatenate(expected))
    np.testing.assert_array_equal(sorted_values(of, keys), np.concatenate(expected))


@given(st.lists(st.tuples(st.integers(0, 3), KEYS), max_size=60))
def test_few_values_and_many_are_sorted_alike(pairs: list[tuple[int, float]]) -> None:
    codes = np.array([c for c, _ in pairs], np.int64)
    keys = np.array([k for _, k in pairs])
    groups = Groups(codes, 4)
    rows, ranked, left_out = loop("float64")(groups.codes, groups.counts, keys)
    assert not len(left_out)
    np.testing.assert_array_equal(ranked, sorted_values(groups, keys))
    np.testing.assert_array_equal(keys[rows], ranked)


@pytest.mark.parametrize("shape", ["random", "lists", "descending", "one group", "whole numbers"])
def test_large_groups_and_lists_that_are_sorted_already(shape: str) -> None:
    generator = np.random.default_rng(5)
    rows, groups = 20_000, 1 if shape == "one group" else 50
    codes = np.minimum(generator.geometric(0.2, rows) - 1, groups - 1).astype(np.int64)
    keys: Any = np.where(generator.random(rows) < 0.01, np.nan, generator.normal(0, 1, rows))
    if shape == "lists":
        order = np.lexsort((keys, codes, np.arange(rows) // 7_000))
        codes, keys = codes[order], keys[order]
    elif shape == "descending":
        keys = -np.arange(rows, dtype=np.float64)
    elif shape == "whole numbers":
        keys = generator.integers(-9, 9, rows)
    check(codes, groups, keys)


def test_few_values_need_no_compiled_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sort, "_by_loop", None)
    check(np.array([1, 0, 1]), 2, np.array([2.0, 3.0, 1.0]))


@pytest.mark.parametrize("rows", [0, 1, 200, 5_000])
@pytest.mark.parametrize("different", [2, 3_000])
def test_hashes_that_are_equal_stay_in_their_order(rows: int, different: int) -> None:
    """Also two that are most of all, and lie in one group of neighbours."""
    generator = np.random.default_rng(rows)
    hashes = np.append(generator.integers(0, 2**53, different - 1), 2**53 - 1).astype(np.float64)
    if different == 2:
        hashes[1] = hashes[0] + 1
    codes = generator.choice(hashes, rows)
    codes[generator.random(rows) < 0.01] = np.nan
    expected = np.argsort(codes, kind="stable")
    np.testing.assert_array_equal(order_of_hashes(codes, 53), expected)
