"""Sessions are the same for every arrival, batch cut, instances, switch, handover and restart."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.property.course import run
from tests.property.queries import SESSIONS
from tests.property.strategies import Scenario, crowded, scenarios
from tests.property.test_determinism import bits, check, share
from tests.property.test_handover import check as check_handover
from tests.property.test_handover import plan_of
from tests.property.test_kept import same
from tests.seed import seeds
from tidegate.elastic.handover import HANDOVERS, WINDOW
from tidegate.plan.lowering.rule import Choices

SEEDS = seeds(max(2, settings.default.max_examples // 50))


@pytest.fixture(scope="module", autouse=True)
def small_splits() -> Iterator[None]:
    """Several map tasks read one source, although the sources are small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidegate.execute.splits.SPLIT_ROWS", 7)
        yield


@share(30, least=30)
@given(scenarios(SESSIONS))
def test_sessions_do_not_depend_on_the_run(scenario: Scenario) -> None:
    check(scenario)


@pytest.mark.parametrize("name", SESSIONS)
def test_sessions_of_crowded_streams_do_not_depend_on_the_run(name: str) -> None:
    for seed in SEEDS:
        check(crowded(SESSIONS[name], f"{name} {seed}"))


@pytest.mark.parametrize("name", SESSIONS)
def test_rows_and_segments_are_the_same_whatever_is_kept(name: str) -> None:
    assert sum(same(crowded(SESSIONS[name], f"{name} {seed}"), seed) for seed in range(2))


@share(10, least=10)
@given(scenarios(SESSIONS), st.sampled_from([h for h in HANDOVERS if h != WINDOW]))
def test_sessions_do_not_depend_on_the_handover(scenario: Scenario, handover: str) -> None:
    check_handover(scenario, plan_of(scenario), handover)


@share(10, least=10)
@given(scenarios({n: q for n, q in SESSIONS.items() if "MAX" not in n.upper()}))
def test_sessions_do_not_depend_on_who_folds(scenario: Scenario) -> None:
    sources = [len(s.sources) for s in scenario.streams]
    disorder = scenario.streams[0].disorder
    rows = {
        partial: run(
            scenario.query.plan(sources, disorder, Choices(partial=partial)),
            scenario.streams,
            scenario.course,
        ).rows
        for partial in ("map", "instance")
    }
    assert bits(rows["map"]) == bits(rows["instance"])
