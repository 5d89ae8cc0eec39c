"""EMIT EVERY: what it is put on, what it is refused for, and what may read its rows."""

from __future__ import annotations

from pathlib import Path

import pytest

import tidegate as tg
from tidegate.errors import QueryError
from tidegate.plan.physical import STRATEGIES
from tidegate.query.stream import Stream

ROWS = """ts,k,v
2024-05-01 10:00:10,a,1
2024-05-01 10:00:50,b,2
2024-05-01 10:01:10,a,3
2024-05-01 10:04:10,a,4
"""
COUNTED = "SELECT k, COUNT(*) AS n FROM s [{window}] GROUP BY k {rest}"
MINUTE = COUNTED.format(window="RANGE 5 MINUTES", rest="{rest} EMIT EVERY 1 MINUTE {more}")


class Script:
    """Queries over one file."""

    def __init__(self, path: Path) -> None:
        self._create, self._session = f"CREATE STREAM s FROM '{path}';", tg.Session(master="none")

    def sql(self, text: str) -> Stream:
        return self._session.sql(f"{self._create} {text}")


@pytest.fixture
def session(tmp_path: Path) -> Script:
    path = tmp_path / "s.csv"
    path.write_text(ROWS, encoding="utf-8")
    return Script(path)


def rows(query: Stream, *columns: str) -> list[tuple[object, ...]]:
    table = query.to_arrow()
    return list(zip(*(table.column(name).to_pylist() for name in columns), strict=True))


WANTED = [
    ("a", 1, False),
    ("b", 1, False),
    ("a", 2, False),
    ("a", 3, True),
    ("b", 1, True),
]


def test_groups_that_changed_give_a_row_at_each_mark(session: Script) -> None:
    found = session.sql(MINUTE.format(rest="", more=""))
    assert rows(found, "k", "n", "final") == WANTED


def test_python_says_the_same(session: Script) -> None:
    found = (
        session.sql("SELECT k FROM s")
        .window("5 minutes")
        .group_by("k")
        .agg(n=tg.count())
        .emit_every("1 minute")
    )
    assert rows(found, "k", "n", "final") == WANTED


def test_a_query_around_it_may_keep_the_final_rows(session: Script) -> None:
    found = session.sql(f"SELECT k, n FROM ({MINUTE.format(rest='', more='')}) WHERE final")
    assert rows(found, "k", "n") == [("a", 3), ("b", 1)]


def test_a_query_around_it_may_keep_the_final_rows_of_a_limit(session: Script) -> None:
    inner = MINUTE.format(rest="ORDER BY n DESC LIMIT 1", more="")
    assert rows(session.sql(f"SELECT k, n FROM ({inner}) WHERE final"), "k", "n") == [("a", 3)]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_rows_come_at_their_marks_whatever_the_strategy(session: Script, strategy: str) -> None:
    """With operator-cloud HAVING and the query around are subqueries of their own."""
    inner = MINUTE.format(rest="HAVING COUNT(*) < 9", more="")
    sink = tg.sink.memory()
    session.sql(f"SELECT * FROM ({inner})").start(sink=sink, strategy=strategy).wait()
    found = sink.table().select(["k", "n", "final"])
    assert list(zip(*(c.to_pylist() for c in found.columns), strict=True)) == WANTED


def test_a_session_keeps_its_beginning(session: Script) -> None:
    """So that its early rows and the last one have the same key."""
    text = COUNTED.format(window="SESSION GAP 90 SECONDS", rest="EMIT EVERY 30 SECONDS")
    found = rows(session.sql(text), "k", "window_start", "window_end", "n", "final")
    told = [(k, f"{begin:%M:%S}", f"{end:%M:%S}", n, final) for k, begin, end, n, final in found]
    assert told == [
        ("a", "00:10", "01:40", 1, False),
        ("b", "00:50", "02:20", 1, False),
        ("a", "00:10", "02:40", 2, False),
        ("b", "00:50", "02:20", 1, True),
        ("a", "00:10", "02:40", 2, True),
        ("a", "04:10", "05:40", 1, False),
        ("a", "04:10", "05:40", 1, True),
    ]
    assert "rows of open windows: at every multiple of 30 seconds" in session.sql(text).explain()


def test_days_of_a_time_zone_have_early_rows(session: Script) -> None:
    text = COUNTED.format(window="RANGE 1 DAY TIME ZONE 'Asia/Kolkata'", rest="EMIT EVERY 1 MINUTE")
    assert rows(session.sql(text), "k", "n", "final") == [
        ("a", 1, False),
        ("b", 1, False),
        ("a", 2, False),
        ("a", 3, False),
        ("a", 3, True),
        ("b", 1, True),
    ]
    assert "panes: 1 day and 1 minute, whichever ends first" in session.sql(text).explain()


