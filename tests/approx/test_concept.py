"""Concepts of windows and their drift."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.approx.concept import Drift, GroupConcept, ScalarConcept

GROUPS = st.dictionaries(st.integers(0, 20), st.integers(1, 1000), max_size=12)


def concept(frequencies: dict[int, int]) -> GroupConcept:
    return GroupConcept.of(
        np.array(list(frequencies), np.uint64), np.array(list(frequencies.values()), np.int64)
    )


def test_groups_that_stay_and_groups_that_go() -> None:
    before = concept({7: 50, 1: 30, 2: 20})
    assert before.groups.tolist() == [1, 2, 7]
    assert before.drift_to(before).overlap == 1
    assert before.drift_to(before).distance < 1e-7
    assert before.drift_to(concept({8: 1})) == Drift(0.0, 1.0)
    drift = before.drift_to(concept({1: 60, 7: 20, 3: 20}))
    assert drift.overlap == 0.5
    assert drift.distance == pytest.approx((1 - 0.18**0.5 - 0.1**0.5) ** 0.5)
    assert concept({}).drift_to(concept({})) == Drift(1.0, 0.0)
    assert concept({}).drift_to(before) == Drift(0.0, 1.0)


@given(GROUPS, GROUPS)
def test_drift_is_the_same_in_both_directions(one: dict[int, int], other: dict[int, int]) -> None:
    there, back = concept(one).drift_to(concept(other)), concept(other).drift_to(concept(one))
    assert (there.overlap, there.distance) == pytest.approx((back.overlap, back.distance))
    assert 0 <= there.overlap <= 1
    assert 0 <= there.distance <= 1
    common = one.keys() & other.keys()
    assert there.overlap == (len(common) / len(one | other) if one | other else 1.0)


def test_a_value_that_moves_and_a_value_that_spreads() -> None:
    before = ScalarConcept(10.0, 4.0)
    assert before.drift_to(before) == Drift(1.0, 0.0)
    near, far = (before.drift_to(ScalarConcept(mean, 4.0)) for mean in (11.0, 30.0))
    assert near.overlap > 0.9 > far.overlap
    assert near.distance < 0.25 < 0.99 < far.distance <= 1
    assert before.drift_to(ScalarConcept(10.0, 400.0)).distance > 0.5
    assert ScalarConcept(1.0, 0.0).drift_to(ScalarConcept(2.0, 0.0)) == Drift(0.0, 1.0)
