"""Streams joined to tables: the same rows for every arrival, cut, instances, switch and crash."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracle.query import Answer, PlainStream, in_total_order
from tests.oracle.table import PlainTable
from tests.property.course import AT_ONCE, run
from tests.property.queries import SCHEMA, uris_of
from tests.property.strategies import Scenario, crowded, scenarios
from tests.property.test_determinism import SEEDS, bits, share
from tests.property.test_determinism import small_splits as small_splits
from tidegate.plan.lowering.lower import lower
from tidegate.plan.physical import Plan
from tidegate.query.node.node import StreamDef
from tidegate.query.output import single
from tidegate.query.table import TableDef
from tidegate.schema import TIME
from tidegate.sql.bind import bind
from tidegate.sql.script import read_script

Row = Mapping[str, Any]

KEYED = pa.table(
    {
        "id": pa.array(["a", None, "b", "a", "ab", "b"]),
        "low": pa.array([0, 5, -20, 90, None, 0], pa.int64()),
        "high": pa.array([10, 9, 3, 200, 7, 100], pa.int64()),
        "since": pa.array([0, 0, 3, 1_700_000_000_000_005, -40, None], pa.int64()).cast(TIME),
        "w": pa.array([1, 2, 3, 4, 5, 6], pa.int64()),
    }
)
"""Keys that are there once, twice and not at all, NULL everywhere, intervals that overlap."""

PLAIN_ROWS = [
    {**row, "since": since}
    for row, since in zip(
        KEYED.to_pylist(), KEYED.column("since").cast(pa.int64()).to_pylist(), strict=True
    )
]


def equal(row: Row, other: Row) -> bool:
    return row["k"] is not None and row["k"] == other["id"]


def inside(row: Row, other: Row) -> bool:
    values = other["low"], row["i"], other["high"]
    return None not in values and values[0] <= values[1] <= values[2]


def shorter(row: Row, other: Row) -> bool:
    return None not in (row["k"], other["id"]) and len(row["k"]) < len(other["id"])


def cells(row: Row, other: Row | None) -> tuple[Any, ...]:
    return (row["i"], row["k"], *((None, None) if other is None else (other["id"], other["w"])))


@dataclass(frozen=True)
class TableQuery:
    """A query over a stream s and the table t, in SQL and as what it makes of each tuple."""

    sql: str
    table: PlainTable
    where: Callable[[Row, Row | None], bool] = lambda row, other: True
    select: Callable[[Row, Row | None], tuple[Any, ...]] = cells
    names: tuple[str, ...] = ("s",)
    valid_from: str | None = None

    def plan(self, sources: Sequence[int], disorder_us: int) -> Plan:
        stream = StreamDef("s", uris_of("s", sources[0]), "ts", disorder_us, None, SCHEMA)
        given = TableDef("t", (), KEYED.schema, valid_from=self.valid_from, given=lambda: KEYED)
        return lower(single(bind(read_script(self.sql), {"s": stream, "t": given})))

    def rows(self, streams: Sequence[PlainStream]) -> Iterator[tuple[Any, ...]]:
        for _, row in in_total_order(streams, Answer()):
            for other in self.table.joined(row):
                if self.where(row, other):
                    yield row["ts"], *self.select(row, other)


def joined(how: str) -> str:
    return f"SELECT s.i, s.k, t.id, t.w FROM s {how} JOIN t ON"


ALONE = "SELECT i, k FROM s"
"""What SEMI and ANTI leave: the columns of the stream alone."""

QUERIES: dict[str, TableQuery] = {
    "inner by a key": TableQuery(f"{joined('')} s.k = t.id", PlainTable(PLAIN_ROWS, equal)),
    "left by a key": TableQuery(
        f"{joined('LEFT')} s.k = t.id", PlainTable(PLAIN_ROWS, equal, "left")
    ),
    "left by a range": TableQuery(
        f"{joined('LEFT')} s.i BETWEEN t.low AND t.high", PlainTable(PLAIN_ROWS, inside, "left")
    ),
    "inner by a key and a range, filtered": TableQuery(
        f"{joined('')} s.k = t.id AND t.low <= s.i AND s.i <= t.high "
        "WHERE s.i <> 3 AND t.w + s.i < 100",
        PlainTable(PLAIN_ROWS, lambda row, other: equal(row, other) and inside(row, other)),
        where=lambda row, other: (
            other is not None and row["i"] != 3 and other["w"] + row["i"] < 100
        ),
    ),
    "left by any predicate": TableQuery(
        f"{joined('LEFT')} LENGTH(s.k) < LENGTH(t.id)", PlainTable(PLAIN_ROWS, shorter, "left")
    ),
    "semi": TableQuery(
        f"{ALONE} SEMI JOIN t ON s.k = t.id AND t.w > 1",
        PlainTable(PLAIN_ROWS, lambda r, o: equal(r, o) and o["w"] > 1, "semi"),
        select=lambda row, other: (row["i"], row["k"]),
    ),
    "anti": TableQuery(
        f"{ALONE} LEFT ANTI JOIN t ON s.i BETWEEN t.low AND t.high WHERE i IS NOT NULL",
        PlainTable(PLAIN_ROWS, inside, "anti"),
        where=lambda row, other: row["i"] is not None,
        select=lambda row, other: (row["i"], row["k"]),
    ),
    "versions": TableQuery(
        f"{joined('LEFT')} s.k = t.id",
        PlainTable(PLAIN_ROWS, equal, "left", "since", equal),
        valid_from="since",
    ),
    "all pairs": TableQuery(
        "SELECT s.i, s.k, t.id, t.w FROM s CROSS JOIN t",
        PlainTable(PLAIN_ROWS, lambda row, other: True),
    ),
}

ABOVE = {
    "windows": "SELECT w, COUNT(*) AS n, FIRST(i) AS a, LAST(k) AS z FROM ({0}) "
    "[RANGE 10 MICROSECONDS SLIDE 3 MICROSECONDS] GROUP BY w",
    "windows of tuples": "SELECT COUNT(*) AS n, SUM(w) AS s, LAST(i) AS i FROM ({0}) "
    "[ROWS 3 SLIDE 2] GROUP BY k",
    "a join with the stream": "SELECT a.i, a.w, b.i AS j FROM ({0}) AS a [RANGE 4 MICROSECONDS] "
    "JOIN s AS b [RANGE 2 MICROSECONDS] ON a.k = b.k",
    "another table": "SELECT a.i, a.w, t.w AS v FROM ({0}) AS a JOIN t ON a.id = t.id AND t.w < 5",
    "union": "SELECT i, w FROM ({0}) UNION ALL SELECT i, g FROM s",
}
"""What reads the rows of a join to a table: their order is the one that counts there."""

BELOW = {
    "of windows": "SELECT c.k, c.n, t.w FROM (SELECT k, COUNT(*) AS n FROM s "
    "[RANGE 5 MICROSECONDS] GROUP BY k) AS c LEFT JOIN t ON c.k = t.id",
    "of windows, kept": "SELECT k, n FROM (SELECT k, COUNT(*) AS n FROM s "
    "[RANGE 5 MICROSECONDS] GROUP BY k) AS c SEMI JOIN t ON c.k = t.id",
    "of pairs": "SELECT p.i, p.j, t.w FROM (SELECT a.i, b.i AS j, a.k FROM s AS a "
    "[RANGE 3 MICROSECONDS] JOIN s AS b [RANGE 1 MICROSECOND] ON a.k = b.k) AS p "
    "JOIN t ON p.k = t.id",
    "grouped by a text of the table": "SELECT t.id, COUNT(*) AS n FROM s [RANGE 5 MICROSECONDS] "
    "JOIN t ON s.k = t.id GROUP BY t.id",
    "grouped at once": "SELECT t.w, COUNT(*) AS n FROM s [RANGE 5 MICROSECONDS] "
    "JOIN t ON s.k = t.id GROUP BY t.w",
}
"""Joins to a table after a stateful operator, and below one in the same SELECT."""


SMALL_BYTES = 120
"""The table is larger, so that it is read by key where a join has one."""


def check(scenario: Scenario, plainly: bool = True, by_key: bool = False) -> None:
    query: Any = scenario.query
    plan = query.plan([len(s.sources) for s in scenario.streams], scenario.streams[0].disorder)
    reference = run(plan, scenario.streams, AT_ONCE)
    course = scenario.course
    if by_key:
        course = replace(course, whole_table_bytes=SMALL_BYTES)
    result = run(plan, scenario.streams, course)
    assert bits(result.rows) == bits(reference.rows)
    if plainly:
        assert bits(reference.rows) == bits(list(query.rows(scenario.streams)))


@share(30, least=30)
@given(scenarios(QUERIES))  # type: ignore[arg-type]
def test_rows_do_not_depend_on_the_run(scenario: Scenario) -> None:
    check(scenario)


@pytest.mark.parametrize("name", QUERIES)
def test_rows_of_crowded_streams_do_not_depend_on_the_run(name: str) -> None:
    for seed in SEEDS:
        query: Any = QUERIES[name]
        check(crowded(query, f"{name} {seed}"))


@share(20, least=20)
@given(st.data())
def test_what_reads_the_rows_does_not_depend_on_the_run(data: st.DataObject) -> None:
    inner = QUERIES["inner by a key"]
    queries: Any = {
        name: replace(inner, sql=text.format(inner.sql)) for name, text in ABOVE.items()
    } | {name: replace(inner, sql=text) for name, text in BELOW.items()}
    check(data.draw(scenarios(queries)), plainly=False)


@pytest.mark.parametrize("name", [*ABOVE, *BELOW])
def test_what_reads_crowded_rows_does_not_depend_on_the_run(name: str) -> None:
    inner = QUERIES["inner by a key"]
    text = (ABOVE | BELOW)[name].format(inner.sql)
    for seed in SEEDS:
        query: Any = replace(inner, sql=text)
        check(crowded(query, f"{name} {seed}"), plainly=False)


BY_KEY = {name: query for name, query in QUERIES.items() if "s.k = t.id" in query.sql}


def test_the_table_is_too_large_to_be_held() -> None:
    assert KEYED.nbytes > SMALL_BYTES
    assert len(BY_KEY) == 5


@share(30, least=30)
@given(scenarios(BY_KEY))  # type: ignore[arg-type]
def test_rows_by_key_are_those_of_the_whole_table(scenario: Scenario) -> None:
    check(scenario, by_key=True)


@pytest.mark.parametrize("name", BY_KEY)
def test_crowded_rows_by_key_are_those_of_the_whole_table(name: str) -> None:
    query: Any = QUERIES[name]
    check(crowded(query, f"{name} {SEEDS[0]}"), by_key=True)


@pytest.mark.parametrize("name", [*ABOVE, *BELOW])
def test_what_reads_crowded_rows_by_key_does_not_depend_on_the_run(name: str) -> None:
    inner = QUERIES["inner by a key"]
    query: Any = replace(inner, sql=(ABOVE | BELOW)[name].format(inner.sql))
    check(crowded(query, f"{name} {SEEDS[0]}"), plainly=False, by_key=True)
