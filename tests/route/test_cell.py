"""Cells: whoever asks for a value reaches the bucket that has it, and the work is divided."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.route.cell import EVERYWHERE, IN_TURN, CellGrid
from tidegate.route.cell_choice import CellSurvey, SideSurvey
from tidegate.route.mapping import even, switched
from tidegate.route.partitioner import Router
from tidegate.route.round_robin import RoundRobin

ANY = st.floats(allow_nan=True, allow_infinity=True)
FANS = st.sampled_from([2, 3, 7, EVERYWHERE])


@st.composite
def grids(draw: st.DrawFn) -> CellGrid:
    hot = sorted(draw(st.sets(st.integers(-3, 3), max_size=4)))
    width = draw(st.sampled_from([0.0, 1e-300, 0.1, 1.0, 7.5, 1e18]))
    return CellGrid(width, tuple(hot), tuple(draw(FANS) for _ in hot))


def reached(
    grid: CellGrid, low: float, high: float, buckets: int, most: int | None = None
) -> set[int]:
    most = buckets if most is None else most
    found: set[int] = set()
    for _, where in grid.asked(np.array([low]), np.array([high]), buckets, most):
        found |= set(where.tolist())
    return set(range(buckets)) if -1 in found else found


@given(grids(), ANY, ANY, ANY, st.integers(1, 9), st.integers(0, 5))
def test_bounds_reach_every_value_between_them(
    grid: CellGrid, value: float, low: float, high: float, buckets: int, start: int
) -> None:
    router = Router(RoundRobin(), even(buckets, min(buckets, 3)), "s", start)
    bucket = int(grid.stored(router, np.full(4, value))[3])
    assert 0 <= bucket < buckets
    if low <= value <= high:
        assert bucket in reached(grid, low, high, buckets)
        assert bucket in reached(grid, low, high, buckets, 1 + start)
    if grid.width and not low <= high:
        assert not reached(grid, low, high, buckets)


def test_a_narrow_band_asks_one_place_or_two() -> None:
    grid, low = CellGrid(100.0), np.arange(0.0, 10_000.0, 1.0)
    asked = sum(len(rows) for rows, _ in grid.asked(low, low + 10.0, 64, 16))
    assert 1.09 < asked / len(low) < 1.11


def test_hot_cells_are_dealt_evenly_whatever_stands_between_their_tuples() -> None:
    grid = CellGrid(1.0, (0, 1), (4, EVERYWHERE))
    router = Router(RoundRobin(), even(64, 16), "s")
    values = np.tile([0.5, 1.5, 7.5, 1.5], 4_096)
    bucket = grid.stored(router, values)
    assert np.bincount(bucket[values == 0.5]).tolist() == [1_024] * 4
    by_instance = np.bincount(router.mapping.owner_array[bucket[values == 1.5]])
    assert by_instance.max() - by_instance.min() <= 1
    assert set(bucket[values == 7.5].tolist()) == {7}


def test_tuples_without_a_value_are_dealt() -> None:
    router = Router(RoundRobin(), even(64, 4), "s")
    bucket = CellGrid(1.0).stored(router, np.full(400, np.nan))
    assert np.bincount(router.mapping.owner_array[bucket]).tolist() == [100] * 4


def sides(name: str, count: int = 4_096, seed: int = 0) -> list[SideSurvey]:
    """Tuples of both sides with a band of 20 around their values, in windows of 600,000."""
    random = np.random.default_rng(seed)
    found = []
    for _ in range(2):
        values = {
            "uniform": lambda: random.uniform(0, 100_000, count),
            "normal": lambda: random.normal(0, 10_000, count),
            "zipf": lambda: np.minimum(random.zipf(1.1, count), 100_000).astype(float),
            "one value": lambda: np.where(
                random.random(count) < 0.1, 500.0, random.uniform(0, 100_000, count)
            ),
            "all equal": lambda: np.full(count, 7.0),
            "far apart": lambda: random.integers(0, 50, count) * 64_000.0,
        }[name]()
        found.append(SideSurvey(values, values - 10, values + 10, 600_000 / count))
    return found


@given(st.lists(st.tuples(ANY, ANY, ANY), min_size=1, max_size=30), st.integers(1, 5))
def test_any_survey_gives_a_grid(rows: list[tuple[float, float, float]], instances: int) -> None:
    values, low, high = (np.array(column) for column in zip(*rows, strict=True))
    side = SideSurvey(values, low, high, 10.0)
    best = CellSurvey([side, side], even(8, instances).owner_array).best()
    assert np.isfinite(best.grid.width)
    assert 0 <= best.mean <= best.busiest < np.inf


SKEWS = ["uniform", "normal", "zipf", "one value", "all equal", "far apart"]


@pytest.mark.parametrize("instances", [2, 7, 16])
@pytest.mark.parametrize("name", SKEWS)
def test_the_busiest_instance_has_little_more_than_its_share(name: str, instances: int) -> None:
    for owners in (even(64, instances), switched(even(64, 16), instances)):
        survey = CellSurvey(sides(name), owners.owner_array)
        best = survey.best()
        assert best.busiest <= 1.2 * best.mean
        assert best.busiest <= survey.work_of(IN_TURN).busiest
        again = survey.work_of(best.grid)
        assert again.busiest == pytest.approx(best.busiest)


def test_total_work_does_not_grow_with_the_instances() -> None:
    totals = {}
    for instances in (1, 4, 16, 64):
        best = CellSurvey(sides("uniform", 16_384), even(64, instances).owner_array).best()
        totals[instances] = best.mean * instances
        assert best.searches < 1.2
    assert max(totals.values()) < 1.1 * totals[1]
