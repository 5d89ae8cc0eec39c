"""Balancing: even loads by few moves, none of which makes it worse; beside a plain twin."""

from __future__ import annotations

import itertools
import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.batch import EpochId
from tidegate.errors import OptionError
from tidegate.route.balance import balanced
from tidegate.route.mapping import Mapping, even, switched


def mapping_of(owners: list[int], instances: int) -> Mapping:
    return Mapping(EpochId(3), instances, tuple(owners))


def moved(before: Mapping, after: Mapping) -> int:
    return sum(a != b for a, b in zip(before.owners, after.owners, strict=True))


def totals(mapping: Mapping, loads: list[float]) -> list[float]:
    return [sum(loads[b] for b in mapping.owned_by(i)) for i in range(mapping.instances)]


@st.composite
def cases(draw: st.DrawFn) -> tuple[Mapping, list[float]]:
    """Any mapping with loads that floats add without an error, some of them none."""
    instances = draw(st.integers(1, 6))
    owners = st.lists(st.integers(0, instances - 1), min_size=instances, max_size=40)
    mapping = mapping_of(draw(owners), instances)
    size = mapping.buckets
    loads = draw(st.lists(st.integers(0, 1_000), min_size=size, max_size=size))
    return mapping, [float(load) for load in loads]


def plain(mapping: Mapping, loads: list[float], within: float) -> tuple[int, ...]:
    """The same greedy rule over every giver and bucket, counted anew at each move."""
    owners, instances = list(mapping.owners), mapping.instances
    while True:
        held = [[b for b, o in enumerate(owners) if o == i] for i in range(instances)]
        of = [sum(loads[b] for b in buckets) for buckets in held]
        if statistics.pstdev(of) <= within * statistics.fmean(of):
            return tuple(owners)
        taker = of.index(min(of))
        for giver in sorted(range(instances), key=lambda i: (-of[i], i)):
            difference = of[giver] - of[taker]
            fitting = [b for b in held[giver] if 0 < loads[b] < difference]
            if fitting:
                break
        else:
            return tuple(owners)
        half = difference / 2
        best = min(fitting, key=lambda b: (abs(loads[b] - half), loads[b], b))
        owners[best] = taker


@given(cases(), st.sampled_from([0.0, 0.05, 0.3]))
def test_it_is_the_plain_rule(case: tuple[Mapping, list[float]], within: float) -> None:
    mapping, loads = case
    after = balanced(mapping, loads, within=within)
    assert after.owners == plain(mapping, loads, within)
    assert after.instances == mapping.instances
    assert after.epoch == mapping.epoch + (after.owners != mapping.owners)


@given(cases())
def test_no_switch_makes_it_worse(case: tuple[Mapping, list[float]]) -> None:
    mapping, loads = case
    after = balanced(mapping, loads)
    before_them, after_them = totals(mapping, loads), totals(after, loads)
    assert statistics.pstdev(after_them) <= statistics.pstdev(before_them)
    assert max(after_them) <= max(before_them)
    assert moved(mapping, after) == 0 or statistics.pstdev(after_them) < statistics.pstdev(
        before_them
    )
    assert balanced(after, loads) is after, "what is balanced stays as it is"


@given(cases(), st.integers(1, 9))
def test_any_number_of_instances(case: tuple[Mapping, list[float]], asked: int) -> None:
    mapping, loads = case
    instances = min(asked, mapping.buckets)
    after = balanced(mapping, loads, instances)
    assert (after.instances, after.buckets) == (instances, mapping.buckets)
    if instances == mapping.instances:
        assert after == balanced(mapping, loads)
    elif not any(loads):
        assert after == switched(mapping, instances)
    elif instances > mapping.instances:
        assert max(totals(after, loads)) <= max(totals(mapping, loads))
    largest, mean = max(loads), sum(loads) / instances
    if any(loads) and mean:
        of = totals(after, loads)
        uneven = statistics.pstdev(of) > 0.05 * mean * (1 + 1e-9)
        assert not uneven or max(of) - min(of) <= largest * (1 + 1e-9)


