"""Queries without a window and UNION ALL below one, in the total order, against DuckDB."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tests.duckdb import data
from tests.duckdb.compare import Streamed, check


@pytest.mark.parametrize("predicate", data.PREDICATES)
def test_where(predicate: str) -> None:
    rows = data.rows(np.random.default_rng(41), 80)
    check(f"SELECT k, i, f, s FROM s WHERE {predicate}", {"s": rows}, batch_rows=50, instances=2)


def test_expressions_in_the_select_list() -> None:
    rows = data.rows(np.random.default_rng(42), 80)
    items = [f"{e} AS e{n}" for n, e in enumerate((*data.ARGUMENTS, *data.KEYS, *data.PREDICATES))]
    check(f"SELECT {', '.join(items)} FROM s", {"s": rows}, batch_rows=50, instances=2)


def test_a_star_and_the_time() -> None:
    rows = data.rows(np.random.default_rng(43), 40)
    check("SELECT * FROM s", {"s": rows}, batch_rows=20)
    check("SELECT ts, k, ts AS again FROM s", {"s": rows}, batch_rows=20)
    check("SELECT r.k, r.i + 1 AS j FROM s AS r WHERE r.f > 0", {"s": rows})


def test_a_subquery() -> None:
    rows = data.rows(np.random.default_rng(44), 60)
    inner = "SELECT k, i * 2 AS j, f FROM s WHERE i > -10"
    check(f"SELECT j + 1 AS m, k FROM ({inner}) WHERE j < 20", {"s": rows}, batch_rows=30)
    text = f"SELECT k, SUM(j) AS x FROM ({inner}) [RANGE 5 MINUTES] WHERE f < 500 GROUP BY k"
    check(text, {"s": rows}, batch_rows=30)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_union_of_streams_in_the_total_order(seed: int) -> None:
    """Equal times in and across streams and sources: the stream, the source, then the sequence."""
    draw = np.random.default_rng(seed)
    sides = {}
    for name in ("a", "b"):
        sources = [data.rows(draw, 40, span_s=3) for _ in range(2)]
        coarse = [
            t.set_column(
                0,
                "ts",
                pa.array(t["ts"].cast(pa.int64()).to_numpy() // 10**6 * 10**6).cast(
                    data.SCHEMA.field("ts").type
                ),
            )
            for t in sources
        ]
        sides[name] = Streamed(coarse)
    union = "SELECT k, i, s FROM a WHERE i > -15 UNION ALL SELECT b, k, upper(s) FROM b"
    check(union, sides, batch_rows=45, instances=2)
    text = (
        f"SELECT k, COUNT(*) AS n, FIRST(s) AS f, LAST(s) AS l, SUM(i) AS t FROM ({union}) "
        "[RANGE 3 SECONDS SLIDE 2 SECONDS] GROUP BY k"
    )
    check(text, sides, batch_rows=45, instances=2)


def test_union_of_a_stream_with_itself_counts_twice() -> None:
    rows = data.rows(np.random.default_rng(45), 60)
    union = "SELECT k FROM s UNION ALL SELECT k FROM s UNION ALL SELECT k + 1 FROM s"
    text = f"SELECT k, COUNT(*) AS n FROM ({union}) [RANGE 5 MINUTES] GROUP BY k"
    check(text, {"s": rows}, batch_rows=70, instances=2)


def test_union_finds_the_wider_type() -> None:
    rows = data.rows(np.random.default_rng(46), 60)
    union = "SELECT b AS x FROM s UNION ALL SELECT f FROM s UNION ALL SELECT big FROM s"
    check(union, {"s": rows}, batch_rows=70)
    check(f"SELECT MAX(x) AS m, SUM(x) AS t FROM ({union}) [RANGE 5 MINUTES]", {"s": rows})


def test_nothing_is_left() -> None:
    rows = data.rows(np.random.default_rng(47), 30)
    assert check("SELECT k FROM s WHERE i > 1000", {"s": rows}).num_rows == 0
    assert check("SELECT k FROM s", {"s": rows.slice(0, 0)}).num_rows == 0
