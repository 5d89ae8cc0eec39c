"""Local days, weeks and months over months of tuples, against DuckDB; and clauses over them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tests.duckdb import data
from tests.duckdb.batch import load
from tests.duckdb.compare import Streamed, by_tidegate, database, differences

RESULTS = "k, COUNT(*) AS n, SUM(i) AS s, MEDIAN(f) AS m"
DAY_US = 86_400_000_000
FEBRUARY_US = 1_706_745_600_000_000
OPTIONS = {"batch_rows": 70, "instances": 2, "switches": {2: 3, 4: 1}}


def months(disorder_us: int = 0, rows: int = 400) -> Streamed:
    """Tuples from February to November 2024."""
    draw = np.random.default_rng(7)
    table = data.rows(draw, rows)
    times = np.sort(FEBRUARY_US + draw.integers(0, 290 * DAY_US, rows))
    times += draw.integers(0, disorder_us + 1, rows)
    kind = table.schema.field("ts").type
    return Streamed([table.set_column(0, "ts", pa.array(times, kind))], disorder_us=disorder_us)


@pytest.mark.parametrize("unit", ["day", "week", "month"])
@pytest.mark.parametrize("zone", ["America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "UTC"])
def test_periods_of_a_zone(unit: str, zone: str) -> None:
    stream = months(disorder_us=DAY_US)
    load(database(), "s", stream.sources, "ts", DAY_US)
    begins = f"date_trunc('{unit}', timezone('{zone}', timezone('UTC', ts)))"
    local = ("period", f"period + INTERVAL 1 {unit}")
    ends = [f"timezone('UTC', timezone('{zone}', {end}))" for end in local]
    wanted = database().sql(f"""
        SELECT {ends[0]} AS window_start, {ends[1]} AS window_end, {RESULTS}
        FROM (SELECT *, {begins} AS period FROM s)
        GROUP BY period, k ORDER BY window_end, k NULLS FIRST
    """)
    text = f"SELECT {RESULTS} FROM s [RANGE 1 {unit.upper()} TIME ZONE '{zone}'] GROUP BY k"
    mine = by_tidegate(text, {"s": stream}, **OPTIONS).rows
    assert mine.num_rows > 40
    assert not differences(mine, wanted.to_arrow_table())


@pytest.mark.parametrize(
    "clause",
    [
        "",
        "ORDER BY n DESC LIMIT 2",
        "WITH PARTITIONER cam",
        "WITH PARTITIONER auto",
        "WITH ERROR 10 PERCENT CONFIDENCE 95 PERCENT",
        "WITH BALANCE ERROR 10 PERCENT CONFIDENCE 95 PERCENT TRIM ALL",
    ],
)
@pytest.mark.parametrize("window", ["RANGE 1 DAY", "RANGE 5 DAYS SLIDE 2 DAYS"])
def test_days_of_utc_are_days(clause: str, window: str) -> None:
    """Whatever else is asked: panes that are looked up do what computed ones do."""
    text = f"SELECT k, COUNT(*) AS n, MEDIAN(f) AS m FROM s [{{}}] GROUP BY k {clause}"
    plain, zoned = (
        by_tidegate(text.format(window + more), {"s": months(rows=900)}, **OPTIONS).rows
        for more in ("", " TIME ZONE 'UTC'")
    )
    assert plain.num_rows > 100
    assert zoned.equals(plain)


@pytest.mark.parametrize("clause", ["", "WITH SHED 50 PERCENT BY CONCEPT"])
def test_an_offset_is_the_same_as_times_that_are_earlier(clause: str) -> None:
    stream = months(rows=600)
    (table,) = stream.sources
    offset_us = DAY_US // 24 * 5
    times = table.column("ts").cast(pa.int64()).to_numpy() - offset_us
    kind = table.schema.field("ts").type
    earlier = Streamed([table.set_column(0, "ts", pa.array(times, kind))])
    results = "SELECT k, COUNT(*) AS n, SUM(i) AS s"
    text = f"{results} FROM s [RANGE 3 DAYS SLIDE 1 DAY{{}}] GROUP BY k {clause}"
    shifted = by_tidegate(text.format(" OFFSET 5 HOURS"), {"s": stream}, **OPTIONS).rows
    plain = by_tidegate(text.format(""), {"s": earlier}, **OPTIONS).rows
    assert plain.num_rows > 100
    for name in ("window_start", "window_end"):
        moved = plain.column(name).cast(pa.int64()).to_numpy() + offset_us
        assert (shifted.column(name).cast(pa.int64()).to_numpy() == moved).all()
    rest = plain.column_names[2:]
    assert shifted.select(rest).equals(plain.select(rest))
