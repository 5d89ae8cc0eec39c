"""Files that DuckDB wrote, read by both engines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tidegate as tg
from tests.duckdb import data
from tests.duckdb.batch import load, rewrite
from tests.duckdb.compare import database, differences
from tidegate.sink.memory import MemorySink

WIDE = """
    SELECT timestamp '1970-01-01' + to_seconds(n - 50) AS ts,
        (n % 5)::UTINYINT AS u8, (n * 600)::USMALLINT AS u16, (n * 7)::UINTEGER AS u32,
        (n * 9)::UBIGINT AS u64, (n % 4)::TINYINT AS i8, (n / 3)::FLOAT AS f32,
        (n / 7)::DECIMAL(4, 1) AS d4, (n / 7)::DECIMAL(18, 3) AS d18,
        (n / 7)::DECIMAL(38, 10) AS d38, ('blob' || n % 3)::BLOB AS bytes,
        (timestamp '2020-01-01' + to_seconds(n))::TIMESTAMP_NS AS ns,
        (timestamp '2020-01-01' + to_seconds(n))::TIMESTAMP_MS AS ms,
        (timestamp '1600-01-01' + to_seconds(n)) AS old
    FROM range(100) AS r(n)"""


def run(uri: str, text: str) -> pa.Table:
    session = tg.Session(master="none")
    sink = MemorySink()
    stream = session.stream(uri, time="ts", name="s")
    session.sql(text, s=stream).start(sink=sink, batch_rows=60, instances=2).wait()
    return sink.table()


@pytest.mark.parametrize("kind", ["parquet", "csv", "json"])
def test_files_of_each_format(tmp_path: Path, kind: str) -> None:
    rows = data.rows(np.random.default_rng(51), 150)
    rows = rows.select(["ts", "k", "i", "f", "s", "t"])
    rows = rows.filter(pa.compute.not_equal(rows["s"], ""))  # in CSV "" cannot be told from NULL
    load(database(), "s", [rows], "ts")
    path = tmp_path / f"rows.{kind}"
    options = {"parquet": "parquet, row_group_size 64", "csv": "csv, header", "json": "json"}[kind]
    database().execute(
        f'COPY (SELECT * EXCLUDE ("~ts", "~source", "~seq") FROM s ORDER BY "~seq") '
        f"TO '{path}' (format {options})"
    )
    text = (
        "SELECT t, COUNT(*) AS n, SUM(i) AS x, AVG(f) AS a, MAX(s) AS m, FIRST(k) AS f, "
        "LAST(s) AS l FROM s [RANGE 1 MINUTE SLIDE 25 SECONDS] WHERE i > -15 GROUP BY t"
    )
    wanted = database().sql(rewrite(text, rows.column_names)).to_arrow_table()
    assert not differences(run(str(path), text), wanted)


@pytest.mark.parametrize("column", "u8 u16 u32 u64 i8 f32 d4 d18 d38 bytes ns ms old".split())
def test_types_of_parquet_files(tmp_path: Path, column: str) -> None:
    """Unsigned, wide, old and precise ones, as keys and as arguments."""
    path = tmp_path / "wide.parquet"
    database().execute(f"COPY ({WIDE}) TO '{path}' (format parquet)")
    calls = data.functions_of("x", numeric=column not in ("ns", "ms", "old", "bytes"))
    items = ", ".join(f"{c} AS a{n}" for n, c in enumerate(calls))
    shown = f"{column}::TIMESTAMP" if column in ("ns", "ms") else column
    table = database().sql(f"SELECT ts, {shown} AS x FROM '{path}'").to_arrow_table()
    load(database(), "s", [table], "ts")
    inner = f"(SELECT {column} AS x FROM s) [RANGE 1 MINUTE SLIDE 40 SECONDS]"
    for text in (
        f"SELECT {items} FROM {inner}",
        f"SELECT x, COUNT(*) AS n FROM {inner} GROUP BY x",
    ):
        batch = text.replace(f"{column} AS x", "x")
        wanted = database().sql(rewrite(batch)).to_arrow_table()
        assert not differences(run(str(path), text), wanted)
