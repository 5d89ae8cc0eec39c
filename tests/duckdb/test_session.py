"""Sessions against DuckDB, which tells them by LAG and running sums, or tuple after tuple."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tests.duckdb import data
from tests.duckdb.batch import load
from tests.duckdb.compare import Streamed, by_tidegate, database, differences

GAP_US = 4_000_000
RESULTS = "k, COUNT(*) AS n, SUM(i) AS s, MEDIAN(f) AS m, COUNT(DISTINCT s) AS u"
ENDS = f"min(ts) AS window_start, max(ts) + to_microseconds({GAP_US}) AS window_end"
LAST = (
    f"SELECT {ENDS}, {RESULTS} FROM numbered GROUP BY k, session ORDER BY window_end, k NULLS FIRST"
)

BY_GAP = f"""
WITH marked AS (
    SELECT *, coalesce("~ts" - lag("~ts") OVER (PARTITION BY k ORDER BY "~ts") > {GAP_US}, true)
        ::INT AS begins FROM s
), numbered AS (
    SELECT *, sum(begins) OVER (PARTITION BY k ORDER BY "~ts") AS session FROM marked
)
{LAST}
"""

WITH_MAX = f"""
WITH RECURSIVE placed AS (
    SELECT *, row_number() OVER (PARTITION BY k ORDER BY "~ts") AS place FROM s
), walked AS (
    SELECT place, k, "~ts" AS start, "~ts" AS at FROM placed WHERE place = 1
    UNION ALL
    SELECT p.place, p.k,
        CASE WHEN p."~ts" - w.at > {GAP_US} OR p."~ts" - w.start > 9000000
            THEN p."~ts" ELSE w.start END, p."~ts"
    FROM walked w JOIN placed p ON p.place = w.place + 1 AND p.k IS NOT DISTINCT FROM w.k
), numbered AS (
    SELECT p.*, w.start AS session FROM placed p
    JOIN walked w ON p.place = w.place AND p.k IS NOT DISTINCT FROM w.k
)
{LAST}
"""


@pytest.mark.parametrize(
    ("window", "wanted"),
    [("SESSION GAP 4 SECONDS", BY_GAP), ("SESSION GAP 4 SECONDS MAX 9 SECONDS", WITH_MAX)],
)
@pytest.mark.parametrize("disorder_us", [0, 3_000_000])
def test_sessions(window: str, wanted: str, disorder_us: int) -> None:
    draw = np.random.default_rng(disorder_us + 5)
    sources = []
    for _ in range(2):
        rows = data.rows(draw, 300, span_s=400)
        times = rows.column("ts").cast(pa.int64()).to_numpy() + draw.integers(
            -disorder_us, disorder_us + 1, 300
        )
        sources.append(rows.set_column(0, "ts", pa.array(times, rows.schema.field("ts").type)))
    streams = {"s": Streamed(sources, disorder_us=disorder_us)}
    load(database(), "s", sources, "ts", disorder_us)
    theirs = database().sql(wanted).to_arrow_table()
    text = f"SELECT {RESULTS} FROM s [{window}] GROUP BY k"
    options = {"batch_rows": 70, "instances": 2, "switches": {2: 3, 4: 1}}
    mine = by_tidegate(text, streams, **options)
    assert mine.rows.num_rows > 100
    assert not differences(mine.rows, theirs)
