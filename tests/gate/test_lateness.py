"""Lateness is decided in the source's own sequence, whatever the cut."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.oracle.gate import PlainSource
from tidegate.batch import MIN_US
from tidegate.gate.lateness import late_mask, needed_disorder_us, running_newest

times = st.lists(st.one_of(st.none(), st.integers(-20, 20)), max_size=40)


@given(times, st.integers(0, 6), st.data())
def test_equals_the_plain_twin_for_any_cut(values, disorder, data):
    plain = PlainSource(disorder)
    expected = [not plain.speak(i, ts) and ts is not None for i, ts in enumerate(values)]
    array = np.array([0 if v is None else v for v in values], np.int64)
    valid = np.array([v is not None for v in values], np.bool_)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(values)), max_size=4)))
    bounds = [0, *cuts, len(values)]
    floor, found = MIN_US, []
    for start, stop in pairwise(bounds):
        part, ok = array[start:stop], valid[start:stop]
        found += late_mask(part, ok, floor, disorder, MIN_US).tolist()
        if stop > start:
            floor = int(running_newest(part, ok, floor)[-1])
    assert found == expected


def test_a_late_tuple_does_not_raise_what_counts_as_newest():
    newest = running_newest(np.array([10, 3, 11]), np.array([True, True, True]), MIN_US)
    assert newest.tolist() == [10, 10, 11]


def test_what_readers_have_passed_is_late_for_a_source_that_joins():
    late = late_mask(np.array([5, 9, 12]), np.array([True] * 3), MIN_US, 100, consumed_us=10)
    assert late.tolist() == [True, True, False]


def test_extreme_times_do_not_wrap_around():
    low = MIN_US + 3
    late = late_mask(np.array([low, low + 1]), np.array([True, True]), MIN_US, 10, MIN_US)
    assert late.tolist() == [False, False]


@given(st.lists(st.integers(-20, 20), max_size=40), st.integers(0, 6), st.data())
def test_the_disorder_that_is_needed_is_the_least_that_suffices(values, disorder, data):
    array, valid = np.array(values, np.int64), np.ones(len(values), np.bool_)
    needed = 0
    bounds = [0, *sorted(data.draw(st.lists(st.integers(0, len(values)), max_size=4))), len(values)]
    floor = MIN_US
    for start, stop in pairwise(bounds):
        part, ok = array[start:stop], valid[start:stop]
        late = late_mask(part, ok, floor, disorder, MIN_US)
        before = np.concatenate([[floor], running_newest(part, ok, floor)[:-1]])[: len(part)]
        needed = max(needed, needed_disorder_us(part, late, before, disorder, MIN_US))
        if stop > start:
            floor = int(running_newest(part, ok, floor)[-1])
    assert not late_mask(array, valid, MIN_US, max(needed, disorder), MIN_US).any()
    if needed:
        assert needed > disorder
        assert late_mask(array, valid, MIN_US, needed - 1, MIN_US).any()


def test_the_frontier_counts_with_the_disorder_that_held_it_back():
    """It was at 10 with a disorder of 3, so at 5 with one of 8."""
    times = np.array([5, 9])
    late = late_mask(times, np.array([True] * 2), MIN_US, 3, consumed_us=10)
    assert needed_disorder_us(times, late, np.array([MIN_US, 5]), 3, 10) == 8
