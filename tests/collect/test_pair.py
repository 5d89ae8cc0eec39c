"""The order of pairs, against a plain sort by the later tuple and then the earlier one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.batch import MAX_US, MIN_US, ORDER
from tidegate.collect.pair import PairOrder, pair_rows, sorted_pairs

Tuple = tuple[int, int, int]

NEAR = st.integers(0, 3)
FAR = st.sampled_from([MIN_US, MIN_US + 1, -(2**61), -1, 0, 1, 2**61, MAX_US - 1, MAX_US])
"""Times of which two are further apart than 62 bits can say."""


def tuples(times: st.SearchStrategy[int]) -> st.SearchStrategy[Tuple]:
    return st.tuples(times, st.integers(0, 2), st.integers(0, 2))


PAIRS = st.one_of(
    st.lists(st.tuples(tuples(NEAR), tuples(NEAR)), max_size=14),
    st.lists(st.tuples(tuples(FAR), tuples(FAR)), max_size=14),
)


def rows(pairs: list[tuple[Tuple, Tuple]]) -> pa.Table:
    sides = [
        pa.table(
            {name: pa.array([p[i][c] for p in pairs], pa.int64()) for c, name in enumerate(ORDER)}
        )
        for i in range(2)
    ]
    shown = {"pair": pa.array([str(p) for p in pairs], pa.string())}
    return pair_rows(shown, sides[0], sides[1])


def listed(table: pa.Table) -> list[str]:
    return table.column("pair").to_pylist()


@given(PAIRS, st.integers(1, 3))
def test_the_outputs_of_instances_are_merged_as_by_sorting_all(
    pairs: list[tuple[Tuple, Tuple]], instances: int
) -> None:
    parts = [rows(sorted(pairs[i::instances])) for i in range(instances)]
    assert listed(PairOrder().merge(parts, (), None)) == [str(p) for p in sorted(pairs)]


@given(PAIRS)
def test_the_pairs_of_an_instance_are_sorted(pairs: list[tuple[Tuple, Tuple]]) -> None:
    later = sorted({p[0] for p in pairs})
    numbers = np.array([later.index(p[0]) for p in pairs], np.int64)
    assert listed(sorted_pairs(rows(pairs), numbers)) == [str(p) for p in sorted(pairs)]


@pytest.mark.parametrize("bits", [1, 40, 61, 62, 63])
def test_later_tuples_and_times_that_just_fit_into_a_word_or_not(bits: int) -> None:
    """The times take so many bits; the numbers of the later tuples take two more."""
    times = [-(2 ** (bits - 1)), -1, 0, 2 ** (bits - 1) - 1]
    pairs = [((n, 0, 0), (t, 0, 0)) for n in (0, 1, 2, 3) for t in times]
    mixed = [pairs[i] for i in np.random.default_rng(bits).permutation(len(pairs))]
    numbers = np.array([p[0][0] for p in mixed], np.int64)
    assert listed(sorted_pairs(rows(mixed), numbers)) == [str(p) for p in pairs]
