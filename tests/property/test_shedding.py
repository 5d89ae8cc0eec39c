"""What is shed, and what is made of the rest, does not depend on how a query is run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.driver.scene import loop_of, memory, rows_of
from tests.operate.aggregate.test_split_keys import node_of
from tests.oracle.query import Order, Windowed
from tests.oracle.shed import Shedding, interpret_shed
from tests.property.course import AT_ONCE, run
from tests.property.queries import CALLS, FLOATS, OTHER_TYPES, Query, select, spec_of
from tests.property.strategies import Scenario, crowded, scenarios
from tests.property.test_determinism import agree, bits, share
from tests.seed import seeds
from tidegate.approx.rate import RateLog
from tidegate.batch import MIN_US
from tidegate.elastic.handover import HANDOVERS
from tidegate.plan.lowering.lower import lower
from tidegate.plan.lowering.rule import Choices
from tidegate.plan.physical import Plan, Prefix
from tidegate.route.registry import partitioner_of
from tidegate.sink.memory import MemorySink

SEEDS = seeds(1)
REFUSED = ("COUNT(DISTINCT f)", "APPROX_COUNT_DISTINCT(f)")
EVERY = [call for call in CALLS if call not in REFUSED]
OTHERS = [call for call in OTHER_TYPES if "DISTINCT" not in call]
PARTITIONERS = ("hash", "pk", "shuffle", "cam")


def query(sql: str, windowed: Windowed, percent: int, by: str, *names: str) -> Query:
    shedding = Shedding(windowed, f"0.{percent:02d}", by)
    return Query(f"{sql} WITH SHED {percent} PERCENT BY {by}", shedding, names or ("s",))  # type: ignore[arg-type]


SLIDING = "RANGE 12 MICROSECONDS SLIDE 4 MICROSECONDS"
LONG = "RANGE 3 MILLISECONDS SLIDE 1500 MICROSECONDS"
TOP = "{group} HAVING COUNT(*) >= 2 ORDER BY a0 DESC, a1 LIMIT 2"
OVERLAP = "RANGE 20 MICROSECONDS SLIDE 1 MICROSECOND"
UNION = "(SELECT k, f, i, x FROM s UNION ALL SELECT k, f, i, x FROM r)"
SHEDDING = {
    f"{name}, {by}": query(sql, windowed, percent, by, *names)
    for by in ("CONCEPT", "CONCEPT TOTAL", "UNIFORM")
    for name, sql, windowed, percent, names in [
        (
            "every function",
            select(["k"], EVERY, SLIDING),
            Windowed(spec_of(["k"], EVERY, 12, 4)),
            70,
            (),
        ),
        ("no group", select([], EVERY, LONG), Windowed(spec_of([], EVERY, 3000, 1500)), 90, ()),
        (
            "other types",
            select(["day", "b"], OTHERS, "RANGE 40 MICROSECONDS"),
            Windowed(spec_of(["day", "b"], OTHERS, 40, 40)),
            50,
            (),
        ),
        (
            "where, much overlap",
            select(["g"], FLOATS, OVERLAP, "WHERE i IS NULL OR i < 90 {group}"),
            Windowed(spec_of(["g"], FLOATS, 20, 1), where=lambda r: r["i"] is None or r["i"] < 90),
            80,
            (),
        ),
        (
            "the first of each window",
            select(["g"], ["SUM(i)", "COUNT(*)", "AVG(x)"], LONG, TOP),
            Windowed(
                spec_of(["g"], ["SUM(i)", "COUNT(*)", "AVG(x)"], 3000, 1500),
                having=lambda r: r["a1"] >= 2,
                order=(Order(lambda r: r["a0"], True, False), Order(lambda r: r["a1"])),
                limit=2,
            ),
            60,
            (),
        ),
        (
            "a union",
            select(["k"], ["COUNT(*)", "SUM(x)", "LAST(k)"], LONG, of=UNION),
            Windowed(spec_of(["k"], ["COUNT(*)", "SUM(x)", "LAST(k)"], 3000, 1500)),
            70,
            ("s", "r"),
        ),
        ("keys alone", select(["k"], [], LONG), Windowed(spec_of(["k"], [], 3000, 1500)), 80, ()),
        (
            "tuples counted",
            select(["g"], ["COUNT(*)"], LONG),
            Windowed(spec_of(["g"], ["COUNT(*)"], 3000, 1500)),
            80,
            (),
        ),
    ]
    if by == "CONCEPT" or name in ("every function", "no group", "a union")
}


@pytest.fixture(scope="module", autouse=True)
def small_splits() -> Iterator[None]:
    """Several map tasks read one source, although the sources are small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidegate.execute.splits.SPLIT_ROWS", 7)
        yield


