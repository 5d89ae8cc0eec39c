"""Rows of open windows against DuckDB, which aggregates the tuples before each mark."""

from __future__ import annotations

import numpy as np
import pytest

from tests.duckdb import data
from tests.duckdb.batch import load
from tests.duckdb.compare import Streamed, by_tidegate, database, differences

RESULTS = "k, COUNT(*) AS n, SUM(i) AS s, MEDIAN(f) AS m, COUNT(DISTINCT s) AS u"


@pytest.mark.parametrize(
    ("range_s", "slide_s", "offset_s", "every_s"),
    [(60, 60, 0, 20), (60, 20, 0, 15), (40, 15, 7, 10), (90, 30, 0, 7)],
)
def test_early_rows(range_s: int, slide_s: int, offset_s: int, every_s: int) -> None:
    draw = np.random.default_rng(range_s + every_s)
    sources = [data.rows(draw, 300, span_s=600) for _ in range(2)]
    load(database(), "s", sources, "ts", 0)
    wanted = database().sql(f"""
        WITH seconds AS (SELECT unnest(generate_series(
            epoch((SELECT min(ts) FROM s))::BIGINT - {range_s},
            epoch((SELECT max(ts) FROM s))::BIGINT + {range_s + every_s})) AS second),
        windows AS (SELECT second AS begins, second + {range_s} AS ends FROM seconds
            WHERE (second - {offset_s}) % {slide_s} = 0),
        given AS (SELECT *, second AS mark, second = ends AS final FROM windows JOIN seconds
            ON second > begins AND second <= ends WHERE second = ends OR second % {every_s} = 0)
        SELECT make_timestamp(begins * 1000000) AS window_start,
            make_timestamp(ends * 1000000) AS window_end, {RESULTS}, final
        FROM given JOIN s ON s.ts >= make_timestamp(begins * 1000000)
            AND s.ts < make_timestamp(mark * 1000000)
        GROUP BY mark, begins, ends, final, k
        HAVING final OR max(s.ts) >= make_timestamp((mark - {every_s}) * 1000000)
        ORDER BY mark, final, ends, k NULLS FIRST
    """)
    window = f"RANGE {range_s} SECONDS SLIDE {slide_s} SECONDS OFFSET {offset_s} SECONDS"
    text = f"SELECT {RESULTS} FROM s [{window}] GROUP BY k EMIT EVERY {every_s} SECONDS"
    options = {"batch_rows": 70, "instances": 2, "switches": {2: 3, 4: 1}}
    mine = by_tidegate(text, {"s": Streamed(sources)}, **options).rows
    assert mine.num_rows > 100
    assert set(mine.column("final").to_pylist()) == {False, True}
    assert not differences(mine, wanted.to_arrow_table())
