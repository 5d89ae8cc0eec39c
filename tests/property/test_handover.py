"""Switches by any handover, at any point of any run, give the rows of a run without them."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.property.course import AT_ONCE, run
from tests.property.joins import JOINED, numbered
from tests.property.queries import WINDOWED
from tests.property.strategies import Scenario, crowded, scenarios
from tests.property.test_determinism import bits, share
from tests.property.test_join_determinism import WAYS, Way, planned
from tests.property.test_kept_join import spread_out
from tests.seed import seeds
from tidegate.elastic.handover import HANDOVERS, WINDOW
from tidegate.plan.physical import Plan

SEEDS = seeds(1)
TIMED = {name: query for name, query in WINDOWED.items() if "ROWS" not in query.sql}


def check(scenario: Scenario, plan: Plan, handover: str) -> None:
    wanted = run(plan, scenario.streams, AT_ONCE)
    course = replace(scenario.course, handover=handover)
    assert bits(run(plan, scenario.streams, course).rows) == bits(wanted.rows)


def plan_of(scenario: Scenario) -> Plan:
    streams = scenario.streams
    return scenario.query.plan([len(s.sources) for s in streams], streams[0].disorder)


@share(10, least=10)
@given(
    scenarios(JOINED).map(numbered),
    st.sampled_from(WAYS),
    st.sampled_from(HANDOVERS),
    st.booleans(),
)
def test_pairs_do_not_depend_on_the_handover(
    scenario: Scenario, way: Way, handover: str, remote: bool
) -> None:
    plan = planned(scenario, way)
    check(scenario, spread_out(plan) if remote else plan, handover)


@share(10, least=10)
@given(scenarios(TIMED), st.sampled_from(HANDOVERS))
def test_windows_do_not_depend_on_the_handover(scenario: Scenario, handover: str) -> None:
    check(scenario, plan_of(scenario), handover)


def test_crowded_streams_do_not_depend_on_the_handover() -> None:
    for seed in SEEDS:
        for name in JOINED:
            scenario = numbered(crowded(JOINED[name], f"{name} handed over {seed}"))
            check(scenario, planned(scenario, WAYS[len(name) % len(WAYS)]), WINDOW)
        for name in TIMED:
            scenario = crowded(TIMED[name], f"{name} handed over {seed}")
            check(scenario, plan_of(scenario), WINDOW)
    assert len(JOINED) > 9
    assert len(TIMED) > 7
