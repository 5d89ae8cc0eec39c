"""Placements of a join: every pair has one place where it is found, whoever owns its tuples."""

from __future__ import annotations

import numpy as np
import pytest

from tidegate.batch import EpochId
from tidegate.operate.join.kind import LEFT, RIGHT
from tidegate.operate.join.operator import PLACEMENTS
from tidegate.operate.join.placement.spread import (
    AllSpread,
    GridSpread,
    HomeSpread,
    OwnerSpread,
    RangeSpread,
)
from tidegate.plan.join.method import AUTO, ROUTINGS
from tidegate.route.former_owner import Former
from tidegate.route.mapping import Mapping

BUCKETS = 24


def owners(instances: int) -> tuple[int, ...]:
    return tuple((np.random.default_rng(instances).permutation(BUCKETS) % instances).tolist())


def test_what_users_name_is_placed() -> None:
    assert {name for name in ROUTINGS if name != AUTO} == set(PLACEMENTS)


@pytest.mark.parametrize("spread", [GridSpread(), HomeSpread(LEFT), HomeSpread(RIGHT)])
def test_tuples_that_are_held_meet_at_one_instance(spread: OwnerSpread) -> None:
    assert spread.holds_all
    for instances in range(1, 13):
        of = np.array(owners(instances), np.int32)
        met = np.zeros((BUCKETS, BUCKETS), np.int64)
        for instance in range(instances):
            left, right = (spread.sees(instance, side, of, instances) for side in (LEFT, RIGHT))
            met += np.outer(left, right)
        assert (met == 1).all()


@pytest.mark.parametrize("spread", [OwnerSpread(), AllSpread(), RangeSpread()])
def test_others_are_compared_with_where_they_are_stored(spread: OwnerSpread) -> None:
    of = np.array(owners(5), np.int32)
    for side in (LEFT, RIGHT):
        seen = [spread.sees(instance, side, of, 5) for instance in range(5)]
        assert (np.argmax(seen, axis=0) == of).all()
        assert (np.sum(seen, axis=0) == 1).all()


def test_every_epoch_has_its_own_owners_and_its_own_grid() -> None:
    before = Former(EpochId(0), 8, owners(8), until_us=1_000, over_us=2_000)
    mapping = Mapping(EpochId(1), 3, owners(3), (before,))
    for epoch, instances in ((0, 8), (1, 3)):
        of = np.array(owners(instances), np.int32)
        for side in (LEFT, RIGHT):
            sights = [GridSpread().sights(i, side, mapping)[epoch] for i in range(mapping.running)]
            seen = [sight.buckets for sight in sights]
            there = [GridSpread().sees(i, side, of, instances) for i in range(instances)]
            assert np.array_equal(seen[:instances], there)
            assert not any(flags.any() for flags in seen[instances:])
