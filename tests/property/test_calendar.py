"""Windows of local days, weeks and months are the same for every way that a query is run."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracle.query import PlainStream
from tests.property.course import AT_ONCE, run
from tests.property.queries import CALENDAR
from tests.property.strategies import Scenario, crowded, scenarios
from tests.property.test_determinism import bits, check, share
from tests.property.test_handover import check as check_handover
from tests.property.test_handover import plan_of
from tests.property.test_partitioners import NAMES, small_splits
from tests.seed import seeds
from tidegate.elastic.handover import HANDOVERS
from tidegate.plan.lowering.rule import Choices
from tidegate.route.registry import partitioner_of

__all__ = ["small_splits"]

SEEDS = seeds(2)
HOURS_US = 3_600_000_000
AROUND = (1_709_960_400_000_000, 1_729_900_800_000_000, -2_208_988_800_000_000)
"""Before clocks were changed in March and October 2024, and the year 1900."""


def stretched(scenario: Scenario, begin_us: int, step_us: int) -> Scenario:
    """The same with steps that are much longer: microseconds become hours, say."""
    rows = [row for s in scenario.streams for source in s.sources for row in source]
    first = min((row["ts"] for row in rows if row["ts"] is not None), default=0)

    def later(row: dict) -> dict:
        ts = None if row["ts"] is None else begin_us + (row["ts"] - first) * step_us
        return {**row, "ts": ts}

    streams = tuple(
        PlainStream(s.name, [[later(r) for r in rows] for rows in s.sources], s.disorder * step_us)
        for s in scenario.streams
    )
    return replace(scenario, streams=streams)


stretches = st.builds(
    stretched,
    scenarios(CALENDAR),
    st.sampled_from(AROUND),
    st.sampled_from([HOURS_US, 5 * HOURS_US + 1]),
)


@share(30, least=30)
@given(stretches)
def test_windows_do_not_depend_on_the_run(scenario: Scenario) -> None:
    check(scenario)


@pytest.mark.parametrize("name", CALENDAR)
def test_windows_of_crowded_streams_do_not_depend_on_the_run(name: str) -> None:
    for seed in SEEDS:
        scenario = crowded(CALENDAR[name], f"{name} {seed}")
        check(stretched(scenario, AROUND[seed % len(AROUND)], HOURS_US // 7))


@share(10, least=10)
@given(stretches, st.sampled_from(HANDOVERS))
def test_windows_do_not_depend_on_the_handover(scenario: Scenario, handover: str) -> None:
    check_handover(scenario, plan_of(scenario), handover)


@share(10, least=10)
@given(stretches, st.sampled_from(NAMES))
def test_windows_do_not_depend_on_the_partitioner(scenario: Scenario, name: str) -> None:
    wanted = run(plan_of(scenario), scenario.streams, AT_ONCE).rows
    streams = scenario.streams
    choices = Choices(partitioner=partitioner_of(name))
    plan = scenario.query.plan([len(s.sources) for s in streams], streams[0].disorder, choices)
    assert bits(run(plan, streams, scenario.course).rows) == bits(wanted)