SELDOM = [
    (
        "RANGE 2 MINUTES SLIDE 1 MINUTE",
        "2 MINUTES",
        [(2, True), (1, False), (3, True), (1, True), (1, True), (1, True)],
    ),
    (
        "RANGE 1 MINUTE OFFSET 30 SECONDS",
        "1 MINUTE",
        [(1, True), (1, False), (2, True), (1, True)],
    ),
    (
        "SESSION GAP 40 SECONDS MAX 1 MINUTE",
        "100 SECONDS",
        [(3, False), (3, True), (1, True)],
    ),
    ("RANGE 7 DAYS TIME ZONE 'UTC'", "7 DAYS", [(4, False), (4, True)]),
]


@pytest.mark.parametrize(("window", "every", "wanted"), SELDOM)
def test_a_window_is_open_at_marks_that_are_as_seldom_as_it_is_long(
    session: Script, window: str, every: str, wanted: list[tuple[int, bool]]
) -> None:
    """Weeks begin on Monday, and the marks of seven days are Thursdays, as the epoch is."""
    found = session.sql(f"SELECT COUNT(*) AS n FROM s [{window}] EMIT EVERY {every}")
    assert rows(found, "n", "final") == wanted


def test_a_limit_counts_the_rows_of_one_mark(session: Script) -> None:
    found = session.sql(MINUTE.format(rest="ORDER BY n DESC LIMIT 1", more=""))
    assert rows(found, "k", "n", "final") == [row for row in WANTED if row[0] == "a"]


def test_final_is_the_last_column_beside_a_partitioner(session: Script) -> None:
    found = session.sql(MINUTE.format(rest="", more="WITH PARTITIONER hash"))
    assert found.to_arrow().column_names[-1] == "final"
    assert "emit every 1 minute" in found.explain()
    assert "panes: 1 minute, 5 per window" in found.explain()


@pytest.mark.parametrize(
    ("window", "rest", "message"),
    [
        ("ROWS 5", "EMIT EVERY 1 MINUTE", "one of tuples is final as soon as it is full"),
        ("RANGE 1 DAY TIME ZONE 'UTC'", "EMIT EVERY 3 DAYS", "must be shorter than the window"),
        ("RANGE 1 HOUR", "EMIT EVERY 0 SECONDS", "must be longer than zero"),
        ("RANGE 1 DAY TIME ZONE 'UTC'", "EMIT EVERY 1 DAY", "must be shorter than the window"),
        ("RANGE 1 HOUR", "EMIT EVERY 1 HOUR", "must be shorter than the window"),
        ("RANGE 1 HOUR", "EMIT EVERY 2 HOURS", "must be shorter than the window"),
        ("RANGE 1 HOUR", "EMIT EVERY '1 minute' WITH SHED 50 PERCENT", "is for exact answers"),
        ("RANGE 1 HOUR", "WITH SHED 50 PERCENT EMIT EVERY '1 minute'", "is for exact answers"),
        ("RANGE 1 HOUR", "EMIT EVERY 1 MINUTE EMIT EVERY 2 MINUTES", "has one EMIT"),
    ],
)
def test_what_cannot_have_early_rows_is_refused(
    session: Script, window: str, rest: str, message: str
) -> None:
    with pytest.raises(QueryError, match=message):
        session.sql(COUNTED.format(window=window, rest=rest))


@pytest.mark.parametrize("clause", ["ERROR 10 PERCENT", "BALANCE ERROR 10 PERCENT"])
def test_answers_from_samples_have_no_early_rows(session: Script, clause: str) -> None:
    median = "SELECT k, MEDIAN(v) AS m FROM s [RANGE 1 HOUR] GROUP BY k"
    for rest in (f"EMIT EVERY 1 MINUTE WITH {clause}", f"WITH {clause} EMIT EVERY 1 MINUTE"):
        with pytest.raises(QueryError, match="is for exact answers"):
            session.sql(f"{median} {rest}")


def test_keys_must_be_in_one_place(session: Script) -> None:
    split = session.sql(MINUTE.format(rest="", more="WITH PARTITIONER shuffle"))
    with pytest.raises(QueryError, match=r"splits the tuples of a key.*EMIT EVERY 1 minute"):
        split.explain()


@pytest.mark.parametrize(
    "around",
    [
        "SELECT SUM(n) AS n FROM ({inner}) [RANGE 1 HOUR]",
        "SELECT k, n FROM ({inner}) UNION ALL SELECT k, v FROM s",
        "SELECT x.k FROM ({inner}) [RANGE 1 HOUR] AS x JOIN s [RANGE 1 HOUR] ON x.k = s.k",
        "SELECT DISTINCT ON (k) k FROM ({inner}) KEEP FIRST WITHIN 1 HOUR",
        "SELECT k, LAG(n) OVER (PARTITION BY k ORDER BY window_end) AS n FROM ({inner})",
    ],
)
def test_another_operator_does_not_read_early_rows(session: Script, around: str) -> None:
    query = session.sql(around.format(inner=MINUTE.format(rest="", more="")))
    with pytest.raises(QueryError, match="is for the last aggregate of a query"):
        query.explain()
