"""Samples by priority: what is chosen, and that nothing but the tuples has a say in it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracle import sample as twin
from tidegate.approx.priority import priorities, seed_of
from tidegate.approx.sample import lowest, lowest_of_one

WORDS = st.integers(0, 2**64 - 1) | st.sampled_from([0, 1, 2, 2**63, 2**64 - 1])
INT64 = st.integers(-(2**63), 2**63 - 1)


@given(st.integers(0, 2**64 - 1), st.lists(st.tuples(INT64 | st.integers(0, 2), INT64)))
def test_priorities_are_those_of_the_twin(seed: int, places: list[tuple[int, int]]) -> None:
    src, seq = np.array(places, np.int64).reshape(-1, 2).T
    expected = [twin.priority(seed, *place) for place in places]
    assert priorities(seed, src, seq).tolist() == expected


def test_seeds_differ_with_any_part() -> None:
    assert len({seed_of("q", 1), seed_of("q", 2), seed_of("q1"), seed_of("q"), seed_of()}) == 5
    assert seed_of("query", 7) == 974914011969577187


def test_priorities_of_neighbours_are_uniform_and_independent() -> None:
    """Of sources and numbers that differ in few bits: bits are even, and neither follows another.

    The deviations of n fair bits are within 5 standard deviations.
    """
    n = 2**15
    src, seq = np.repeat(np.arange(8), n // 8), np.tile(np.arange(n // 8), 8)
    words = priorities(1, src, seq)
    assert len(np.unique(words)) == n
    bits = (words[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    signs = bits.astype(np.int64) * 2 - 1
    assert np.abs(signs.mean(axis=0)).max() < 5 / np.sqrt(n)
    for distance in (1, 2, n // 8):
        together = (signs[distance:] * signs[:-distance]).mean(axis=0)
        assert np.abs(together).max() < 5 / np.sqrt(n - distance)
    other = priorities(2, src, seq)
    assert not np.intersect1d(words, other).size


@given(st.lists(WORDS, max_size=60), st.integers(0, 30))
def test_the_sample_of_one_group_is_that_of_many(given_words: list[int], k: int) -> None:
    words = np.array(given_words, np.uint64)
    expected = lowest(np.zeros(len(words), np.int64), 1, words, k)
    found = lowest_of_one(words, k)
    assert sorted(found.tolist()) == sorted(expected.tolist())
    assert words[found].tolist() == sorted(words[expected].tolist())


@given(
    st.lists(st.tuples(st.integers(0, 4), WORDS), max_size=60),
    st.integers(0, 30),
    st.sampled_from([0.0, 1e-3, 0.25, 0.5, 0.98, 1.0]),
)
def test_the_sample_is_that_of_the_twin(tuples: list[tuple[int, int]], k: int, rate: float) -> None:
    codes = np.array([code for code, _ in tuples], np.int64)
    words = np.array([word for _, word in tuples], np.uint64)
    positions = lowest(codes, 6, words, k, rate)
    assert len(set(positions.tolist())) == len(positions)
    found = [(codes[i], words[i]) for i in positions]
    expected = []
    for group in range(6):
        own = [(word, None) for code, word in tuples if code == group]
        expected += [(group, word) for word, _ in twin.sample(own, k, rate)]
    assert found == expected


@pytest.mark.parametrize(("k", "rate"), [(50, 0.02), (50, 0.2), (50, 0.0), (0, 0.02), (2000, 0.5)])
def test_a_sample_is_the_larger_of_rate_and_size(k: int, rate: float) -> None:
    """Groups of 900 and 100 tuples, in which 18 and 2, or 180 and 20, are below the rate."""
    codes = (np.arange(1000) % 10 == 0).astype(np.int64)
    words = priorities(7, 0 * codes, np.arange(1000))
    sizes = np.bincount(codes[lowest(codes, 2, words, k, rate)], minlength=2)
    for group in (0, 1):
        own = [(word, None) for word in words[codes == group].tolist()]
        assert sizes[group] == len(twin.sample(own, k, rate))
    assert (sizes >= np.minimum([900, 100], k)).all()


@given(
    seed=st.integers(0, 10**6),
    size=st.integers(0, 2000),
    groups=st.integers(1, 5),
    cuts=st.lists(st.integers(0, 2000), max_size=6),
    k=st.sampled_from([0, 1, 5, 30, 200]),
    rate=st.sampled_from([0.0, 0.02, 0.3]),
)
def test_samples_of_samples_are_those_of_the_whole(
    seed: int, size: int, groups: int, cuts: list[int], k: int, rate: float
) -> None:
    """Any parts of any permutation, merged in any order; and a smaller sample of a larger one."""
    chance = np.random.default_rng(seed)
    codes = chance.integers(0, groups, size)
    words = priorities(seed, chance.integers(0, 3, size), np.arange(size))
    whole = lowest(codes, groups, words, k, rate)
    moved = chance.permutation(size)
    edges = [0, *sorted(min(c, size) for c in cuts), size]
    parts = [moved[a:b] for a, b in pairwise(edges)]
    chance.shuffle(parts)
    held = np.empty(0, np.int64)
    for part in parts:
        own = part[lowest(codes[part], groups, words[part], k, rate)]
        both = np.concatenate([held, own])
        held = both[lowest(codes[both], groups, words[both], k, rate)]
    assert held.tolist() == whole.tolist()
    less = whole[lowest(codes[whole], groups, words[whole], k // 2)]
    assert less.tolist() == lowest(codes, groups, words, k // 2).tolist()


def test_every_tuple_is_as_likely_as_every_other() -> None:
    """Over 4,000 seeds, 5 of 20 tuples: each about 1,000 times, within 5 standard deviations."""
    times, tuples, k = 4000, 20, 5
    codes = np.repeat(np.arange(times), tuples)
    seq = np.tile(np.arange(tuples), times)
    one = np.arange(tuples)
    words = np.concatenate([priorities(seed_of(i), 0 * one, one) for i in range(times)])
    taken = np.bincount(seq[lowest(codes, times, words, k)], minlength=tuples)
    assert taken.sum() == times * k
    share = k / tuples
    assert np.abs(taken - times * share).max() < 5 * np.sqrt(times * share * (1 - share))


def test_groups_without_tuples_have_empty_samples() -> None:
    words = np.array([3, 1], np.uint64)
    assert lowest(np.array([4, 4]), 9, words, 10).tolist() == [1, 0]
    assert lowest(np.empty(0, np.int64), 0, words[:0], 10).tolist() == []


def test_words_that_are_not_uniform_are_sorted_too() -> None:
    """As no priorities are: hundreds close together, and one far away."""
    chance = np.random.default_rng(6)
    words = np.append(chance.integers(0, 1000, 700), 2**63).astype(np.uint64)
    words = words[chance.permutation(len(words))]
    for k in (10, 300, 1000):
        found = words[lowest(np.zeros(len(words), np.int64), 1, words, k)]
        reach = np.sort(words)[:k][-1]
        assert found.tolist() == np.sort(words[words <= reach]).tolist()
