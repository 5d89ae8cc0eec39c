"""Samples by priority: what is chosen, and that nothing but the tuples has a say in it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracle import sample as twin
from tidegate.approx.array import Ints, Words
from tidegate.approx.priority import priorities, seed_of
from tidegate.approx.sample import depths, sampled, window_depths

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


def drawn(codes: Ints, groups: int, words: Words, k: int) -> Ints:
    """The positions of samples."""
    taken = sampled(codes, groups, words, k)
    return np.arange(len(words)) if taken is None else np.flatnonzero(taken)


@given(st.lists(st.tuples(st.integers(0, 4), WORDS), max_size=60), st.integers(1, 30))
def test_the_sample_is_that_of_the_twin(tuples: list[tuple[int, int]], k: int) -> None:
    codes = np.array([code for code, _ in tuples], np.int64)
    words = np.array([word for _, word in tuples], np.uint64)
    positions = drawn(codes, 6, words, k)
    for group in range(6):
        own = [(word, None) for code, word in tuples if code == group]
        found = sorted(words[positions[codes[positions] == group]].tolist())
        assert found == [word for word, _ in twin.sample(own, k)]
        alone = words[codes == group]
        assert sorted(alone[drawn(0 * codes[codes == group], 1, alone, k)].tolist()) == found


def test_the_sample_of_one_large_group_is_found_from_any_guess() -> None:
    """Priorities that are far from uniform: all small, all large, or both."""
    chance = np.random.default_rng(6)
    few, many = chance.integers(0, 1000, 700), chance.integers(2**63, 2**64 - 1, 9000, np.uint64)
    for words in (few.astype(np.uint64), many, np.concatenate([few.astype(np.uint64), many])):
        for k in (1, 10, 300, 5000):
            found = sorted(words[drawn(np.zeros(len(words), np.int64), 1, words, k)].tolist())
            assert found == [w for w, _ in twin.sample([(w, None) for w in words.tolist()], k)]


@pytest.mark.parametrize("k", [1, 50, 195, 2000])
def test_a_sample_has_at_least_its_size_and_seldom_twice_that(k: int) -> None:
    chance = np.random.default_rng(k)
    sizes = chance.integers(0, 20 * k, 200)
    codes = np.repeat(np.arange(200), sizes)
    words = priorities(7, 0 * codes, np.arange(len(codes)))
    kept = np.bincount(codes[drawn(codes, 200, words, k)], minlength=200)
    assert (kept >= np.minimum(sizes, k)).all()
    assert k == 1 or np.mean(kept > 2 * k) < 0.2


@given(
    seed=st.integers(0, 10**6),
    size=st.integers(0, 2000),
    groups=st.integers(1, 5),
    cuts=st.lists(st.integers(0, 2000), max_size=6),
    k=st.sampled_from([1, 5, 30, 200]),
)
def test_samples_of_samples_are_those_of_the_whole(
    seed: int, size: int, groups: int, cuts: list[int], k: int
) -> None:
    """Any parts of any permutation, merged in any order; and a smaller sample of a larger one."""
    chance = np.random.default_rng(seed)
    codes = chance.integers(0, groups, size)
    words = priorities(seed, chance.integers(0, 3, size), np.arange(size))
    whole = drawn(codes, groups, words, k)
    moved = chance.permutation(size)
    edges = [0, *sorted(min(c, size) for c in cuts), size]
    parts = [moved[a:b] for a, b in pairwise(edges)]
    chance.shuffle(parts)
    held = np.empty(0, np.int64)
    for part in parts:
        own = part[drawn(codes[part], groups, words[part], k)]
        both = np.concatenate([held, own])
        held = both[drawn(codes[both], groups, words[both], k)]
    assert sorted(held.tolist()) == whole.tolist()
    less = whole[drawn(codes[whole], groups, words[whole], max(k // 2, 1))]
    assert less.tolist() == drawn(codes, groups, words, max(k // 2, 1)).tolist()


@pytest.mark.parametrize("k", [1, 4, 30])
@pytest.mark.parametrize("seed", range(20))
def test_samples_of_windows_are_those_of_their_tuples(seed: int, k: int) -> None:
    size = 1 + 20 * seed
    chance = np.random.default_rng(seed)
    words = priorities(seed, np.zeros(size, np.int64), np.arange(size))
    first = np.sort(chance.integers(0, size, 12))
    last = np.minimum(first + 100, size)
    found = {}
    for _, windows, taken in window_depths(depths(words), first, last, k):
        for w in windows.tolist():
            found[w] = np.flatnonzero(taken[first[w] : last[w]]).tolist()
    for w in range(12):
        own = words[first[w] : last[w]]
        assert found[w] == drawn(np.zeros(len(own), np.int64), 1, own, k).tolist()


def test_every_tuple_is_as_likely_as_every_other() -> None:
    """Over 4,000 seeds, at least 5 of 20 tuples: each as often, within 5 standard deviations."""
    times, tuples, k = 4000, 20, 5
    codes = np.repeat(np.arange(times), tuples)
    seq = np.tile(np.arange(tuples), times)
    one = np.arange(tuples)
    words = np.concatenate([priorities(seed_of(i), 0 * one, one) for i in range(times)])
    taken = np.bincount(seq[drawn(codes, times, words, k)], minlength=tuples)
    share = taken.sum() / (times * tuples)
    assert share >= k / tuples
    assert np.abs(taken - times * share).max() < 5 * np.sqrt(times * share * (1 - share))


def test_groups_without_tuples_have_empty_samples() -> None:
    words = np.array([3, 1], np.uint64)
    assert drawn(np.array([4, 4]), 9, words, 10).tolist() == [0, 1]
    assert drawn(np.empty(0, np.int64), 0, words[:0], 10).tolist() == []
