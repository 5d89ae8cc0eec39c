"""A mergeable process gives the rows of its plain twin, whoever sees which tuples of a key."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.property.course import AT_ONCE, run
from tests.property.mergeable import MERGEABLE, ProcessQuery
from tests.property.strategies import Scenario, crowded, scenarios
from tests.property.test_determinism import bits, share
from tests.property.test_partitioners import NAMES, PARTIALS, plan_of, restless, small_splits
from tests.seed import seeds
from tidegate.elastic.handover import HANDOVERS
from tidegate.plan.lowering.rule import Choices
from tidegate.route.registry import partitioner_of

__all__ = ["restless", "small_splits"]

SEEDS = seeds(1)


def check(scenario: Scenario, name: str, partial: str | None) -> int:
    assert isinstance(scenario.query, ProcessQuery)
    wanted = scenario.query.rows(scenario.streams)
    assert bits(run(plan_of(scenario), scenario.streams, AT_ONCE).rows) == bits(wanted)
    plan = plan_of(scenario, Choices(partitioner=partitioner_of(name), partial=partial))
    assert bits(run(plan, scenario.streams, scenario.course).rows) == bits(wanted)
    return len(wanted)


@share(30, least=12)
@given(
    scenarios(MERGEABLE),
    st.sampled_from(["hash", *NAMES]),
    st.sampled_from(PARTIALS),
    st.sampled_from(HANDOVERS),
)
def test_rows_do_not_depend_on_the_partitioner(
    scenario: Scenario, name: str, partial: str | None, handover: str
) -> None:
    check(replace(scenario, course=replace(scenario.course, handover=handover)), name, partial)


def test_crowded_streams_do_not_depend_on_the_partitioner() -> None:
    rows = []
    for seed in SEEDS:
        for place, query in enumerate(MERGEABLE):
            scenario = crowded(MERGEABLE[query], f"{query} merged {seed}")
            way = seed + place
            rows.append(check(scenario, NAMES[way % len(NAMES)], PARTIALS[way % 3]))
    assert len(rows) >= 4
    assert sum(rows) > 10
