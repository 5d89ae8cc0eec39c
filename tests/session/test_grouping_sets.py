"""GROUPING SETS, ROLLUP and CUBE: the rows of each set are those of a query by its keys alone."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tidegate as tg
from tidegate.errors import QueryError
from tidegate.schema import TIME

WINDOWS = ("RANGE 20 SECONDS", "RANGE 20 SECONDS SLIDE 7 SECONDS", "ROWS 5 SLIDE 2")
CALLS = "COUNT(*) AS n, SUM(a) AS s, FIRST(x) AS f, ARRAY_AGG(x ORDER BY a) AS l, MODE(b) AS m"
GROUPS = {
    "ROLLUP (a, b)": [("a", "b"), ("a",), ()],
    "CUBE (a, b)": [("a", "b"), ("a",), ("b",), ()],
    "GROUPING SETS ((a, b), b, ())": [("a", "b"), ("b",), ()],
    "a, b WITH ROLLUP": [("a", "b"), ("a",), ()],
    "a, b WITH CUBE": [("a", "b"), ("a",), ("b",), ()],
    "a, b GROUPING SETS ((a), (b))": [("a",), ("b",)],
    "a, ROLLUP (b)": [("a", "b"), ("a",)],
    "ROLLUP ((a, b))": [("a", "b"), ()],
    "GROUPING SETS (ROLLUP (a), (b))": [("a",), (), ("b",)],
    "1, CUBE (2)": [("a", "b"), ("a",)],
    "GROUPING SETS ((a, b))": [("a", "b")],
}
_ids = count()


def rows(seed: int = 1, size: int = 120) -> pa.Table:
    chance = np.random.default_rng(seed)
    times = pa.array(np.sort(chance.integers(0, 60_000_000, size)), pa.int64()).view(TIME)
    a = pa.array(chance.integers(0, 3, size), mask=chance.random(size) < 0.2)
    b = pa.array(chance.choice(["p", "q"], size), mask=chance.random(size) < 0.2)
    return pa.table({"ts": times, "a": a, "b": b, "x": np.arange(size)})


def run(text: str, table: pa.Table, **options: Any) -> list[dict[str, Any]]:
    session = tg.Session(master="none")
    source = tg.MemorySource(table, time="ts", id=f"s/{next(_ids)}")
    source.end()
    sink = tg.sink.memory()
    session.sql(text, s=session.stream(source, time="ts", name="s")).start(
        sink=sink, **options
    ).wait()
    return sink.table().to_pylist()


def key_of(row: dict[str, Any]) -> tuple[Any, ...]:
    """A window ends, then by keys with NULL first, then by the number of the set."""
    parts = [(row[k] is not None, row[k] or 0 if k == "a" else row[k] or "") for k in ("a", "b")]
    return (row["window_end"], *parts, row["g"])


@pytest.mark.parametrize("window", WINDOWS[:2])
@pytest.mark.parametrize("group", GROUPS)
def test_each_set_is_a_query_of_its_own(group: str, window: str) -> None:
    table = rows()
    got = run(
        f"SELECT a, b, GROUPING_ID() AS g, GROUPING(a) AS ga, {CALLS} FROM s [{window}] "
        f"GROUP BY {group}",
        table,
        batch_rows=50,
    )
    assert got == sorted(got, key=key_of)
    for keys in GROUPS[group]:
        number = sum((k not in keys) << n for n, k in enumerate(("b", "a")))
        listed = "".join(f"{k}, " for k in keys)
        by = f" GROUP BY {', '.join(keys)}" if keys else ""
        alone = run(f"SELECT {listed}{CALLS} FROM s [{window}]{by}", table)
        wanted = [
            {"a": None, "b": None} | row | {"g": number, "ga": int("a" not in keys)}
            for row in alone
        ]
        found = [row for row in got if row["g"] == number]
        assert len(found) > 2
        assert found == sorted(wanted, key=key_of)
        assert {type(row["ga"]) for row in found} == {int}
    assert {row["g"] for row in got} == {
        sum((k not in keys) << n for n, k in enumerate(("b", "a"))) for keys in GROUPS[group]
    }


@pytest.mark.parametrize("window", WINDOWS)
def test_the_same_rows_however_it_is_run(window: str) -> None:
    text = (
        f"SELECT a, b, GROUPING_ID() AS g, {CALLS} FROM s [{window}] WHERE x > 2 "
        f"GROUP BY CUBE (a, b) HAVING COUNT(*) > 1"
    )
    once = run(text, rows(2), batch_rows=1000)
    assert len(once) > 20
    for options in (
        {"batch_rows": 7, "instances": 3},
        {"batch_rows": 31, "instances": 1, "switches": {2: 3}},
        {"batch_rows": 20, "instances": 2, "partitioner": "cam"},
    ):
        if window.startswith("ROWS"):
            options.pop("partitioner", None)
        assert run(text, rows(2), **options) == once


def test_windows_of_tuples_fill_for_each_set_alone() -> None:
    table = rows(3)
    got = run(
        "SELECT a, GROUPING_ID() AS g, COUNT(*) AS n, ARRAY_AGG(x) AS l FROM s [ROWS 5 SLIDE 2] "
        "GROUP BY ROLLUP (a)",
        table,
        batch_rows=11,
        instances=2,
    )
    for keys, number in (("a, ", 0), ("", 1)):
        by = " GROUP BY a" if keys else ""
        text = f"SELECT {keys}COUNT(*) AS n, ARRAY_AGG(x) AS l FROM s [ROWS 5 SLIDE 2]{by}"
        wanted = [{"a": None} | row | {"g": number} for row in run(text, table)]
        assert [row for row in got if row["g"] == number] == wanted
        assert len(wanted) > 10


def test_order_and_limit_see_the_sets() -> None:
    got = run(
        "SELECT a, COUNT(*) AS n FROM s [RANGE 1 MINUTE] GROUP BY ROLLUP (a) "
        "ORDER BY GROUPING(a) DESC, n DESC LIMIT 2",
        rows(4),
    )
    assert (got[0]["a"], got[0]["n"]) == (None, 120)
    assert got[1]["n"] < 120


def test_over_the_rows_of_other_windows() -> None:
    got = run(
        "SELECT a, SUM(n) AS n, MAX(w.window_end) AS at FROM (SELECT a, COUNT(*) AS n FROM s "
        "[RANGE 10 SECONDS] GROUP BY a) AS w [RANGE 1 MINUTE] GROUP BY ROLLUP (a)",
        rows(5),
    )
    assert sorted(row["n"] for row in got)[-1] == 120
    assert sum(row["n"] for row in got) == 240


def test_python_groups_by_sets_too() -> None:
    session = tg.Session(master="none")
    stream = session.stream(rows(6), time="ts")
    window = stream.window("1 minute")
    rolled = window.group_by(tg.rollup("a", "b")).agg(n=tg.count(), s=tg.sum("a"))
    assert rolled.schema.names[2:] == ["a", "b", "grouping_id", "n", "s"]
    sets = window.group_by(tg.grouping_sets(["a", "b"], ["a"], [])).agg(n=tg.count(), s=tg.sum("a"))
    cubed = window.group_by("a", tg.cube("b")).agg(n=tg.count(), s=tg.sum("a"))
    found = []
    for query in (rolled, sets, cubed):
        sink = tg.sink.memory()
        query.start(sink=sink).wait()
        found.append(sink.table().to_pylist())
    assert found[0] == found[1]
    assert found[2] == [row for row in found[0] if row["grouping_id"] < 2]
    assert {row["grouping_id"] for row in found[0]} == {0, 1, 3}


@pytest.mark.parametrize(
    ("group", "message"),
    [
        ("a, ROLLUP (a)", r"GROUP BY: each grouping set may be there once; got \(a\) twice"),
        ("CUBE (a, b, x, a+1, a+2, a+3, a+4)", "at most 64 grouping sets; got 128"),
    ],
)
def test_what_is_refused(group: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        run(f"SELECT COUNT(*) AS n FROM s [RANGE 1 MINUTE] GROUP BY {group}", rows())


def test_grouping_needs_sets_and_keys() -> None:
    with pytest.raises(QueryError, match=r"needs GROUPING SETS, ROLLUP or CUBE in GROUP BY; got"):
        run("SELECT GROUPING(a) AS g FROM s [RANGE 1 MINUTE] GROUP BY a", rows())
    with pytest.raises(QueryError, match=r"GROUPING takes keys of GROUP BY; got x"):
        run("SELECT GROUPING(x) AS g FROM s [RANGE 1 MINUTE] GROUP BY ROLLUP (a)", rows())
    session = tg.Session(master="none")
    window = session.stream(rows(), time="ts").window("1 minute")
    with pytest.raises(QueryError, match=r"grouping_sets: takes lists of columns; got 'a'"):
        tg.grouping_sets("a")
    with pytest.raises(QueryError, match="process: groups by one set of columns; got 2 sets"):
        window.group_by(tg.rollup("a")).process(tg.Process)