def plan_of(scenario: Scenario, choices: Choices | None = None) -> Plan:
    streams = scenario.streams
    plan = scenario.query.plan([len(s.sources) for s in streams], streams[0].disorder, choices)
    return rated(plan, scenario.query.plain)  # type: ignore[arg-type]


def rated(plan: Plan, shedding: Shedding) -> Plan:
    """A plan whose tasks see the record of changes of the share."""
    rates = [(us, float(1 - Fraction(share))) for us, share in shedding.changes]
    log = RateLog(((MIN_US, float(shedding.rate)), *rates))

    def sieved(prefix: Prefix) -> Prefix:
        return (
            prefix
            if prefix.sieve is None
            else replace(prefix, sieve=replace(prefix.sieve, rates=log))
        )

    return replace(
        plan,
        subqueries=tuple(
            replace(s, prefixes=tuple(map(sieved, s.prefixes))) for s in plan.subqueries
        ),
    )


def check(scenario: Scenario, partitioner: str) -> int:
    """Run two ways and interpreted plainly; how many rows there were."""
    reference = run(plan_of(scenario), scenario.streams, AT_ONCE)
    choices = Choices(partitioner=partitioner_of(partitioner))
    result = run(plan_of(scenario, choices), scenario.streams, scenario.course)
    assert bits(result.rows) == bits(reference.rows)
    answer = interpret_shed(scenario.query.plain, scenario.streams)  # type: ignore[arg-type]
    agree(reference.rows, answer.rows)
    shed = [found.counters.get("rows_shed", 0) for found in (result, reference)]
    assert shed == [answer.shed] * 2
    return len(answer.rows)


@share(5, least=8)
@given(scenarios(SHEDDING), st.sampled_from(PARTITIONERS), st.sampled_from(HANDOVERS))
def test_what_is_shed_does_not_depend_on_the_run(
    scenario: Scenario, partitioner: str, handover: str
) -> None:
    check(replace(scenario, course=replace(scenario.course, handover=handover)), partitioner)


def test_crowded_streams_do_not_depend_on_the_run() -> None:
    rows = 0
    for seed in SEEDS:
        for place, name in enumerate(SHEDDING):
            scenario = crowded(SHEDDING[name], f"{name} {seed}")
            rows += check(scenario, PARTITIONERS[(seed + place) % len(PARTITIONERS)])
    assert rows > 150


CHANGED = ("COUNT(*)", "COUNT(x)", "SUM(i)", "AVG(i)", "MIN(x)")
CHANGES = ("0.0", "0.9", "0.25")
"""Shares that come one after the other, each for a quarter of the tuples."""


