"""Sets of buckets: what Python's own sets say, one object for equal ones, and a short text."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.state.bucket_set import BucketSet
from tidegate.state.short_text import pack_numbers, unpack_numbers

BUCKETS = st.sets(st.integers(0, 300), max_size=40)


@given(BUCKETS, st.integers(-1, 310))
def test_it_is_the_set_that_it_was_made_of(buckets: set[int], asked: int) -> None:
    made = BucketSet.of(sorted(buckets))
    assert list(made) == sorted(buckets)
    assert all(type(b) is int for b in made)
    assert made.numbers().tolist() == np.asarray(made).tolist() == sorted(buckets)
    assert len(made) == len(buckets)
    assert (asked in made) == (asked in buckets)
    assert bool(made) == bool(buckets)


@given(BUCKETS, BUCKETS)
def test_equal_sets_are_one_object_wherever_they_come_from(one: set[int], other: set[int]) -> None:
    made = BucketSet.of(list(one))
    flags = np.zeros(512, np.bool_)
    flags[sorted(one)] = True
    ways = (
        BucketSet.of(sorted(one, reverse=True)),
        BucketSet.where(flags),
        BucketSet.from_text(made.text),
        BucketSet.union([made, BucketSet.of([])]),
        pickle.loads(pickle.dumps(made)),
    )
    assert all(way is made for way in ways)
    assert (BucketSet.of(list(other)) == made) == (one == other)
    assert (BucketSet.of(list(other)).text == made.text) == (one == other)


@given(BUCKETS, BUCKETS)
def test_it_is_combined_as_sets_are(one: set[int], other: set[int]) -> None:
    made, second = BucketSet.of(list(one)), BucketSet.of(list(other))
    assert set(made & second) == one & other
    assert set(made - second) == one - other
    assert set(made | second) == set(BucketSet.union([made, second, made])) == one | other


@given(BUCKETS, st.lists(st.integers(0, 2), min_size=301, max_size=301))
def test_a_single_owner_is_found(buckets: set[int], owners: list[int]) -> None:
    found = {owners[b] for b in buckets}
    expected = found.pop() if len(found) == 1 else None
    assert BucketSet.of(list(buckets)).owner(np.array(owners)) == expected


def test_a_pickle_of_many_has_the_set_once() -> None:
    made = BucketSet.of(np.arange(0, 60_000, 3))
    assert len(pickle.dumps([made] * 1_000)) < 3_000 + len(pickle.dumps(made))


def test_buckets_below_zero_are_refused() -> None:
    with pytest.raises(ValueError, match="numbered from 0 on, got -1"):
        BucketSet.of([3, -1])


@pytest.mark.parametrize("text", ["?", "eJw=", "AAAA", "é"])
def test_text_that_is_no_set_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        BucketSet.from_text(text)


@given(st.lists(st.integers(0, 65_535), max_size=50))
def test_numbers_come_back(numbers: list[int]) -> None:
    assert unpack_numbers(pack_numbers(numbers)) == numbers


@pytest.mark.parametrize("numbers", [[-1], [65_536, 2], [0.5]])
def test_numbers_that_do_not_fit_are_refused(numbers: list[float]) -> None:
    with pytest.raises(ValueError, match="numbers of 0 to 65535"):
        pack_numbers(numbers)
