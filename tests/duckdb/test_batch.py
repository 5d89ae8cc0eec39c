"""The rewriter by itself: answers that were worked out by hand, so that it can be trusted."""

from __future__ import annotations

import pyarrow as pa

from tests.duckdb.batch import load, rewrite
from tests.duckdb.compare import Streamed, by_duckdb, database, differences


def stream(*rows: tuple[int | None, int | None, float | None]) -> pa.Table:
    times, keys, values = zip(*rows, strict=True)
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us")),
            "k": pa.array(keys, pa.int64()),
            "x": pa.array(values, pa.float64()),
        }
    )


def answer(text: str, **streams: pa.Table) -> list[tuple[object, ...]]:
    table = by_duckdb(text, {n: Streamed([t]) for n, t in streams.items()})
    times = [n for n in table.column_names if n in ("window_start", "window_end", "ts")]
    for name in times:
        place = table.column_names.index(name)
        table = table.set_column(place, name, table.column(name).cast(pa.int64()))
    return list(zip(*table.to_pydict().values()))


def test_windows_begin_at_multiples_of_the_slide() -> None:
    rows = stream((-1, 1, 1.0), (0, 1, 2.0), (5, 1, 4.0))
    text = "SELECT SUM(x) AS x FROM s [RANGE 5 MICROSECONDS SLIDE 3 MICROSECONDS]"
    assert answer(text, s=rows) == [(-3, 2, 3.0), (0, 5, 2.0), (3, 8, 4.0)]


def test_null_is_a_group_and_comes_first() -> None:
    rows = stream((1, 2, 1.0), (2, None, 2.0), (3, 1, None), (4, None, 3.0))
    text = "SELECT k, COUNT(*) AS n, COUNT(x) AS m FROM s [RANGE 1 SECOND] GROUP BY k"
    assert answer(text, s=rows) == [
        (0, 10**6, None, 2, 2),
        (0, 10**6, 1, 1, 0),
        (0, 10**6, 2, 1, 1),
    ]


def test_limit_counts_per_window_and_ties_go_by_key() -> None:
    rows = stream((1, 3, 5.0), (2, 2, 5.0), (3, 1, 1.0), (11, 7, 1.0), (12, 6, 2.0))
    text = (
        "SELECT k, SUM(x) AS x FROM s [RANGE 10 MICROSECONDS] GROUP BY k HAVING x > 1 "
        "ORDER BY x DESC LIMIT 1"
    )
    assert answer(text, s=rows) == [(0, 10, 2, 5.0), (10, 20, 6, 2.0)]


def test_first_and_last_follow_the_total_order() -> None:
    one, two = stream((1, 1, 1.0), (5, 1, 2.0)), stream((1, 1, 3.0), (5, 1, 4.0))
    text = (
        "SELECT FIRST(x) AS f, LAST(x) AS l FROM (SELECT x FROM a UNION ALL SELECT x FROM b) "
        "[RANGE 10 MICROSECONDS]"
    )
    assert answer(text, a=one, b=two) == [(0, 10, 1.0, 4.0)]
    assert answer(text, a=two, b=one) == [(0, 10, 3.0, 2.0)]


def test_a_stateless_query_is_in_the_total_order() -> None:
    one, two = stream((1, 1, 1.0), (5, 1, 2.0)), stream((1, 1, 3.0), (4, 1, 4.0))
    text = "SELECT x * 2 AS y FROM a WHERE x < 3 UNION ALL SELECT x FROM b"
    assert answer(text, a=one, b=two) == [(1, 2.0), (1, 3.0), (4, 4.0), (5, 4.0)]


def test_late_and_timeless_tuples_are_set_apart() -> None:
    rows = stream((10, 1, 1.0), (4, 2, 1.0), (None, 3, 1.0), (7, 4, 1.0), (12, 5, 1.0))
    load(database(), "s", [rows], "ts", disorder_us=3)
    kept = {
        view: [row[0] for row in database().sql(f'SELECT k FROM "{view}" ORDER BY 1').fetchall()]
        for view in ("s", "s~late", "s~rejected")
    }
    assert kept == {"s": [1, 4, 5], "s~late": [2], "s~rejected": [3]}


def test_nothing_in_gives_nothing_out() -> None:
    text = "SELECT k, COUNT(*) AS n FROM s [RANGE 10 MICROSECONDS] GROUP BY k"
    assert answer(text, s=stream((1, 1, 1.0)).slice(0, 0)) == []


def test_the_comparison_sees_values_order_types_and_length() -> None:
    left = pa.table({"a": pa.array([1, 2], pa.int64()), "x": [1.0, None]})
    assert not differences(left, left)
    assert not differences(left, left.set_column(1, "x", pa.array([1.0 + 1e-12, None])))
    assert differences(left, left.set_column(1, "x", pa.array([1.0 + 1e-8, None])))
    assert differences(left, left.set_column(1, "x", pa.array([1.0, 0.0])))
    assert differences(left, left.set_column(0, "a", pa.array([1.0, 2.0])))
    assert differences(left, left.take(pa.array([1, 0])))
    assert differences(left, left.slice(0, 1))
    assert differences(left, left.rename_columns(["b", "x"]))
    nan = pa.table({"x": pa.array([float("nan")], from_pandas=False)})
    assert not differences(nan, nan)
    assert differences(nan, pa.table({"x": pa.array([None], pa.float64())}))


def test_the_text_for_duckdb_names_what_it_means() -> None:
    text = rewrite("SELECT MEDIAN(x) AS m, VAR(x) AS v FROM s [RANGE 1 SECOND]")
    assert "QUANTILE_CONT(CAST(x AS DOUBLE), 0.5)" in text
    assert "VAR_SAMP(x)" in text
