"""Names: aliases that hide columns, cases, quotes, named subqueries, as Spark resolves them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.duckdb import data
from tests.duckdb.compare import check

NAMES = ["ts", "K", "I", "b", "big", "f", "g", "d", "s", "t", "Day", "at col"]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT k, i FROM s WHERE k > 1",
        "SELECT K, SUM(i) AS Total FROM s [RANGE 1 MINUTE] GROUP BY k HAVING total > 0 "
        "ORDER BY TOTAL DESC",
        "SELECT `at col`, day AS x, MAX(`at col`) AS m FROM s [RANGE 1 MINUTE] "
        "GROUP BY `at col`, Day",
    ],
)
def test_cases_and_quotes(text: str) -> None:
    rows = data.rows(np.random.default_rng(61), 100).rename_columns(NAMES)
    check(text, {"s": rows}, batch_rows=60, instances=2)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT i % 3 AS i, COUNT(*) AS n FROM s [RANGE 1 MINUTE] GROUP BY i % 3 ORDER BY i DESC",
        "SELECT k AS i, SUM(i) AS x FROM s [RANGE 1 MINUTE] GROUP BY k HAVING SUM(i) > 0 "
        "ORDER BY i DESC",
        "SELECT SUM(i) AS i, COUNT(*) AS n FROM s [RANGE 1 MINUTE] GROUP BY k ORDER BY i",
        "SELECT upper(s) AS k, COUNT(*) AS n FROM s [RANGE 1 MINUTE] GROUP BY k, upper(s)",
        "SELECT r.k, COUNT(r.i) AS n FROM s [RANGE 1 MINUTE] AS r WHERE r.f > 0 GROUP BY r.k",
        "SELECT window_start, k, window_end, COUNT(*) AS n FROM s [RANGE 1 MINUTE] "
        "GROUP BY k, window_end",
        "SELECT hour(window_start) AS h, COUNT(*) AS n FROM s [RANGE 1 HOUR] "
        "HAVING window_end > TIMESTAMP '1970-01-01 00:00:00'",
        "SELECT k FROM s [RANGE 1 MINUTE] GROUP BY k HAVING MAX(f) > 0 "
        "ORDER BY STDDEV(i) IS NULL, k DESC",
        "SELECT COUNT(1) AS n, SUM(1) AS o, MIN('x') AS x, 1 AS one FROM s [RANGE 1 MINUTE]",
        "WITH c AS (SELECT k, i * 2 AS j FROM s WHERE t), d AS (SELECT k, j + 1 AS j FROM c) "
        "SELECT k, SUM(j) AS x FROM d [RANGE 1 MINUTE] GROUP BY k",
    ],
)
def test_aliases_keys_and_named_queries(text: str) -> None:
    rows = data.rows(np.random.default_rng(62), 120)
    assert check(text, {"s": rows}, batch_rows=70, instances=2).num_rows
