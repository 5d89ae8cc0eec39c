"""Outer, semi and anti joins: the rows of their twin for every cut, switch, crash and placement."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.property.joins import numbered
from tests.property.outer_joins import KINDS, OUTER, can_be_outer, outer
from tests.property.predicates import queries
from tests.property.strategies import Scenario, crowded, scenarios
from tests.property.test_determinism import share
from tests.property.test_join_determinism import WAYS, Way, check, cut_finely, planned
from tests.property.test_kept import same
from tests.property.test_kept_join import short_runs, spread_out
from tests.seed import seeds

SEEDS = seeds(max(1, settings.default.max_examples // 50))


@pytest.fixture(scope="module", autouse=True)
def small_splits() -> Iterator[None]:
    """Several map tasks read one source, and cells change often, although the sources are small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidegate.execute.splits.SPLIT_ROWS", 7)
        for name, value in (("EVERY", 1), ("LEAST_TUPLES", 3), ("UNEVEN", 1.0), ("BETTER", 1.0)):
            patch.setattr(f"tidegate.operate.join.placement.survey.{name}", value)
        yield


ANY = (
    st.tuples(queries(), st.sampled_from(KINDS))
    .filter(lambda drawn: can_be_outer(drawn[0]["random"]))
    .map(lambda drawn: {"random": outer(drawn[0]["random"], drawn[1])})
)


@share(80, least=40)
@given(scenarios(OUTER).map(numbered), st.sampled_from(WAYS))
def test_rows_do_not_depend_on_the_run(scenario: Scenario, way: Way) -> None:
    check(scenario, way)


@share(30, least=30)
@given(scenarios(OUTER).map(numbered), st.sampled_from(WAYS), st.integers(1, 2))
def test_rows_do_not_depend_on_the_run_tuple_by_tuple(
    scenario: Scenario, way: Way, batch_rows: int
) -> None:
    check(cut_finely(scenario, batch_rows), way)


@share(60, least=30)
@given(ANY.flatmap(scenarios).map(numbered), st.sampled_from(WAYS))
def test_rows_of_any_condition_do_not_depend_on_the_run(scenario: Scenario, way: Way) -> None:
    check(scenario, way)


@pytest.mark.parametrize("name", OUTER)
def test_rows_of_crowded_streams_do_not_depend_on_the_run(name: str) -> None:
    for seed in SEEDS:
        scenario = numbered(crowded(OUTER[name], f"{name} {seed}"))
        check(scenario, WAYS[(seed + len(name)) % len(WAYS)])


def test_rows_and_state_are_the_same_whatever_is_in_memory() -> None:
    found = 0

    @share(20, least=20)
    @given(
        (scenarios(OUTER) | ANY.flatmap(scenarios)).map(numbered),
        st.sampled_from(WAYS),
        st.integers(0, 2**32),
        st.none() | st.integers(0, 2_000),
        st.booleans(),
    )
    def holds(
        scenario: Scenario, way: Way, seed: int, most_bytes: int | None, remote: bool
    ) -> None:
        nonlocal found
        plan = planned(scenario, way)
        with short_runs(most_bytes):
            found += same(scenario, seed, spread_out(plan) if remote else plan)

    holds()
    assert found
