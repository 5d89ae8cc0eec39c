"""Joins that shed: which may, what columns they have, and how far their estimates are off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tidegate as tg
from tidegate.errors import OptionError, QueryError
from tidegate.query.stream import Stream

SESSION = tg.Session(master="none")
MICROSECONDS = pa.timestamp("us", tz="UTC")
PAIRS = "SELECT a.k, a.x, b.x AS y FROM a [RANGE 20 SECONDS] JOIN b [RANGE 30 SECONDS] ON a.k = b.k"
OVER = (
    f"SELECT k, COUNT(*) AS n, SUM(y) AS y, AVG(x) AS x FROM ({PAIRS}) [RANGE 2 MINUTES] GROUP BY k"
)


def tuples(seed: int, rows: int, keys: str) -> pa.Table:
    draw = np.random.default_rng(seed)
    found = draw.integers(0, 6, rows) if keys == "even" else np.minimum(draw.zipf(1.6, rows), 40)
    return pa.table(
        {
            "t": pa.array(np.sort(draw.integers(0, 480_000_000, rows)), MICROSECONDS),
            "k": pa.array(found.astype(np.int64)),
            "x": pa.array(draw.normal(10, 3, rows)),
        }
    )


def streams(rows: int = 60, keys: str = "even") -> dict[str, Stream]:
    return {
        name: SESSION.stream(tuples(seed, rows, keys), time="t", name=name)
        for seed, name in enumerate("ab")
    }


def rows_of(sql: str, of: dict[str, Stream]) -> list[dict[str, Any]]:
    return SESSION.sql(sql, **of).preview(100_000, read=10**9).to_pylist()  # type: ignore[no-any-return]


def test_python_says_the_same_as_sql() -> None:
    of = streams()
    pairs = of["a"].join(of["b"], within=("20 seconds", "30 seconds"), on=tg.left.k == tg.right.k)
    chosen = pairs.select(k=tg.left.k, x=tg.left.x, y=tg.right.x)
    for by in ("uniform", "concept"):
        clause = f"WITH SHED 50 PERCENT BY {by.upper()}"
        made = chosen.shed(0.5, by=by).preview(10_000).to_pylist()
        assert made == rows_of(f"{PAIRS} {clause}", of)
        counted = chosen.window("2 minutes").group_by("k").agg(
            n=tg.count(), y=tg.sum("y"), x=tg.mean("x")
        )  # fmt: skip
        shed = counted.shed(0.5, by=by)
        assert shed.preview(10_000).to_pylist() == rows_of(f"{OVER} {clause}", of)
        assert list(made[0]) == ["ts", "k", "x", "y", "kept"]
        assert "kept" in pairs.select(tg.left.k).shed(0.5).preview(1).to_pylist()[0]


def test_nearly_every_key_stays_and_estimates_are_near() -> None:
    of = streams(6_000, "skewed")
    exact = {(r["window_end"], r["k"]): r for r in rows_of(OVER, of)}
    total = sum(r["n"] for r in exact.values())
    for by, most_missing, off in (
        ("CONCEPT", len(exact) // 80, 0.1),
        ("UNIFORM", len(exact), 0.25),
    ):
        found = rows_of(f"{OVER} WITH SHED 80 PERCENT BY {by}", of)
        missing = len(exact) - len(found)
        assert missing <= most_missing
        assert by == "CONCEPT" or missing > len(exact) / 10
        estimated = sum(r["n"] for r in found)
        assert abs(estimated - total) < off * total
        largest = max(found, key=lambda r: r["n"])
        true = exact[largest["window_end"], largest["k"]]
        assert abs(largest["x"] - true["x"]) < 1
        assert largest["kept"] < 0.12
        assert type(largest["n"]) is int


def routes(seed: int, first: int, rows: int = 8_000) -> pa.Table:
    """Rides over half an hour on 800 routes, numbered from `first` on."""
    draw = np.random.default_rng(seed)
    return pa.table(
        {
            "t": pa.array(np.sort(draw.integers(0, 1_800_000_000, rows)), MICROSECONDS),
            "k": pa.array(first + draw.integers(0, 800, rows)),
            "x": pa.array(draw.normal(10, 3, rows)),
        }
    )


def shed_of(sql: str, of: dict[str, Stream], folder: Path) -> tuple[float, list[dict[str, Any]]]:
    """Which share of the tuples a run has shed, and its rows."""
    sink = tg.sink.memory()
    summary = SESSION.sql(sql, **of).start(sink=sink, checkpoint=folder / "c").wait().as_dict()
    return summary["rows_shed"] / summary["rows_in"], sink.table().to_pylist()


ROUTES = OVER.replace("20 SECONDS", "5 MINUTES").replace("30 SECONDS", "5 MINUTES")


@pytest.mark.parametrize(("first", "least"), [(10_000, 0.8), (400, 0.4), (0, 0.0)])
def test_keys_without_partners_are_shed_first(first: int, least: float, tmp_path: Path) -> None:
    """All routes are of one stream alone, half of them, or none; 8 percent were shed before."""
    of = {"a": routes(0, 0), "b": routes(1, first)}
    given = {n: SESSION.stream(table, time="t", name=n) for n, table in of.items()}
    exact = rows_of(ROUTES, given)
    shed, found = shed_of(f"{ROUTES} WITH SHED 98 PERCENT BY CONCEPT", given, tmp_path)
    assert least < shed < least + 0.17
    assert len(found) >= 0.97 * len(exact)
    total = sum(r["n"] for r in exact)
    assert abs(sum(r["n"] for r in found) - total) <= 0.05 * total


def test_a_side_of_which_nothing_is_kept_has_no_pairs(tmp_path: Path) -> None:
    keyless = routes(1, 0, 30).set_column(1, "k", pa.nulls(30, pa.int64()))
    given = {
        name: SESSION.stream(table, time="t", name=name)
        for name, table in (("a", routes(0, 0, 300)), ("b", keyless))
    }
    shed, found = shed_of(f"{PAIRS} WITH SHED 99 PERCENT BY CONCEPT", given, tmp_path)
    assert shed > 29 / 330
    assert found == []


def test_pairs_of_keys_that_find_partners_late_are_estimated_without_bias() -> None:
    """One side has a key alone for ten minutes, so that little of it is kept, then both do."""
    draw, found = np.random.default_rng(3), {}
    for name, since in (("a", 0), ("b", 600_000_000)):
        times = np.sort(draw.integers(since, 1_800_000_000, 40_000))
        table = {"t": pa.array(times, MICROSECONDS), "k": draw.integers(0, 300, 40_000)}
        found[name] = SESSION.stream(pa.table(table), time="t", name=name)
    pairs = "SELECT a.k FROM a [RANGE 1 MINUTE] JOIN b [RANGE 1 MINUTE] ON a.k = b.k"
    sql = f"SELECT COUNT(*) AS n FROM ({pairs}) [RANGE 1 MINUTE]"
    exact, shed = rows_of(sql, found), rows_of(f"{sql} WITH SHED 70 PERCENT", found)
    first, *later = range(10, 28)
    for minutes, off in (([first], 0.1), (later, 0.02)):
        true, estimated = (sum(rows[m - 10]["n"] for m in minutes) for rows in (exact, shed))
        assert abs(estimated - true) <= off * true
    assert 0.1 < shed[-1]["kept"] < 0.9


def test_a_band_join_sheds_the_pairs_that_its_aggregate_reads() -> None:
    sql = OVER.replace("a.k = b.k", "abs(a.x - b.x) <= 5").replace("AVG(x)", "MAX(x)")
    made = SESSION.sql(f"{sql} WITH SHED 50 PERCENT", **streams())
    assert "keeping at least 2 of each group, before aggregates are evaluated" in made.explain()


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (PAIRS.replace("a.k = b.k", "a.k < b.k"), "needs an equality of both sides"),
        (PAIRS.replace("a.k = b.k", "a.k = 3"), "needs an equality of both sides"),
        (PAIRS.replace("[RANGE 20 SECONDS]", "[ROWS 5]"), "sides with a window of time"),
        (PAIRS.replace("AS y", "AS kept"), "adds a column kept"),
        ("SELECT k FROM a", "aggregates over windows of time and for joins by equality"),
        (OVER.replace("COUNT(*)", "COUNT(DISTINCT x)"), "able to estimate"),
        (OVER.replace("2 MINUTES]", "2 MINUTES]").replace("RANGE 2 MINUTES", "ROWS 5"), "windows"),
    ],
)
def test_what_cannot_be_shed_is_refused(sql: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        SESSION.sql(f"{sql} WITH SHED 50 PERCENT", **streams())


def test_a_join_sheds_once_and_by_key() -> None:
    of = streams()
    inner = OVER.replace(PAIRS, f"{PAIRS} WITH SHED 50 PERCENT")
    assert SESSION.sql(inner, **of).preview(1).to_pylist()
    made = SESSION.sql(f"{OVER} WITH SHED 50 PERCENT", **of)
    with pytest.raises(QueryError, match="sheds once"):
        made.shed(0.3)
    with pytest.raises(QueryError, match="has one error bound"):
        made.within(error=0.1).within(error=0.2)
    with pytest.raises(OptionError, match="must be key"):
        made.explain(routing="round-robin")


BOUND = "WITH SHED 60 PERCENT WITH ERROR 30 PERCENT CONFIDENCE 90 PERCENT"


def test_intervals_hold_what_is_exact() -> None:
    """Keys of 75 tuples in a pane, of which 30 are kept for certain; rare ones are exact."""
    of = dense(900)
    for group in ("", "GROUP BY k"):
        key = "k, " if group else ""
        sql = f"SELECT {key}COUNT(*) AS n, SUM(y) AS s, AVG(x) AS m FROM ({DENSE}) "
        sql += f"[RANGE 200 MILLISECONDS] {group}"
        exact = {(r["window_end"], r.get("k")): r for r in rows_of(sql, of)}
        found = rows_of(f"{sql} {BOUND}", of)
        names = ["n", "n_low", "n_high", "s", "s_low", "s_high", "m", "m_low", "m_high"]
        assert list(found[0])[-11:] == [*names, "kept", "exact"]
        assert len(found) == len(exact)
        estimated = [r for r in found if not r["exact"]]
        assert len(estimated) >= 5
        assert bool(group) == (len(estimated) < len(found))
        for row in found:
            true = exact[row["window_end"], row.get("k")]
            if row["exact"]:
                assert all(row[n] == true[n] == row[f"{n}_low"] == row[f"{n}_high"] for n in "nsm")
                assert row["kept"] == 1
            for name in "nsm":
                assert row[f"{name}_low"] <= true[name] <= row[f"{name}_high"]
                assert abs(row[name] - true[name]) <= 0.3 * abs(true[name])
        assert any(abs(r["n"] - exact[r["window_end"], r.get("k")]["n"]) > 0 for r in estimated)
        assert min(r["kept"] for r in estimated) < 0.5


DENSE = (
    "SELECT a.k, a.x, b.x AS y FROM a [RANGE 400 MILLISECONDS] "
    "JOIN b [RANGE 400 MILLISECONDS] ON a.k = b.k"
)


def dense(rows: int) -> dict[str, Stream]:
    """One key has most tuples, others a few."""
    found = {}
    for seed, name in enumerate("ab"):
        draw = np.random.default_rng(seed)
        times = np.sort(draw.integers(0, rows * 1_333, rows))
        key = np.where(np.arange(rows) % 50 == 7, draw.integers(1, 4, rows), 0)
        table = {"t": pa.array(times, MICROSECONDS), "k": key, "x": draw.normal(10, 3, rows)}
        found[name] = SESSION.stream(pa.table(table), time="t", name=name)
    return found


@pytest.mark.parametrize(
    ("clauses", "message"),
    [
        (BOUND.replace("60 PERCENT", "60 PERCENT BY UNIFORM"), "BY CONCEPT"),
        (f"{BOUND} BUDGET 100 ROWS", "ERROR and CONFIDENCE alone"),
        (f"{BOUND} BY MEAN", "ERROR and CONFIDENCE alone"),
        ("WITH ERROR 10 PERCENT WITH SHED 60 PERCENT", "comes before WITH ERROR"),
    ],
)
def test_bounds_that_no_thinned_join_can_have_are_refused(clauses: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        SESSION.sql(f"{OVER} {clauses}", **streams())


def test_only_counts_sums_and_means_over_a_thinned_join_have_a_bound() -> None:
    with pytest.raises(QueryError, match="sheds or has an error bound"):
        SESSION.sql(f"{OVER.replace('AVG(x)', 'MEDIAN(x)')} {BOUND}", **streams())


@pytest.mark.parametrize(
    "sql",
    [
        OVER.replace("SELECT k,", "SELECT x > 3 AS k,").replace("GROUP BY k", "GROUP BY x > 3"),
        OVER.replace("ON a.k = b.k", "ON a.k = b.k AND a.x < b.x"),
        OVER.replace("GROUP BY k", "WHERE x < y GROUP BY k"),
    ],
)
def test_bounds_are_for_groups_that_are_keys(sql: str) -> None:
    of = streams()
    assert SESSION.sql(f"{sql} WITH SHED 60 PERCENT", **of).columns[-1] == "kept"
    with pytest.raises(QueryError, match="groups by the values that the join compares"):
        SESSION.sql(f"{sql} {BOUND}", **of)


def test_bounds_allow_conditions_of_one_side() -> None:
    sql = OVER.replace("GROUP BY k", "WHERE x > 3 GROUP BY k").replace("a.k, ", "b.k, ")
    assert SESSION.sql(f"{sql} {BOUND}", **streams()).columns[-1] == "exact"
