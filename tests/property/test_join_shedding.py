"""What joins shed, and what is made of their pairs, does not depend on how a query is run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracle.join import Row, Within
from tests.oracle.shed_join import (
    OverPairs,
    ShedJoin,
    interpret_over_pairs,
    interpret_shed_join,
)
from tests.property.course import AT_ONCE, run
from tests.property.joins import JOINED, both, equal, joined, numbered
from tests.property.queries import Query
from tests.property.strategies import POSITIVE, Scenario, crowded, scenarios
from tests.property.test_determinism import bits, share
from tidegate.elastic.handover import HANDOVERS, WINDOW
from tidegate.plan.join.method import JoinOptions
from tidegate.plan.lowering.rule import Choices
from tidegate.plan.physical import Plan

WHERE = joined(
    Within(15),
    Within(15),
    "l.k = r.k",
    lambda a, b: both(equal(a["k"], b["k"]), a["g"] is not None, b["g"] is not None),
    "WHERE l.g IS NOT NULL AND r.g IS NOT NULL",
)
LONG = joined(Within(1500), Within(2000), "l.k = r.k", lambda a, b: equal(a["k"], b["k"]))
KEYS = {
    "equality": ("k",),
    "equality of floats, a long and a short window": ("f",),
    "two keys, one moment": ("k", "g"),
    "band and equality": ("g",),
    "null-safe equality": ("f",),
    "itself": ("k",),
    "where": ("k",),
    "long": ("k",),
}
BARE = {name: JOINED[name] for name in KEYS if name in JOINED} | {"where": WHERE, "long": LONG}
COLUMNS = "COUNT(*) AS n, COUNT(i) AS c, SUM(i) AS s, SUM(x) AS f, AVG(i) AS m"
WAYS = (JoinOptions(), JoinOptions("scan"), JoinOptions(routing="key"))


def shed(name: str, percent: int, by: str) -> ShedJoin:
    there = (lambda r: r["g"] is not None,) * 2 if name == "where" else None
    return ShedJoin(
        BARE[name].plain,  # type: ignore[arg-type]
        f"0.{percent}",
        by == "CONCEPT",
        KEYS[name],
        name == "null-safe equality",
        **({} if there is None else {"where": there}),  # type: ignore[arg-type]
    )


def query_of(name: str, percent: int, by: str, over: tuple[int, int] | None) -> Query:
    """The join as it is, or with an aggregate over windows of its pairs."""
    clause, plain = f"WITH SHED {percent} PERCENT BY {by}", shed(name, percent, by)
    names = BARE[name].names
    if over is None:
        return Query(f"{BARE[name].sql} {clause}", plain, names)  # type: ignore[arg-type]
    window = f"[RANGE {over[0]} MICROSECONDS SLIDE {over[1]} MICROSECONDS]"
    sql = f"SELECT k, {COLUMNS} FROM ({BARE[name].sql}) {window} GROUP BY k {clause}"
    return Query(sql, OverPairs(plain, *over), names)  # type: ignore[arg-type]


SHEDDING = {
    f"{name}, {by}, {over}": query_of(name, 60 + 5 * place if by == "CONCEPT" else 30, by, over)
    for place, name in enumerate(BARE)
    for by in ("CONCEPT", "UNIFORM")
    for over in (None, (30, 10), (2000, 2000))
}


@pytest.fixture(scope="module", autouse=True)
def small_splits() -> Iterator[None]:
    """Several map tasks read one source, although the sources are small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidegate.execute.splits.SPLIT_ROWS", 7)
        yield


def plan_of(scenario: Scenario, join: JoinOptions) -> Plan:
    streams = scenario.streams
    sources = [len(s.sources) for s in streams]
    return scenario.query.plan(sources, streams[0].disorder, Choices(join=join))


def check(scenario: Scenario, join: JoinOptions) -> int:
    """Run two ways and interpreted plainly; how many rows there were."""
    scenario, plain = numbered(scenario), scenario.query.plain
    reference = run(plan_of(scenario, JoinOptions()), scenario.streams, AT_ONCE)
    result = run(plan_of(scenario, join), scenario.streams, scenario.course)
    assert bits(result.rows) == bits(reference.rows)
    assert result.counters.get("rows_shed", 0) == reference.counters.get("rows_shed", 0)
    if isinstance(plain, OverPairs):
        answer = interpret_over_pairs(plain, scenario.streams)
    else:
        assert isinstance(plain, ShedJoin)
        answer = interpret_shed_join(plain, scenario.streams)
    assert bits(reference.rows) == bits(answer.rows)
    return len(answer.rows)


def tame(scenario: Scenario) -> Scenario:
    """Without numbers whose sums are not numbers."""

    def changed(rows: Sequence[Row]) -> list[Row]:
        return [{**row, "x": POSITIVE[i % len(POSITIVE)]} for i, row in enumerate(rows)]

    streams = (replace(s, sources=[changed(r) for r in s.sources]) for s in scenario.streams)
    return replace(scenario, streams=tuple(streams))


@share(5, least=8)
@given(
    scenarios(SHEDDING).map(tame),
    st.sampled_from(WAYS),
    st.sampled_from([h for h in HANDOVERS if h != WINDOW]),
)
def test_what_joins_shed_does_not_depend_on_the_run(
    scenario: Scenario, join: JoinOptions, handover: str
) -> None:
    check(replace(scenario, course=replace(scenario.course, handover=handover)), join)


def test_crowded_streams_do_not_depend_on_the_run() -> None:
    rows = dict.fromkeys(SHEDDING, 0)
    for place, name in enumerate(SHEDDING):
        if place % 6 == place // 6 % 3 or place % 12 == 3:
            scenario = tame(crowded(SHEDDING[name], f"{name} joins"))
            rows[name] = check(scenario, WAYS[place % len(WAYS)])
    assert sum(count for name, count in rows.items() if "CONCEPT" in name) > 150
    assert sum(count for name, count in rows.items() if "UNIFORM" in name) > 10


def test_intervals_of_crowded_streams_do_not_depend_on_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tidegate.plan.join.shed.LEAST_ROWS", 1)
    monkeypatch.setattr("tidegate.plan.join.shed.ceil", lambda _: 1)
    shed = query_of("long", 90, "CONCEPT", (30, 10))
    query = replace(shed, sql=f"{shed.sql} WITH ERROR 30 PERCENT")
    scenario = numbered(tame(crowded(query, "bounded")))
    plan = plan_of(scenario, JoinOptions())
    reference = run(plan, scenario.streams, AT_ONCE)
    assert bits(run(plan, scenario.streams, scenario.course).rows) == bits(reference.rows)
    assert sum(row[-1] is False for row in reference.rows) > 2
