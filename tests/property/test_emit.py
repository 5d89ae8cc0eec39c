"""Early rows are the same for every arrival, batch cut, instances, switch, handover and restart."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.property.course import AT_ONCE, run
from tests.property.emitted import EMITTED, EMITTED_CALENDAR, EMITTED_SESSIONS
from tests.property.strategies import Scenario, crowded, scenarios
from tests.property.test_calendar import AROUND, HOURS_US, stretched
from tests.property.test_determinism import bits, check, share
from tests.property.test_handover import check as check_handover
from tests.property.test_handover import plan_of
from tests.property.test_kept import same
from tests.property.test_partitioners import small_splits
from tests.seed import seeds
from tidegate.elastic.handover import HANDOVERS, WINDOW

__all__ = ["small_splits"]

SEEDS = seeds(max(1, settings.default.max_examples // 50))


@share(30, least=30)
@given(scenarios(EMITTED))
def test_early_rows_do_not_depend_on_the_run(scenario: Scenario) -> None:
    check(scenario)


@pytest.mark.parametrize("name", EMITTED)
def test_early_rows_of_crowded_streams_do_not_depend_on_the_run(name: str) -> None:
    for seed in SEEDS:
        check(crowded(EMITTED[name], f"{name} {seed}"))


@pytest.mark.parametrize("name", EMITTED)
def test_rows_and_segments_are_the_same_whatever_is_kept(name: str) -> None:
    assert sum(same(crowded(EMITTED[name], f"{name} {seed}"), seed) for seed in range(2))


@pytest.mark.parametrize("name", EMITTED)
def test_windows_of_an_earlier_owner_are_given_by_it_alone(name: str) -> None:
    for seed in SEEDS:
        scenario = crowded(EMITTED[name], f"{name} {seed}")
        course = replace(scenario.course, batch_rows=9, instances=2, switches=((2, 3), (5, 2)))
        check_handover(replace(scenario, course=course), plan_of(scenario), WINDOW)


@share(20, least=20)
@given(scenarios(EMITTED), st.sampled_from(HANDOVERS))
def test_early_rows_do_not_depend_on_the_handover(scenario: Scenario, handover: str) -> None:
    check_handover(scenario, plan_of(scenario), handover)


@pytest.mark.parametrize("name", EMITTED)
@pytest.mark.parametrize("limit", ["_STEP_ROWS", "_STEP_WORDS"])
def test_rows_do_not_depend_on_the_steps(
    name: str, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = crowded(EMITTED[name], f"{name} steps")
    whole = run(plan_of(scenario), scenario.streams, AT_ONCE).rows
    monkeypatch.setattr(f"tidegate.operate.aggregate.pane.early.{limit}", 40)
    stepped = run(plan_of(scenario), scenario.streams, AT_ONCE).rows
    assert bits(whole) == bits(stepped)
    assert len(bits(whole)) > 1


@share(5, least=8)
@given(scenarios(EMITTED_SESSIONS), st.sampled_from([h for h in HANDOVERS if h != WINDOW]))
def test_early_rows_of_sessions_do_not_depend_on_the_run(scenario: Scenario, handover: str) -> None:
    check_handover(scenario, plan_of(scenario), handover)


@pytest.mark.parametrize("name", EMITTED_SESSIONS)
def test_early_rows_of_crowded_sessions_do_not_depend_on_the_run(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = crowded(EMITTED_SESSIONS[name], name)
    check(scenario)
    assert same(scenario, 1)
    whole = run(plan_of(scenario), scenario.streams, AT_ONCE).rows
    monkeypatch.setattr("tidegate.operate.aggregate.pane.early._STEP_WORDS", 40)
    assert bits(run(plan_of(scenario), scenario.streams, AT_ONCE).rows) == bits(whole)
    assert len(bits(whole)) > 1


@share(5, least=8)
@given(
    scenarios(EMITTED_CALENDAR),
    st.sampled_from(AROUND),
    st.sampled_from([HOURS_US, 5 * HOURS_US + 1]),
    st.sampled_from(HANDOVERS),
)
def test_early_rows_of_days_and_months_do_not_depend_on_the_run(
    scenario: Scenario, begin_us: int, step_us: int, handover: str
) -> None:
    longer = stretched(scenario, begin_us, step_us)
    check_handover(longer, plan_of(longer), handover)


@pytest.mark.parametrize("name", EMITTED_CALENDAR)
def test_early_rows_of_crowded_days_do_not_depend_on_the_run(name: str) -> None:
    begin_us = AROUND[len(name) % len(AROUND)]
    check(stretched(crowded(EMITTED_CALENDAR[name], name), begin_us, HOURS_US // 7))
