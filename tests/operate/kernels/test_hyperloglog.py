"""Sketches by the column against the library they are made for, one value after the other."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from datasketches import HLL_8, hll_sketch
from hypothesis import given
from hypothesis import strategies as st

from tidegate.operate.kernels.hyperloglog import (
    LEAST_LG_K,
    MOST_LG_K,
    Sketches,
    Words,
    coupons_of,
)

EXTREMES = [0, 1, 2**63 - 1, 2**63, 2**64 - 1, 0x7FF8000000000000]


def drawn(seed: int, size: int) -> Words:
    """Values with repetitions."""
    chance = np.random.default_rng(seed)
    return chance.choice(chance.integers(0, 2**64, max(size, 1), dtype=np.uint64), size)


def updated(lg_k: int, words: Words) -> hll_sketch:
    """The library's own sketch after one update for each value."""
    sketch = hll_sketch(lg_k, HLL_8)
    for word in words.view(np.int64).tolist():
        sketch.update(word)
    return sketch


def estimate(lg_k: int, words: Words) -> float:
    """What the library estimates when it may not use the order of the updates."""
    serialised = bytearray(updated(lg_k, words).serialize_updatable())
    serialised[5] |= 16
    return hll_sketch.deserialize(bytes(serialised)).get_estimate()


def one(sketches: Sketches, words: Words) -> pa.Array:
    return sketches.made(np.zeros(len(words), np.int64), words, 1)


@given(st.lists(st.integers(0, 2**64 - 1) | st.sampled_from(EXTREMES), max_size=7, unique=True))
def test_coupons_are_those_of_the_library(values: list[int]) -> None:
    words = np.array(values, np.uint64)
    listed = updated(12, words).serialize_compact()[8:]
    assert coupons_of(words).tolist() == np.frombuffer(listed, np.uint32).tolist()


def test_many_coupons_are_made_in_blocks() -> None:
    words = drawn(1, 100_000)
    parts = [coupons_of(words[i : i + 999]) for i in range(0, len(words), 999)]
    assert np.array_equal(coupons_of(words), np.concatenate(parts))


@pytest.mark.parametrize("lg_k", [LEAST_LG_K, 9, 12, MOST_LG_K])
def test_estimates_are_those_of_the_library(lg_k: int) -> None:
    sketches = Sketches(lg_k)
    most = sketches.most_coupons
    chance = np.random.default_rng(lg_k)
    sizes = {0, 1, 2, 7, 8, 9, min(most, 5000), most + 1, 3 * most, 40 * most}
    seen = 0
    for size in sorted(s for s in sizes if s <= 300_000):
        words = chance.integers(0, 2**64, size, dtype=np.uint64)
        assert sketches.estimates(one(sketches, words)).tolist() == [estimate(lg_k, words)]
        seen += 1
    assert seen >= 8


@given(
    lg_k=st.sampled_from([8, 9, 11]),
    size=st.integers(0, 3000),
    seed=st.integers(0, 10**6),
    cuts=st.lists(st.integers(0, 3000), max_size=5),
    groups=st.integers(1, 4),
)
def test_any_order_division_and_merging_gives_the_same_bytes(
    lg_k: int, size: int, seed: int, cuts: list[int], groups: int
) -> None:
    """Parts in any order, merged at once or one by one, are one sketch of all values together."""
    sketches, words = Sketches(lg_k), drawn(seed, size)
    chance = np.random.default_rng(seed)
    codes = chance.integers(0, groups, size) ** 2 % groups
    whole = sketches.made(codes, words, groups)
    order = chance.permutation(size)
    edges = np.split(order, sorted(min(c, size) for c in cuts))
    chance.shuffle(edges)
    parts = [sketches.made(codes[rows], words[rows], groups) for rows in edges]
    numbers = np.arange(groups)
    at_once = sketches.merged(np.tile(numbers, len(parts)), pa.concat_arrays(parts), groups)
    one_by_one = parts[0]
    for part in parts[1:]:
        both = pa.concat_arrays([part, one_by_one])
        one_by_one = sketches.merged(np.tile(numbers, 2), both, groups)
    assert at_once.equals(whole)
    assert one_by_one.equals(whole)
    assert sketches.estimates(whole).tolist() == [
        estimate(lg_k, words[codes == group]) for group in range(groups)
    ]


def test_the_order_of_updates_changes_the_library_s_usual_estimate_and_not_this_one() -> None:
    words = drawn(3, 5000)
    orders = [np.random.default_rng(i).permutation(words) for i in range(5)]
    assert len({updated(9, order).get_estimate() for order in orders}) > 1
    assert len({estimate(9, order) for order in orders}) == 1


def test_slices_of_a_column_are_read_from_where_they_begin() -> None:
    sketches = Sketches(9)
    codes, words = np.repeat(np.arange(4), [3, 600, 0, 100]), drawn(4, 703)
    whole = sketches.made(codes, words, 4)
    part = whole.slice(1, 2)
    assert sketches.merged(np.arange(2), part, 2).equals(part)
    assert sketches.estimates(part).tolist() == sketches.estimates(whole).tolist()[1:3]


def test_a_sketch_stays_small() -> None:
    sketches = Sketches(9)
    for size, bytes_ in ((0, 0), (1, 4), (48, 192), (49, 512), (100_000, 512)):
        words = np.arange(size, dtype=np.uint64)
        assert len(one(sketches, words)[0].as_py()) == bytes_


def test_nothing_in_gives_nothing_out() -> None:
    sketches, none = Sketches(9), np.empty(0, np.int64)
    empty = sketches.made(none, none.view(np.uint64), 0)
    assert len(empty) == 0
    for column in (empty, pa.array([], empty.type)):
        assert sketches.merged(none, column, 0).equals(empty)
        assert sketches.estimates(column).tolist() == []
    assert sketches.merged(none, empty, 2).to_pylist() == [b"", b""]
