"""Deduplication, ranks and OVER from Python: the nodes of SQL, and what is said of mistakes."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import tidegate as tg
from tidegate import col, count, lag, lead, mean, row_number
from tidegate import sum as sum_
from tidegate.errors import QueryError

ROWS = [
    {"ts": f"2024-01-01T00:00:0{i}Z", "k": k, "v": v}
    for i, (k, v) in enumerate([("a", 1), ("b", 5), ("a", 2), ("a", 4), ("b", 6)])
]


def stream() -> tg.Stream:
    return tg.Session(master="none").stream(ROWS, name="s")


def rows(made: tg.Stream) -> list[tuple[Any, ...]]:
    return [tuple(r.values())[1:] for r in made.preview(100).to_pylist()]


def test_over_is_that_of_sql() -> None:
    session = tg.Session(master="none")
    s = session.stream(ROWS, name="s")
    made = s.over("k", rows=1, two=mean("v"), before=lag("v", default=0), n=row_number())
    sql = session.sql(
        "SELECT k, v, AVG(v) OVER (PARTITION BY k ORDER BY ts ROWS 1 PRECEDING) AS two, "
        "LAG(v, 1, 0) OVER (PARTITION BY k ORDER BY ts) AS before, "
        "ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) AS n FROM s",
        s=s,
    )
    wanted = [
        ("a", 1, 1.0, 0, 1),
        ("b", 5, 5.0, 0, 1),
        ("a", 2, 1.5, 1, 2),
        ("a", 4, 3.0, 2, 3),
        ("b", 6, 5.5, 5, 2),
    ]
    assert rows(made) == rows(sql) == wanted


def test_lead_is_that_of_sql_and_its_rows_come_when_the_next_has_come() -> None:
    session = tg.Session(master="none")
    s = session.stream(ROWS, name="s")
    made = s.over("k", next=lead("v", default=0), before=lag("v"), third=lead(col("v") + 1, 2))
    sql = session.sql(
        "SELECT k, v, LEAD(v, 1, 0) OVER (PARTITION BY k ORDER BY ts) AS next, "
        "LAG(v) OVER (PARTITION BY k ORDER BY ts) AS before, "
        "LEAD(v + 1, 2) OVER (PARTITION BY k ORDER BY ts) AS third FROM s",
        s=s,
    )
    wanted = [
        ("a", 1, 2, None, 5),
        ("b", 5, 6, None, None),
        ("a", 2, 4, 1, None),
        ("a", 4, 0, 2, None),
        ("b", 6, 0, 5, None),
    ]
    assert rows(made) == rows(sql) == wanted


def test_null_is_left_out_as_in_sql() -> None:
    session = tg.Session(master="none")
    s = session.stream([{**r, "v": None if r["v"] in (2, 6) else r["v"]} for r in ROWS], name="s")
    made = s.over(
        "k",
        rows=2,
        before=lag("v", ignore_nulls=True),
        after=lead("v", default=0, ignore_nulls=True),
        second=tg.nth_value("v", 2, ignore_nulls=True),
    )
    sql = session.sql(
        "SELECT k, v, LAG(v IGNORE NULLS) OVER w AS before, LEAD(v, 1, 0) IGNORE NULLS OVER w AS "
        "after, NTH_VALUE(v, 2) IGNORE NULLS OVER (w ROWS 2 PRECEDING) AS second FROM s "
        "WINDOW w AS (PARTITION BY k ORDER BY ts)",
        s=s,
    )
    wanted = [
        ("a", 1, None, 4, None),
        ("a", None, 1, 4, None),
        ("b", 5, None, 0, None),
        ("a", 4, 1, 0, 4),
        ("b", None, 5, 0, None),
    ]
    assert rows(made) == rows(sql) == wanted


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("NTILE(3) OVER (ORDER BY v DESC) = 1", "b6 b5"),
        ("NTILE(3) OVER (PARTITION BY k ORDER BY v) >= 2", "a2 a4 b6"),
        ("PERCENT_RANK() OVER (ORDER BY v) < 0.5", "a1 a2"),
        ("0.8 <= CUME_DIST() OVER (ORDER BY v)", "b5 b6"),
        ("ROW_NUMBER() OVER (ORDER BY v) BETWEEN 2 AND 3", "a2 a4"),
        ("RANK() OVER (PARTITION BY k ORDER BY v) = 2", "a2 b6"),
    ],
)
def test_rows_of_a_window_are_kept_by_their_place(condition: str, kept: str) -> None:
    session = tg.Session(master="none")
    made = session.sql(
        f"SELECT k, v, COUNT(*) AS n FROM s [RANGE 1 MINUTE] GROUP BY k, v QUALIFY {condition}",
        s=session.stream(ROWS, name="s"),
    )
    found = made.to_arrow().to_pylist()
    assert sorted(f"{r['k']}{r['v']}" for r in found) == sorted(kept.split())


def test_sessions_are_numbered_as_they_come() -> None:
    made = by_sql(
        "SELECT k, n FROM (SELECT k, COUNT(*) AS n FROM s [SESSION GAP 1 SECOND] GROUP BY k) "
        "QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY window_end) = 1"
    )
    assert made == [("a", 1), ("b", 1)]


@pytest.mark.parametrize(
    ("default", "type_", "first"),
    [
        ("1.5", pa.decimal128(21, 1), Decimal("1.5")),
        ("1.5E0", pa.float64(), 1.5),
        ("NULL", pa.int64(), None),
        ("'7'", pa.int64(), 7),
    ],
)
@pytest.mark.parametrize(("word", "place"), [("LAG", 0), ("LEAD", -1)])
def test_the_default_is_kept_whole(
    word: str, place: int, default: str, type_: pa.DataType, first: Any
) -> None:
    """The column has the type that both the values and the default fit into."""
    session = tg.Session(master="none")
    text = f"SELECT {word}(v, 1, {default}) OVER (ORDER BY ts) AS x FROM s"
    made = session.sql(text, s=session.stream(ROWS, name="s"))
    found = made.to_arrow()["x"]
    assert (found.type, found.to_pylist()[place]) == (type_, first)


def test_ranks_are_those_of_sql() -> None:
    session = tg.Session(master="none")
    at = ["00", "00", "01", "01", "02"]
    twice = [{"ts": f"2024-01-01T00:00:{s}Z", "k": "a", "v": v} for v, s in enumerate(at)]
    s = session.stream(twice, name="s")
    sql = session.sql(
        "SELECT k, v, RANK() OVER w AS r, DENSE_RANK() OVER w AS d FROM s "
        "WINDOW w AS (PARTITION BY k ORDER BY ts)",
        s=s,
    )
    wanted = [("a", 0, 1, 1), ("a", 1, 1, 1), ("a", 2, 3, 2), ("a", 3, 3, 2), ("a", 4, 5, 3)]
    assert rows(s.over("k", r=tg.rank(), d=tg.dense_rank())) == rows(sql) == wanted


def test_rows_of_lead_count_when_they_are_decided() -> None:
    """Those that wait when the input ends are decided then: right after the newest tuple."""
    s = stream().over("k", next=lead("v"))
    counted = s.window("2 seconds").agg(n=count(), known=count("next"))
    found = [(r[0].second, *r[1:]) for r in rows(counted)]
    assert found == [(4, 2, 2), (6, 3, 1)]


def test_the_end_of_the_input_is_after_all_windows_and_after_tuples_of_other_streams() -> None:
    """LEAD over LEAD over windows, beside a stream that goes on for longer."""
    session = tg.Session(master="none")
    more = session.stream([{"ts": "2024-01-01T00:01:00Z", "k": "c", "v": 0}], name="t")
    sql = session.sql(
        "SELECT k, n, LEAD(n) OVER (ORDER BY ts) AS x FROM (SELECT k, n, LEAD(n) OVER (ORDER BY "
        "window_end) AS m FROM (SELECT k, COUNT(*) AS n FROM s [RANGE 5 SECONDS] GROUP BY k) "
        "UNION ALL SELECT k, v, v AS w FROM t)",
        s=session.stream(ROWS, name="s"),
        t=more,
    )
    counted = session.sql("SELECT COUNT(*) AS n, COUNT(x) AS known FROM q [RANGE 1 SECOND]", q=sql)
    assert rows(sql) == [("a", 3, 0), ("c", 0, 2), ("b", 2, None)]
    assert [(str(r[0])[14:19], *r[1:]) for r in rows(counted)] == [("01:01", 1, 1), ("01:06", 2, 1)]


def test_over_all_tuples_and_over_a_time() -> None:
    s = stream()
    assert rows(s.over(n=count()).select("n")) == [(1,), (2,), (3,), (4,), (5,)]
    recent = s.over("k", range="1 second", total=sum_("v")).where(col("k") == "a")
    assert rows(recent.select("total")) == [(1,), (2,), (6,)]


def test_first_of_each_key_and_top_of_each_group() -> None:
    s = stream()
    assert rows(s.drop_duplicates("k", within="2 seconds")) == [
        ("a", 1),
        ("b", 5),
        ("a", 4),
        ("b", 6),
    ]
    assert rows(s.drop_duplicates(within="1 hour").select("v")) == [(1,), (5,), (2,), (4,), (6,)]
    top = s.window("1 minute").group_by("k", "v").agg(n=count()).top(1, by="v", per="k")
    assert [r[1:3] for r in rows(top)] == [("b", 6), ("a", 4)]


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (
            lambda s: s.over("k", n=5),
            "lag(), lead(), row_number() or rank(); got 5.",
        ),
        (lambda s: s.over("k", rows=-1, n=count()), "over rows: must be a whole number from 0 on"),
        (
            lambda s: s.over("k", rows=1, range="1 s", n=count()),
            "over: takes rows or range; got both",
        ),
        (lambda s: s.over("k", k=count()), "k"),
        (lambda s: s.over("q", n=count()), "no column has this name; got q"),
        (lambda s: s.over("k", n=tg.median("v")), "whose state does not grow with the tuples"),
        (lambda s: s.over("k", n=lag("v", -1)), "LAG: must not look forward; got -1"),
        (lambda s: s.over("k", range="-1 s", n=count()), "OVER RANGE: must not look forward; got"),
        (lambda s: s.over("k", rows=10**13, n=count()), "OVER ROWS: looks at most 1,000,000"),
        (lambda s: s.over("k", n=lag("v", 2**63)), "LAG: looks at most 1,000,000,000,000 tuples"),
        (lambda s: s.over("k", n=lag("v", 1.5)), "must be a whole number; got 1.5"),
        (
            lambda s: s.over("k", n=lag("k", default=7)),
            "LAG: the value and the default must have one type; got string and int. Add a CAST.",
        ),
        (lambda s: s.over("k", n=lead("v", 0)), "LEAD: must look forward; got 0"),
        (lambda s: s.over("k", n=lead("v", 1.5)), "lead: the number of tuples must be a whole"),
        (lambda s: s.drop_duplicates("k", within="0 s"), "WITHIN: must be longer than zero"),
        (lambda s: s.drop_duplicates("k", within="1 s", keep="any"), "KEEP: must be first or last"),
        (lambda s: s.top(1, by="v", per="k"), "ORDER BY: an unbounded stream has no last tuple"),
    ],
)
def test_mistakes(made: Callable[[tg.Stream], Any], message: str) -> None:
    with pytest.raises(QueryError) as error:
        made(stream())
    assert message in str(error.value)


def by_sql(text: str) -> list[tuple[Any, ...]]:
    session = tg.Session(master="none")
    return rows(session.sql(text, s=session.stream(ROWS, name="s")))


def test_a_star_beside_over_is_the_columns_of_the_tuple() -> None:
    made = by_sql("SELECT *, SUM(v) OVER (PARTITION BY k ORDER BY ts) AS total FROM s")
    assert made == [("a", 1, 1), ("b", 5, 5), ("a", 2, 3), ("a", 4, 7), ("b", 6, 11)]


def test_a_number_in_distinct_on_is_a_position() -> None:
    made = by_sql("SELECT DISTINCT ON (1) k, v FROM s KEEP FIRST WITHIN '1 hour'")
    assert made == [("a", 1), ("b", 5)]


def test_a_number_in_limit_by_is_a_position() -> None:
    grouped = "SELECT k, v, COUNT(*) AS n FROM s [RANGE 1 MINUTE] GROUP BY k, v"
    made = by_sql(f"{grouped} ORDER BY v DESC LIMIT 1 BY 1")
    assert [r[1:3] for r in made] == [("b", 6), ("a", 4)]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT DISTINCT ON (3) k, v FROM s KEEP FIRST WITHIN '1 hour'",
        "SELECT k, v FROM s [RANGE 1 MINUTE] GROUP BY k, v LIMIT 1 BY 3",
    ],
)
def test_a_position_is_in_the_select_list(text: str) -> None:
    with pytest.raises(QueryError, match="must be a position from 1 to 2 in the select list"):
        by_sql(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT DISTINCT ON (k) * FROM ({}) KEEP FIRST WITHIN '1 second'",
        "SELECT *, LAG(n) OVER (PARTITION BY k ORDER BY window_end) AS b FROM ({})",
    ],
)
def test_the_window_of_rows_that_become_tuples_is_two_columns_of_a_star(text: str) -> None:
    session = tg.Session(master="none")
    counted = "SELECT k, COUNT(*) AS n FROM s [RANGE 1 MINUTE] GROUP BY k"
    made = session.sql(text.format(counted), s=session.stream(ROWS, name="s"))
    assert made.to_arrow().column_names[:5] == ["ts", "window_start", "window_end", "k", "n"]
