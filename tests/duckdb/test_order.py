"""HAVING, and ORDER BY and LIMIT inside every window, against DuckDB."""

from __future__ import annotations

import numpy as np
import pytest

from tests.duckdb import data
from tests.duckdb.compare import check

BASE = "SELECT k, s, COUNT(*) AS n, SUM(i) AS total FROM s [RANGE 5 MINUTES SLIDE 2 MINUTES]"


@pytest.mark.parametrize("having", data.HAVINGS)
def test_having(having: str) -> None:
    rows = data.rows(np.random.default_rng(31), 150)
    text = f"{BASE} GROUP BY k, s HAVING {having}"
    check(text, {"s": rows}, batch_rows=80, instances=2)


@pytest.mark.parametrize(
    "order",
    [
        "n DESC",
        "n",
        "total",
        "total DESC",
        "total DESC NULLS FIRST",
        "total ASC NULLS LAST, n DESC",
        "s DESC",
        "k DESC NULLS FIRST, s",
        "AVG(f) DESC",
        "MAX(f) - MIN(f) DESC NULLS LAST",
        "3 DESC, 1 DESC",
        "COUNT(DISTINCT t), -n",
        "window_end, n",
    ],
)
def test_order_and_limit_in_every_window(order: str) -> None:
    rows = data.rows(np.random.default_rng(32), 150)
    text = f"{BASE} GROUP BY k, s ORDER BY {order}"
    check(text, {"s": rows}, instances=3)
    check(f"{text} LIMIT 3", {"s": rows}, batch_rows=80, instances=3)


@pytest.mark.parametrize("limit", [0, 1, 1000])
def test_limit_without_order_goes_by_key(limit: int) -> None:
    rows = data.rows(np.random.default_rng(33), 100)
    got = check(f"{BASE} GROUP BY k, s LIMIT {limit}", {"s": rows}, batch_rows=60, instances=2)
    assert bool(got.num_rows) == bool(limit)


def test_having_comes_before_limit_and_where_before_both() -> None:
    rows = data.rows(np.random.default_rng(34), 200)
    text = f"{BASE} WHERE i > -10 GROUP BY k, s HAVING n > 1 ORDER BY total DESC LIMIT 2"
    check(text, {"s": rows}, batch_rows=90, instances=2)


def test_many_ties_are_broken_by_key() -> None:
    rows = data.rows(np.random.default_rng(35), 200)
    text = (
        "SELECT at, s, COUNT(*) AS n FROM s [RANGE 5 MINUTES] GROUP BY s, at "
        "ORDER BY n DESC LIMIT 7"
    )
    check(text, {"s": rows}, batch_rows=90, instances=3)


def test_order_by_a_value_with_nan() -> None:
    rows = data.rows(np.random.default_rng(36), 100)
    text = (
        "SELECT k, MAX(CASE WHEN i > 0 THEN CAST('NaN' AS DOUBLE) ELSE f END) AS m FROM s "
        "[RANGE 1 MINUTE] GROUP BY k ORDER BY m DESC"
    )
    check(text, {"s": rows}, batch_rows=60, instances=2)
