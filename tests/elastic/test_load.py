"""The load of buckets over recent batches: what it is made of, and what it forgets."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.elastic.load import HALF_LIFE_S, RecentLoad, imbalance
from tidegate.model.observation import InstanceLoad, Observation
from tidegate.route.mapping import Mapping, even, switched

BUCKETS = 6


def seen(*cpu_s: float, period_s: float = 1.0, mapping: Mapping | None = None) -> Observation:
    """A batch in which buckets took so long; the others nothing."""
    mapping = mapping or even(BUCKETS, 2)
    buckets = np.array([*cpu_s, *[0.0] * (BUCKETS - len(cpu_s))])
    of = np.bincount(mapping.owner_array, weights=buckets, minlength=mapping.instances)
    loads = tuple(InstanceLoad(float(s), 0) for s in of)
    return Observation("join", 0, period_s, period_s, mapping, loads, buckets)


def test_before_the_first_batch_there_is_none() -> None:
    nothing = RecentLoad.none(even(BUCKETS, 2))
    assert nothing.buckets.tolist() == [0.0] * BUCKETS
    assert nothing.as_dict() == {"utilisation": [0, 0], "imbalance": 0, "hottest_buckets": []}


def test_one_batch_is_as_it_was_observed() -> None:
    load = RecentLoad.none(even(BUCKETS, 2)).after(seen(0.5, 0.25, 0.25, period_s=2.0))
    assert json.loads(json.dumps(load.as_dict())) == {
        "utilisation": [0.375, 0.125],
        "imbalance": 0.5,
        "hottest_buckets": [
            {"bucket": 0, "instance": 0, "utilisation": 0.25},
            {"bucket": 1, "instance": 1, "utilisation": 0.125},
            {"bucket": 2, "instance": 0, "utilisation": 0.125},
        ],
    }


def test_what_is_long_ago_counts_less() -> None:
    """After a half-life of idle time, and another batch of it, what was is a quarter of what is."""
    load = RecentLoad.none(even(BUCKETS, 2)).after(seen(1.0, period_s=HALF_LIFE_S))
    load = load.after(seen(0.0, 1.0, period_s=HALF_LIFE_S))
    assert load.buckets[0] / load.buckets[1] == 0.5
    assert load.buckets.sum() == pytest.approx(1 / HALF_LIFE_S)


def test_loads_stay_with_their_buckets_when_they_move() -> None:
    before = even(BUCKETS, 2)
    after = switched(before, 3)
    load = RecentLoad.none(before).after(seen(0.3, 0.2, mapping=before))
    load = load.after(seen(0.3, 0.2, mapping=after))
    assert load.buckets.tolist() == pytest.approx([0.3, 0.2, 0, 0, 0, 0])
    busy = np.zeros(3)
    busy[after.owners[0]] += 0.3
    busy[after.owners[1]] += 0.2
    assert load.utilisation.tolist() == pytest.approx(busy.tolist())


@given(st.lists(st.lists(st.floats(0, 10), min_size=BUCKETS, max_size=BUCKETS), max_size=20))
def test_it_is_the_same_for_the_same_batches_and_within_them(batches: list[list[float]]) -> None:
    """A share of time is never above the largest that was seen, and never below the least."""
    loads = [RecentLoad.none(even(BUCKETS, 2)) for _ in range(2)]
    for cpu_s in batches:
        loads = [load.after(seen(*cpu_s)) for load in loads]
    one, other = (load.buckets.tolist() for load in loads)
    assert one == other
    for bucket in range(BUCKETS if batches else 0):
        shares = [cpu_s[bucket] for cpu_s in batches]
        assert min(shares) - 1e-9 <= one[bucket] <= max(shares) + 1e-9


@pytest.mark.parametrize(
    ("loads", "expected"), [([], 0.0), ([0, 0], 0.0), ([5, 5], 0.0), ([10, 0], 1.0), ([7], 0.0)]
)
def test_imbalance_is_the_greatest_load_over_the_mean(loads: list[int], expected: float) -> None:
    assert imbalance(loads) == expected
