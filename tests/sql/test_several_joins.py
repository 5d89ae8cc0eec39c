"""Joins of several streams, and windows over joins: the same rows as with subqueries."""

from __future__ import annotations

import pyarrow as pa
import pytest

import tidegate as tg
from tests.query.catalog import sql
from tidegate.plan.explain import explain
from tidegate.plan.lowering.lower import lower
from tidegate.query.node.node import Join, Project
from tidegate.query.output import Output
from tidegate.query.window import Distance
from tidegate.session.script import streams_of
from tidegate.sql.bind import bind, read_script

FIVE = "[RANGE 5 SECONDS]"


@pytest.fixture(scope="module")
def streams() -> dict[str, tg.Stream]:
    session = tg.Session(master="none")
    return {
        name: session.stream(f"generator:calls?rows=300&rate=20&keys=12&seed={seed}", name=name)
        for seed, name in enumerate("abc")
    }


def rows(text: str, streams: dict[str, tg.Stream], instances: int = 2) -> pa.Table:
    sink = tg.sink.memory()
    session = tg.Session(master="none")
    query = session.sql(text, **streams)
    query.start(sink=sink, instances=instances, batch_rows=130, switches={2: 3}).wait()
    return sink.table()


PAIRS = f"a {FIVE} JOIN b [RANGE 2 SECONDS] ON a.district = b.district"
NESTED = (
    f"(SELECT a.src AS a_src, b.src AS b_src, b.district FROM {PAIRS}) AS ab {FIVE} "
    "JOIN c [RANGE 1 SECOND] ON ab.district = c.district"
)
SAME = {
    "three streams": (
        f"SELECT a.src, b.src AS b, c.src AS c FROM {PAIRS} "
        "JOIN c [RANGE 1 SECOND] ON b.district = c.district",
        f"SELECT a_src AS src, b_src AS b, c.src AS c FROM {NESTED}",
    ),
    "three streams with USING": (
        f"SELECT a.src, b.src AS b, c.src AS c, district FROM a {FIVE} JOIN b [RANGE 2 SECONDS] "
        "USING (district) JOIN c [RANGE 1 SECOND] USING (district)",
        f"SELECT a_src AS src, b_src AS b, c.src AS c, ab.district FROM {NESTED}",
    ),
    "pairs with a window of their own": (
        f"SELECT a.src, c.src AS c FROM ({PAIRS}) [RANGE 1 SECOND] "
        f"JOIN c {FIVE} ON a.district = c.district WHERE a.src <> c.src",
        "SELECT ab.src, c.src AS c FROM (SELECT a.src, a.district FROM "
        f"{PAIRS}) AS ab [RANGE 1 SECOND] JOIN c {FIVE} ON ab.district = c.district "
        "WHERE ab.src <> c.src",
    ),
    "pairs in parentheses": (
        f"SELECT a.src, c.src AS c FROM c [RANGE 1 SECOND] JOIN ({PAIRS}) "
        "ON a.district = c.district",
        f"SELECT ab.src, c.src AS c FROM c [RANGE 1 SECOND] JOIN (SELECT a.src, a.district FROM "
        f"{PAIRS}) AS ab {FIVE} ON ab.district = c.district",
    ),
    "a window over a join": (
        f"SELECT a.district, COUNT(*) AS n, MAX(b.src) AS most FROM ({PAIRS}) [RANGE 10 SECONDS] "
        "WHERE a.src <> b.src GROUP BY a.district HAVING n > 1 ORDER BY n DESC LIMIT 2",
        "SELECT district, COUNT(*) AS n, MAX(src) AS most FROM (SELECT a.district, b.src FROM "
        f"{PAIRS} WHERE a.src <> b.src) [RANGE 10 SECONDS] GROUP BY district HAVING n > 1 "
        "ORDER BY n DESC LIMIT 2",
    ),
    "a stream with itself": (
        f"SELECT a.src, b.src AS b FROM calls a {FIVE} JOIN calls b {FIVE} "
        "ON a.district = b.district",
        f"SELECT a.src, b.src AS b FROM (SELECT * FROM calls) a {FIVE} JOIN (SELECT src, district "
        f"FROM calls) b {FIVE} ON a.district = b.district",
    ),
    "as of the pairs": (
        f"SELECT a.src, b.src AS b, c.src AS c FROM {PAIRS} ASOF LEFT JOIN c {FIVE} "
        "MATCH_CONDITION (ts >= c.ts) ON a.district = c.district",
        "SELECT ab.src, ab.b, c.src AS c FROM (SELECT a.src, b.src AS b, a.district FROM "
        f"{PAIRS}) AS ab ASOF LEFT JOIN c {FIVE} MATCH_CONDITION (ab.ts >= c.ts) "
        "USING (district)",
    ),
    "an as-of join, then a join": (
        f"SELECT a.src, b.src AS b, c.src AS c FROM a {FIVE} ASOF JOIN b MATCH_CONDITION "
        f"(a.ts > b.ts) USING (district) JOIN c {FIVE} USING (district)",
        "SELECT ab.src, ab.b, c.src AS c FROM (SELECT a.src, b.src AS b, a.district FROM a "
        "ASOF JOIN b MATCH_CONDITION (a.ts > b.ts) USING (district)) AS ab "
        f"{FIVE} JOIN c {FIVE} USING (district)",
    ),
    "two as-of joins": (
        "SELECT a.src, b.src AS b, c.src AS c FROM a ASOF JOIN b MATCH_CONDITION (a.ts >= b.ts) "
        "USING (district) ASOF JOIN c MATCH_CONDITION (a.ts >= c.ts) USING (district)",
        "SELECT ab.src, ab.b, c.src AS c FROM (SELECT a.src, b.src AS b, a.district FROM a "
        "ASOF JOIN b MATCH_CONDITION (a.ts >= b.ts) USING (district)) AS ab "
        "ASOF JOIN c MATCH_CONDITION (ab.ts >= c.ts) USING (district)",
    ),
    "windows over as-of joins ahead, in two outputs' worth of columns": (
        "SELECT COUNT(*) AS n, COUNT(b.src) AS met FROM (a ASOF LEFT JOIN b [RANGE 1 SECOND] "
        "MATCH_CONDITION (a.ts < b.ts) USING (district)) [RANGE 2 SECONDS]",
        "SELECT COUNT(*) AS n, COUNT(b) AS met FROM (SELECT b.src AS b FROM a ASOF LEFT JOIN b "
        "[RANGE 1 SECOND] MATCH_CONDITION (a.ts < b.ts) USING (district)) [RANGE 2 SECONDS]",
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_the_same_rows_as_with_subqueries(name: str, streams: dict[str, tg.Stream]) -> None:
    given = {**streams, "calls": streams["a"]}
    short, long = SAME[name]
    wanted = rows(long, given, instances=1)
    got = rows(short, given)
    assert got.num_rows > 1
    assert got.to_pylist() == wanted.to_pylist()


def test_pairs_reach_as_far_as_the_longest_of_their_windows() -> None:
    node = sql(
        "SELECT a.tip FROM rides a [RANGE 1 HOUR] JOIN calls b [RANGE 2 HOURS] USING (route) "
        "JOIN calls c [RANGE 1 MINUTE] USING (route) JOIN rides d [RANGE 1 DAY] ON d.tip = a.tip"
    )
    assert isinstance(node, Project)
    reaches = []
    join = node.child
    while isinstance(join, Join):
        assert isinstance(join.left_window, Distance)
        reaches.append(join.left_window.range_us // 3_600_000_000)
        below = join.left
        join = below.child if isinstance(below, Project) else below  # type: ignore[assignment]
    assert reaches == [2, 2, 1]


def test_a_query_of_with_gives_its_name_to_the_plan() -> None:
    script = read_script(
        "CREATE STREAM s FROM 'generator:calls' TIME ts; "
        "WITH busy AS (SELECT district, COUNT(*) AS n FROM s [RANGE 1 MINUTE] GROUP BY district), "
        f"pairs AS (SELECT a.src FROM s a {FIVE} JOIN s b {FIVE} USING (district)) "
        "SELECT CAST(n AS STRING) AS n FROM busy UNION ALL SELECT src FROM pairs"
    )
    outputs: tuple[Output, ...] = bind(script, streams_of(script))
    text = explain(outputs, lower(outputs))
    assert "1 busy: aggregate" in text
    assert "2 pairs: join" in text


def test_columns_that_nothing_reads_are_not_read() -> None:
    text = (
        "SELECT b.fare FROM rides a [RANGE 1 HOUR] JOIN calls b [RANGE 1 HOUR] USING (route) "
        "JOIN calls c [RANGE 1 HOUR] ON c.fare = a.tip"
    )
    first, second = lower(sql(text)).subqueries
    assert [set(prefix.columns) for prefix in first.prefixes] == [
        {"route", "tip"},
        {"route", "fare"},
    ]
    assert set(second.prefixes[0].columns) == {"a.tip", "b.fare"}