def best(loads: list[float], instances: int) -> float:
    """The smallest largest load that any mapping has."""
    found = math.inf
    for owners in itertools.product(range(instances), repeat=len(loads)):
        of = [sum(x for x, o in zip(loads, owners) if o == i) for i in range(instances)]
        found = min(found, max(of))
    return found


@given(st.lists(st.integers(1, 20).map(float), min_size=3, max_size=7), st.integers(2, 3))
def test_the_largest_load_is_below_twice_the_best(loads: list[float], instances: int) -> None:
    start = mapping_of([0] * len(loads), 1)
    after = balanced(start, loads, instances, within=0.0)
    assert max(totals(after, loads)) < 2 * best(loads, instances)


def test_a_hot_bucket_is_left_alone_and_its_neighbours_go() -> None:
    mapping = mapping_of([0, 0, 0, 0, 1, 1], 2)
    after = balanced(mapping, [10.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    assert after.owners == (0, 1, 1, 1, 1, 1)


def test_few_buckets_move() -> None:
    loads = [1.0] * 64
    loads[3] = 9.0
    mapping = even(64, 4)
    after = balanced(mapping, loads)
    assert 0 < moved(mapping, after) <= 6
    assert max(totals(after, loads)) <= 19


def test_many_buckets_take_no_time_worth_counting() -> None:
    """From one instance to many in one step, where a bucket is looked up and not searched for."""
    after = balanced(even(4_096, 1), [float(1 + b % 7) for b in range(4_096)], 16)
    of = totals(after, [float(1 + b % 7) for b in range(4_096)])
    assert statistics.pstdev(of) <= 0.05 * statistics.fmean(of)


def test_what_cannot_be() -> None:
    mapping = even(4, 2)
    with pytest.raises(OptionError, match="needs the load of each of the 4 buckets; got 3"):
        balanced(mapping, [1.0, 2.0, 3.0])
    with pytest.raises(OptionError, match=r"loads must be numbers from 0 on; got -1\.0"):
        balanced(mapping, [1.0, 2.0, 3.0, -1.0])
    with pytest.raises(OptionError, match="loads must be numbers from 0 on; got nan"):
        balanced(mapping, [1.0, 2.0, 3.0, math.nan])
    with pytest.raises(OptionError, match="must not outnumber the 4 buckets"):
        balanced(mapping, [1.0] * 4, 5)
    with pytest.raises(OptionError, match="needs at least one instance"):
        balanced(mapping, [1.0] * 4, 0)


@given(cases(), st.lists(st.sampled_from([1.0, 2.0, 4.0]), min_size=1, max_size=6))
def test_a_slow_instance_gets_less(case: tuple[Mapping, list[float]], paces: list[float]) -> None:
    """No switch makes the instance that ends last end later; at one pace it is as without."""
    mapping, loads = case

    def last(of: Mapping) -> float:
        known = dict(enumerate(paces))
        speeds = [1 / known.get(i, 1.0) for i in range(of.instances)]
        due = [sum(loads) * speed / sum(speeds) for speed in speeds]
        return max(a - b for a, b in zip(totals(of, loads), due, strict=True))

    assert last(balanced(mapping, loads, paces=paces)) <= last(mapping) + 1e-6
    assert balanced(mapping, loads, paces=[3.0] * mapping.instances) == balanced(mapping, loads)


def test_loads_follow_the_paces() -> None:
    mapping, loads = even(70, 2), [1.0] * 70
    assert totals(balanced(mapping, loads, within=0.0, paces=(2.5,)), loads) == [20.0, 50.0]
    assert totals(balanced(mapping, loads, 3, within=0.0, paces=(2.0, 1.0)), loads) == [14, 28, 28]
