"""Joins: the same output for every arrival, cut, instances, switch, crash, method and routing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracle.query import Answer, interpret
from tests.property.course import AT_ONCE, Result, once, run
from tests.property.joins import JOINED, numbered
from tests.property.predicates import queries
from tests.property.strategies import Scenario, crowded, scenarios
from tests.property.test_determinism import bits, places, share
from tests.seed import seeds
from tidegate.operate.join.operator import StreamJoin
from tidegate.operate.join.spec import BAND, EQUAL, HASH, SCAN
from tidegate.operate.join.state import BY_RANGE, ROUND_ROBIN
from tidegate.plan.physical import Plan

SEEDS = seeds(max(1, settings.default.max_examples // 50))


@dataclass(frozen=True)
class Way:
    """How pairs are found, and how stored tuples are shared among the instances.

    `probe` chooses among the conjuncts that can be probed; `scan` probes none.
    """

    method: str = "auto"
    routing: str = "auto"
    probe: int = 0


WAYS = (
    Way(),
    Way("scan"),
    Way(routing="round-robin"),
    Way(routing="key"),
    Way("probe", "round-robin", 0),
    Way("probe", "round-robin", 1),
    Way("probe", "range", 0),
    Way("probe", "range", 1),
)


@pytest.fixture(scope="module", autouse=True)
def small_splits() -> Iterator[None]:
    """Several map tasks read one source, and cells change often, although the sources are small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidegate.execute.splits.SPLIT_ROWS", 7)
        for name, value in (("EVERY", 1), ("LEAST_TUPLES", 3), ("UNEVEN", 1.0), ("BETTER", 1.0)):
            patch.setattr(f"tidegate.operate.join.placement.survey.{name}", value)
        yield


def planned(scenario: Scenario, way: Way) -> Plan:
    """The plan of a scenario's query, made to go a way where its predicate allows it."""
    streams = scenario.streams
    plan = scenario.query.plan([len(s.sources) for s in streams], streams[0].disorder)
    (subquery,) = plan.subqueries
    join = subquery.operator
    assert isinstance(join, StreamJoin)
    assert join is not None
    spec, routing = join.spec, join.routing
    kinds = [interval.kind for interval in spec.intervals]
    if way.method == "scan":
        spec = replace(spec, method=SCAN, index=None, branches=())
    if way.method == "probe" and kinds:
        index = way.probe % len(kinds)
        spec = replace(
            spec, method=HASH if kinds[index] == EQUAL else BAND, index=index, branches=()
        )
    if len(spec.kind.tracked) == 2:  # a full join is placed by key, however it is searched
        return replace(plan, subqueries=(replace(subquery, operator=replace(join, spec=spec)),))
    if way.routing == "round-robin" or (way.routing == "key" and EQUAL in kinds):
        routing = way.routing
    if way.routing == "range" or routing == BY_RANGE:
        routing = ROUND_ROBIN if spec.index is None else BY_RANGE
    changed = replace(subquery, operator=replace(join, spec=spec, routing=routing))
    return replace(plan, subqueries=(changed,))


def check(scenario: Scenario, way: Way) -> None:
    """One scenario run plainly at once, run its own way, and interpreted tuple by tuple."""
    answer = interpret(scenario.query.plain, scenario.streams)
    for plan, course in (
        (planned(scenario, Way()), AT_ONCE),
        (planned(scenario, way), scenario.course),
    ):
        result = run(plan, scenario.streams, course)
        assert bits(result.rows) == bits(answer.rows)
        assert_aside(scenario, result, answer)
        (subquery,) = plan.subqueries
        assert isinstance(subquery.operator, StreamJoin)
        if subquery.operator.routing == ROUND_ROBIN and not any(p.where for p in subquery.prefixes):
            assert result.counters["comparisons"] == answer.comparisons


def assert_aside(scenario: Scenario, result: Result, answer: Answer) -> None:
    """Late and timeless tuples are told once, and everything is counted.

    A stream that meets itself is read once; the answer has its tuples for either side.
    """
    read = len(once(scenario.streams))
    late = {p for p in answer.late if p.stream < read}
    rejected = {p for p in answer.rejected if p.stream < read}
    wanted = {
        "rows_in": scenario.rows,
        "rows_out": len(answer.rows),
        "rows_late": len(late),
        "rows_rejected": len(rejected),
    }
    assert {name: result.counters[name] for name in wanted} == wanted
    assert places(scenario, result) == (late, rejected)


def cut_finely(scenario: Scenario, batch_rows: int) -> Scenario:
    return replace(scenario, course=replace(scenario.course, batch_rows=batch_rows))


@share(60, least=60)
@given(scenarios(JOINED).map(numbered), st.sampled_from(WAYS))
def test_pairs_do_not_depend_on_the_run(scenario: Scenario, way: Way) -> None:
    check(scenario, way)


@share(20, least=20)
@given(scenarios(JOINED).map(numbered), st.sampled_from(WAYS), st.integers(1, 2))
def test_pairs_do_not_depend_on_the_run_tuple_by_tuple(
    scenario: Scenario, way: Way, batch_rows: int
) -> None:
    check(cut_finely(scenario, batch_rows), way)


@share(60, least=60)
@given(queries().flatmap(scenarios).map(numbered), st.sampled_from(WAYS))
def test_pairs_of_any_predicate_do_not_depend_on_the_run(scenario: Scenario, way: Way) -> None:
    check(scenario, way)


@pytest.mark.parametrize("name", JOINED)
def test_pairs_of_crowded_streams_do_not_depend_on_the_run(name: str) -> None:
    for seed in SEEDS:
        scenario = numbered(crowded(JOINED[name], f"{name} {seed}"))
        check(scenario, WAYS[(seed + len(name)) % len(WAYS)])


@pytest.mark.parametrize("name", JOINED)
@pytest.mark.long
def test_every_way_gives_the_pairs_of_crowded_streams(name: str) -> None:
    for seed in seeds(10):
        scenario = numbered(crowded(JOINED[name], f"{name} {seed}, every way"))
        for way in WAYS:
            check(scenario, way)
