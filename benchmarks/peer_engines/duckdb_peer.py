"""DuckDB, which takes all input at once: what a batch engine needs for the same rows."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import duckdb

PANES = """
WITH pane AS (SELECT key, time_bucket(INTERVAL {slide} SECONDS, ts) AS b, {states}
              FROM '{data}/events/*.parquet' GROUP BY ALL),
     part AS (SELECT key, b + k * INTERVAL {slide} SECONDS AS w, * EXCLUDE (key, b)
              FROM pane, range(0, {panes}) t(k))
SELECT epoch_us(w + INTERVAL {slide} SECONDS) AS end_us, key, {result} FROM part GROUP BY ALL
"""
MEANS = {
    "states": "sum(value) AS s, count(*) AS c",
    "result": "sum(s) / sum(c) AS mean, sum(c)::BIGINT AS n",
}
MEDIANS = {"states": "list(value) AS v", "result": "median(x) AS m"}
SIDES = "FROM '{data}/keyed/left/*.parquet' AS l {how} '{data}/keyed/right/*.parquet' AS r"
QUERIES = {
    "tumbling": PANES.format(data="{data}", slide=60, panes=1, **MEANS),
    "sliding": PANES.format(data="{data}", slide=10, panes=6, **MEANS),
    "median": """
WITH e AS (SELECT key, value, time_bucket(INTERVAL 10 SECONDS, ts) AS b
           FROM '{data}/events/*.parquet')
SELECT epoch_us(b + (k + 1) * INTERVAL 10 SECONDS) AS end_us, key, median(value) AS m
FROM e, range(0, 6) t(k) GROUP BY ALL
""",
    "equality": f"SELECT l.key, l.value AS a, r.value AS b {SIDES.replace('{how}', 'JOIN')}"
    " ON l.key = r.key AND r.ts BETWEEN l.ts - INTERVAL 60 SECONDS"
    " AND l.ts + INTERVAL 60 SECONDS",
    "band": "SELECT r.x, r.y, s.a, s.b"
    " FROM '{data}/band/r.parquet' AS r JOIN '{data}/band/s.parquet' AS s"
    " ON r.x BETWEEN s.a - 10 AND s.a + 10 AND r.y BETWEEN s.b - 10 AND s.b + 10"
    " AND r.ts BETWEEN s.ts - INTERVAL 20 SECONDS AND s.ts + INTERVAL 20 SECONDS",
    "asof": f"SELECT l.key, l.value AS a, r.value AS b {SIDES.replace('{how}', 'ASOF JOIN')}"
    " ON l.key = r.key AND l.ts >= r.ts",
}


def run(job: dict[str, Any]) -> dict[str, Any]:
    connection = duckdb.connect()
    connection.execute(f"SET threads = {job['cores']}")
    connection.execute("SET TimeZone = 'UTC'")
    began = time.perf_counter()
    query = QUERIES[job["case"]].format(data=job["data"])
    connection.execute(f"COPY ({query}) TO '{job['work']}/rows.parquet' (FORMAT parquet)")
    return {
        "seconds": time.perf_counter() - began,
        "version": duckdb.__version__,
        "settings": "all input at once, threads = cores",
    }


if __name__ == "__main__":
    print("RESULT", json.dumps(run(json.loads(sys.argv[1]))), flush=True)
