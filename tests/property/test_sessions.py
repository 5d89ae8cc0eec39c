"""Sessions are the same for every arrival, batch cut, instances, switch, handover and restart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.property.queries import SESSIONS
from tests.property.strategies import Scenario, crowded, scenarios
from tests.property.test_determinism import check, share
from tests.property.test_handover import check as check_handover
from tests.property.test_handover import plan_of
from tests.property.test_kept import same
from tests.seed import seeds
from tidegate.elastic.handover import HANDOVERS
from tidegate.plan.lowered import Choices

SEEDS = seeds(max(3, settings.default.max_examples // 50))


@pytest.fixture(scope="module", autouse=True)
def small_splits() -> Iterator[None]:
    """Several map tasks read one source, although the sources are small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidegate.execute.splits.SPLIT_ROWS", 7)
        yield


@share(30, least=60)
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
