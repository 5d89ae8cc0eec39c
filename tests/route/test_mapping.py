"""Mappings: every bucket has one owner, and a switch moves as few of them as it can."""

from __future__ import annotations

import itertools
import pickle
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.batch import EpochId
from tidegate.errors import OptionError
from tidegate.route.mapping import Mapping, even, recorded, restored, switched


def mapping_of(owners: list[int], instances: int) -> Mapping:
    return Mapping(EpochId(3), instances, tuple(owners))


@st.composite
def mappings(draw: st.DrawFn) -> Mapping:
    """Any mapping, also an uneven one, with instances that own nothing."""
    instances = draw(st.integers(1, 9))
    owners = st.lists(st.integers(0, instances - 1), min_size=instances, max_size=70)
    return mapping_of(draw(owners), instances)


def moved(before: Mapping, after: Mapping) -> int:
    return sum(a != b for a, b in zip(before.owners, after.owners, strict=True))


def fewest(current: Mapping, instances: int) -> int:
    """The formula in the docstring of `switched`."""
    owned = Counter(current.owners)
    share, larger = divmod(current.buckets, instances)
    stay = sum(min(owned[i], share) for i in range(instances))
    return current.buckets - stay - min(larger, sum(owned[i] > share for i in range(instances)))


@given(mappings(), st.integers(1, 12))
def test_a_switch_is_even_and_moves_the_fewest(current: Mapping, asked: int) -> None:
    instances = min(asked, current.buckets)
    after = switched(current, instances)
    owned = Counter(after.owners)
    assert (after.epoch, after.instances) == (current.epoch + 1, instances)
    assert after.buckets == current.buckets
    assert set(owned) == set(range(instances))
    assert max(owned.values()) - min(owned.values()) <= 1
    assert moved(current, after) == fewest(current, instances)
    twin = Mapping(current.epoch, current.instances, current.owners)
    assert switched(twin, instances) == after


def even_mappings(buckets: int, instances: int) -> list[tuple[int, ...]]:
    """All of them."""
    found = []
    for owners in itertools.product(range(instances), repeat=buckets):
        counts = [owners.count(i) for i in range(instances)]
        if max(counts) - min(counts) <= 1:
            found.append(owners)
    return found


@pytest.mark.parametrize("buckets", [3, 4, 5])
@pytest.mark.parametrize("instances", [1, 2, 3])
def test_no_even_mapping_moves_fewer(buckets: int, instances: int) -> None:
    """The formula, against all mappings there are."""
    possible = even_mappings(buckets, instances)
    tried = 0
    for owners in itertools.product(range(3), repeat=buckets):
        least = min(sum(a != b for a, b in zip(owners, other)) for other in possible)
        assert fewest(mapping_of(list(owners), 3), instances) == least
        tried += 1
    assert tried == 3**buckets


@pytest.mark.parametrize(
    ("before", "after", "expected"), [(1, 2, 32), (2, 3, 21), (3, 2, 21), (4, 5, 12), (8, 8, 0)]
)
def test_how_many_of_64_buckets_move(before: int, after: int, expected: int) -> None:
    assert moved(even(64, before), switched(even(64, before), after)) == expected


@given(st.lists(st.integers(1, 10), max_size=8))
def test_the_buckets_of_instances_are_all_buckets_once(numbers: list[int]) -> None:
    current = even(16, 3)
    for number in numbers:
        current = switched(current, number)
        owned = [current.owned_by(i) for i in range(number)]
        assert sorted(itertools.chain(*owned)) == list(range(16))
        assert all(list(mine) == sorted(mine) for mine in owned)
        assert [current.owners[b] for mine in owned for b in mine] == [
            i for i, mine in enumerate(owned) for _ in mine
        ]


def test_a_mapping_comes_back_and_travels_without_its_array() -> None:
    made = switched(even(5_000, 3), 4)
    assert restored(**recorded(made)) == made
    plain = len(pickle.dumps(Mapping(made.epoch, made.instances, made.owners)))
    assert made.owner_array.tolist() == list(made.owners)
    assert len(pickle.dumps(made)) == plain
    assert pickle.loads(pickle.dumps(made)).owned_by(3) == made.owned_by(3)


@pytest.mark.parametrize("instances", [0, -1, 5])
def test_a_number_of_instances_that_cannot_be(instances: int) -> None:
    for attempt in (lambda: even(4, instances), lambda: switched(even(4, 2), instances)):
        with pytest.raises(OptionError, match="instance"):
            attempt()


@pytest.mark.parametrize("owners", [[0, 2], [-1, 0]])
def test_an_owner_that_is_no_instance(owners: list[int]) -> None:
    with pytest.raises(OptionError, match="every bucket must belong to an instance"):
        mapping_of(owners, 2)
