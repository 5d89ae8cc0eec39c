"""What other SQL has: that which just works, and the lines that messages give to copy, run."""

from __future__ import annotations

from typing import Any

import pytest

import tidegate as tg
from tests.query.catalog import sql
from tidegate import count, expr
from tidegate.errors import QueryError
from tidegate.query.node.node import Aggregate, Filter

session = tg.Session(master="none")


def second(n: int) -> str:
    return f"2024-01-01T00:00:{n:02d}Z"


rides = session.stream(
    [{"ts": second(n), "k": k, "x": x} for n, k, x in [(1, "a", 5), (5, "b", 7), (9, "a", 6)]],
    name="rides",
)
stops = session.stream(
    [{"ts": second(n), "k": k, "x": x} for n, k, x in [(2, "b", 10), (4, "b", 20), (20, "a", 30)]],
    name="stops",
)


def rows(text: str) -> list[dict[str, Any]]:
    """The result of a query, without times of windows and of tuples."""
    found = session.sql(text, rides=rides, stops=stops).preview(100)
    assert found.complete
    hidden = ("ts", "window_start", "window_end", "at")
    return [{k: v for k, v in row.items() if k not in hidden} for row in found.to_pylist()]


def test_rows_of_a_window_can_be_distinct() -> None:
    assert rows("SELECT DISTINCT k FROM rides [RANGE 1 HOUR]") == [{"k": "a"}, {"k": "b"}]
    assert rows("SELECT DISTINCT UPPER(k) AS up FROM rides [RANGE 1 HOUR] WHERE x > 5") == [
        {"up": "A"},
        {"up": "B"},
    ]
    assert rows("SELECT DISTINCT k FROM rides [RANGE 1 HOUR] ORDER BY k DESC LIMIT 1") == [
        {"k": "b"}
    ]


def test_group_by_all_takes_what_is_no_aggregate() -> None:
    assert rows("SELECT k, COUNT(*) AS n FROM rides [RANGE 1 HOUR] GROUP BY ALL") == [
        {"k": "a", "n": 2},
        {"k": "b", "n": 1},
    ]


def test_a_natural_join_is_over_the_columns_of_both() -> None:
    hour = "[RANGE 1 HOUR]"
    natural = f"SELECT k FROM (SELECT k FROM rides) AS l {hour} NATURAL JOIN stops {hour}"
    using = f"SELECT k FROM (SELECT k FROM rides) AS l {hour} JOIN stops {hour} USING (k)"
    assert rows(natural) == rows(using)
    assert len(rows(natural)) == 4


@pytest.mark.parametrize("size", ["INTERVAL 10 SECONDS", "INTERVAL '10' SECOND", "'10 seconds'"])
def test_a_window_may_be_written_as_an_interval(size: str) -> None:
    expected = sql("SELECT COUNT(*) AS n FROM calls [RANGE 10 SECONDS]")
    assert sql(f"SELECT COUNT(*) AS n FROM calls [RANGE {size}]") == expected


def test_columns_of_with_have_the_names_given_to_them() -> None:
    assert rows("WITH named(key, value) AS (SELECT k, x FROM rides) SELECT key FROM named") == [
        {"key": "a"},
        {"key": "b"},
        {"key": "a"},
    ]
    with pytest.raises(QueryError, match="WITH: the list of columns must name each of the 2"):
        rows("WITH named(key) AS (SELECT k, x FROM rides) SELECT key FROM named")


def test_columns_of_a_star_can_be_replaced_and_renamed() -> None:
    assert rows("SELECT * REPLACE (x + 1 AS x) FROM rides WHERE k = 'b'") == [{"k": "b", "x": 8}]
    assert rows("SELECT * RENAME (x AS y) FROM rides WHERE k = 'b'") == [{"k": "b", "y": 7}]
    assert rows("SELECT r.*, x + 1 AS y FROM rides r WHERE k = 'b'") == [{"k": "b", "x": 7, "y": 8}]
    with pytest.raises(QueryError, match=r"\* RENAME: no column has this name; got z\."):
        rows("SELECT * RENAME (z AS y) FROM rides")


def test_fetch_first_is_limit_and_insert_into_table_is_insert_into() -> None:
    top = "SELECT route, COUNT(*) AS n FROM calls [RANGE 1 HOUR] GROUP BY route ORDER BY n "
    assert sql(f"{top} FETCH FIRST 3 ROWS ONLY") == sql(f"{top} LIMIT 3")
    assert sql(f"INSERT INTO TABLE out {top}") == sql(top)


def test_having_over_keys_that_only_spark_can_tell_is_asked_of_the_tuples() -> None:
    grouped = "SELECT route, COUNT(*) AS n FROM calls [RANGE 1 HOUR]{} GROUP BY route{}"
    before = sql(grouped.format(" WHERE route RLIKE '^a'", " HAVING n > 1"))
    assert sql(grouped.format("", " HAVING route RLIKE '^a' AND n > 1")) == before
    made = rides.window("1 hour").group_by("k").agg(n=count()).having(expr("k RLIKE '^a'")).node
    assert isinstance(made, Aggregate)
    assert isinstance(made.child, Filter)
    plain = sql(grouped.format("", " HAVING route = 'a'"))
    assert isinstance(plain, Filter)
    with pytest.raises(QueryError, match=r"HAVING: RLIKE needs Spark.* After a window there is no"):
        sql(grouped.format("", " HAVING FIRST(route) RLIKE '^a'"))


def test_words_of_other_sql_may_be_names() -> None:
    text = (
        "SELECT hop, `window`, tumble AS emit FROM (SELECT k AS hop, k AS `window`, x AS tumble "
        "FROM rides) WHERE tumble = 7"
    )
    assert rows(text) == [{"hop": "b", "window": "b", "emit": 7}]
    assert rows("WITH hop (k, x) AS (SELECT k, x FROM rides) SELECT k FROM hop WHERE x = 7") == [
        {"k": "b"}
    ]
    assert rows("INSERT INTO tumble (SELECT k FROM rides WHERE x = 7)") == [{"k": "b"}]