def test_another_share_counts_from_its_event_time_on_however_the_query_is_run() -> None:
    """Rows with a record of changes: any cut, instances and partitioner, and the plain twin."""
    rows = 0
    for place, by in enumerate(("CONCEPT", "CONCEPT TOTAL", "UNIFORM")):
        of = query(
            select(["k"], CHANGED, LONG), Windowed(spec_of(["k"], CHANGED, 3000, 1500)), 60, by
        )
        scenario = small_numbers(crowded(of, f"changed {by}"))
        times = sorted(
            r["ts"] for s in scenario.streams for of_ in s.sources for r in of_ if r["ts"]
        )
        starts = (times[len(times) * part // 4] for part in (1, 2, 3))
        plain = replace(of.plain, changes=tuple(zip(starts, CHANGES, strict=True)))  # type: ignore[call-arg]
        scenario = replace(scenario, query=replace(of, plain=plain))
        reference = run(plan_of(scenario), scenario.streams, AT_ONCE)
        choices = Choices(partitioner=partitioner_of(PARTITIONERS[place]))
        result = run(plan_of(scenario, choices), scenario.streams, scenario.course)
        assert bits(result.rows) == bits(reference.rows)
        answer = interpret_shed(plain, scenario.streams)  # type: ignore[arg-type]
        near(reference.rows, answer.rows)
        shed = [found.counters.get("rows_shed", 0) for found in (result, reference)]
        assert shed == [answer.shed] * 2
        rows += len(answer.rows)
    assert rows > 30


def small_numbers(scenario: Scenario) -> Scenario:
    """The same with numbers that doubles have exactly: a plain sum is then as good as ours."""

    def row(of: Mapping[str, Any]) -> dict[str, Any]:
        return {**of, "i": None if of["i"] is None else of["i"] % 97}

    streams = tuple(
        replace(stream, sources=[[row(of) for of in rows] for rows in stream.sources])
        for stream in scenario.streams
    )
    return replace(scenario, streams=streams)


def near(mine: list[tuple[Any, ...]], twin: list[tuple[Any, ...]]) -> None:
    """The same rows; numbers up to what adding them in another order makes of them."""
    assert len(mine) == len(twin)
    for ours, theirs in zip(mine, twin, strict=True):
        for cell, wanted in zip(ours, theirs, strict=True):
            if isinstance(cell, float) and isinstance(wanted, int | float):
                assert cell == pytest.approx(wanted, rel=1e-9, nan_ok=True), (ours, theirs)
            elif isinstance(wanted, float):
                assert abs(cell - wanted) <= 1, (ours, theirs)
            else:
                assert repr(cell) == repr(wanted), (ours, theirs)


ROWS = [(t / 40, f"k{t * t % 61 if t % 3 else 0}", t % 17) for t in range(400)]
TWO_STEPS = (
    "SELECT k, SUM(n) AS s, COUNT(*) AS c FROM (SELECT k, COUNT(*) AS n "
    "FROM s [RANGE 500 MILLISECONDS] GROUP BY k) [RANGE 5 SECONDS] GROUP BY k "
)
ONE_STEP = (
    "SELECT k, SUM(v) AS s, MEDIAN(v) AS m, COUNT(*) AS n "
    "FROM s [RANGE 4 SECONDS SLIDE 2 SECONDS] GROUP BY k ORDER BY n DESC LIMIT 40 "
)


def rows(
    sql: str, folder: Path, instances: int, batch_rows: int, **more: Any
) -> tuple[list[Any], int]:
    """The rows of a run, and how many tuples it shed."""
    sink, source = MemorySink(), memory(*ROWS, end=True)
    loop = loop_of(
        lower(node_of(sql)), [source], folder, sink,
        buckets=64, instances=instances, batch_rows=batch_rows, **more,
    )  # fmt: skip
    summary = loop.run()
    return rows_of(sink), summary.counters["rows_shed"]


@pytest.mark.parametrize(
    ("sql", "by", "first", "then"),
    [
        (ONE_STEP, "CONCEPT", 17, 32),
        (ONE_STEP, "UNIFORM", 3, 1),
        (TWO_STEPS, "CONCEPT", 4, 2),
        (TWO_STEPS, "UNIFORM", 1, 3),
    ],
)
def test_up_to_32_instances_and_results_of_results_shed_the_same(
    sql: str, by: str, first: int, then: int, tmp_path: Path
) -> None:
    sql += f"WITH SHED 80 PERCENT BY {by}"
    expected = rows(sql, tmp_path / "one", 1, 1000)
    assert len(expected[0]) > 10
    assert expected[1] > 10
    assert rows(sql, tmp_path / "several", first, 110, switches={1: then}) == expected
