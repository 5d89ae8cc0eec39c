"""The selection rule on the cases of the dissertation, and when a choice is held."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.route.selection import (
    CHEAP,
    KEEPING_VALUES,
    MARGIN,
    OF_USERS,
    Costs,
    Measured,
    PartitionerChoice,
    selected,
)

HASH, CAM, SHUFFLE, PK = PartitionerChoice


def measured(
    tuples: int,
    groups: int,
    workers: int,
    by_hash: float = 1.0,
    by_key: float = 1.0,
    by_tuple: float | None = None,
) -> Measured:
    """The last three in shares of an even division; two candidates divide what one would have."""
    by_tuple = max(1.0, by_key / 2) if by_tuple is None else by_tuple
    shares = (int(share * tuples / workers) for share in (by_hash, by_key, by_tuple))
    return Measured(tuples, groups, workers, *shares, min(2, workers))


@pytest.mark.parametrize("workers", [8, 16, 32])
@pytest.mark.parametrize("held", PartitionerChoice)
@pytest.mark.parametrize("costs", [CHEAP, KEEPING_VALUES, OF_USERS])
def test_a_few_groups_are_shuffled(costs: Costs, workers: int, held: PartitionerChoice) -> None:
    """TPC-H Query 1: four groups, whose tuples one worker each would have to take."""
    of_one = 0.49 * workers
    assert selected(measured(300_000, 4, workers, of_one, of_one), costs, held) is SHUFFLE


@pytest.mark.parametrize("workers", [8, 16, 32])
@pytest.mark.parametrize("held", PartitionerChoice)
@pytest.mark.parametrize(
    ("tuples", "groups"), [(300_000, 62_500), (1_200_000, 110_000), (10_000_000, 670_000)]
)
def test_many_uneven_groups_stay_together(
    tuples: int, groups: int, workers: int, held: PartitionerChoice
) -> None:
    """DEBS Query 1, TPC-H Query 3 and GCM Query 2: groups are many of the tuples of a worker."""
    assert selected(measured(tuples, groups, workers, 1.6, 1.02), OF_USERS, held) is CAM


@pytest.mark.parametrize("held", PartitionerChoice)
@pytest.mark.parametrize("costs", [CHEAP, KEEPING_VALUES, OF_USERS])
def test_even_groups_go_by_their_hash(costs: Costs, held: PartitionerChoice) -> None:
    """Which the dissertation's rule does not know: there, all that is split is merged."""
    assert selected(measured(300_000, 100_000, 8, 1.01, 1.0), costs, held) is HASH


def test_few_tuples_of_few_groups_are_not_shuffled() -> None:
    """GCM Query 1: 42 tuples of 4 groups in a window, which 32 workers would make 29 parts of."""
    some = measured(42, 4, 32, 16.0, 15.0)
    assert some.parts(32) > 28
    assert selected(some, CHEAP) is not SHUFFLE


def test_one_heavy_key_among_many_is_shared() -> None:
    """Although all others are split too: where a tuple is the work, it is worth it."""
    assert selected(measured(100_000, 10_000, 2, 1.6, 1.2), Costs(0.1, 0.2)) is SHUFFLE
    assert selected(measured(100_000, 10_000, 2, 1.6, 1.2), Costs(4, 8)) is not SHUFFLE


def test_a_key_above_the_share_of_an_instance_is_divided_between_its_candidates() -> None:
    """Routes of taxis among 32: one has 2.7 times the tuples that an instance should have."""
    some = measured(300_000, 39_000, 32, 3.9, 2.7)
    assert selected(some, OF_USERS) is PK
    assert selected(some, CHEAP) is CAM, "where groups are the work, splitting them costs more"


def test_merging_must_be_worth_its_step() -> None:
    """The zones of green taxis among 16: a window has few tuples, which are little work."""
    some = measured(68_000, 218, 16, 6.0, 2.5)
    assert selected(some, CHEAP) is CAM
    assert selected(some, replace(CHEAP, step=0)) in (PK, SHUFFLE)


def test_where_all_values_are_merged_again_splitting_must_gain_more() -> None:
    uneven = measured(300_000, 5_000, 8, 1.3, 1.0)
    assert selected(uneven, KEEPING_VALUES) is CAM
    assert selected(uneven, Costs(4, 2, value=0.5)) is HASH


def test_a_choice_is_held_until_another_is_better_by_the_margin() -> None:
    """Between the two both are kept; so is whichever was first."""
    costs = Costs(0, 0)
    near, far = (measured(10_000, 100, 2, 1 + over, 1.0) for over in (MARGIN, 1.1 * MARGIN))
    assert selected(near, costs, HASH) is HASH
    assert selected(near, costs, CAM) is CAM
    assert selected(far, costs, HASH) is not HASH


figures = st.builds(
    lambda tuples, groups, workers, hashed, keyed: measured(
        tuples, min(groups, tuples), workers, hashed, min(hashed, keyed)
    ),
    st.integers(1, 10**7), st.integers(1, 10**6), st.integers(1, 64),
    st.floats(1, 64), st.floats(1, 64),
)  # fmt: skip
prices = st.builds(Costs, st.floats(0, 50), st.floats(0, 50), st.floats(0, 2))


@given(figures, prices, st.sampled_from(PartitionerChoice))
def test_what_is_chosen_is_within_the_margin_of_the_best_and_stays(
    told: Measured, costs: Costs, held: PartitionerChoice
) -> None:
    choice = selected(told, costs, held)
    best = min(told.cost(other, costs) for other in PartitionerChoice)
    assert told.cost(choice, costs) * (1 - MARGIN) <= best * (1 + 1e-9)
    assert selected(told, costs, choice) is choice, "the same figures change nothing again"
    assert choice is held or told.cost(choice, costs) == best
