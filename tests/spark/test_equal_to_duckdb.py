"""Queries on Spark against DuckDB, with prefixes in Arrow kernels and in Spark SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from tests.duckdb import data
from tests.duckdb.compare import (
    Answer,
    Streamed,
    by_duckdb,
    by_tidegate,
    check,
    database,
    differences,
)
from tidegate.plan.physical import SPARK
from tidegate.query.output import Output
from tidegate.session.place import Place
from tidegate.session.planning import plan_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WINDOW = "[RANGE 1 MINUTE SLIDE 25 SECONDS]"
ALL = (
    "COUNT(*) AS n, SUM(i) AS total, AVG(f) AS a, MIN(d) AS lo, MAX(s) AS hi, VAR(f) AS v, "
    "MEDIAN(f) AS m, COUNT(DISTINCT s) AS u, FIRST(i) AS first, LAST(at) AS last"
)
IN_SPARK = (
    f"SELECT regexp_extract(s, '^([a-z])', 1) AS letter, date_format(at, 'yyyy-MM') AS month, {ALL}"
    f" FROM s {WINDOW} WHERE regexp_extract(s, '(b)', 1) = '' OR k > 1 "
    "GROUP BY regexp_extract(s, '^([a-z])', 1), month HAVING n > 0 ORDER BY total DESC LIMIT 4"
)
STATELESS_IN_SPARK = "SELECT k, regexp_extract(s, '(.)$', 1) AS ending FROM s WHERE i > -15"


def disordered(seed: int, sources: int = 2, rows: int = 150) -> Streamed:
    """Sources that break their promise now and then, and have tuples without a time."""
    draw = np.random.default_rng(seed)
    made = []
    for _ in range(sources):
        table = data.rows(draw, rows, span_s=120)
        moved = np.argsort(np.arange(rows) + draw.integers(0, 6, rows), kind="stable")
        table = table.take(pa.array(moved))
        times = table["ts"].to_pylist()
        for gap in draw.choice(rows, 5, replace=False):
            times[gap] = None
        made.append(table.set_column(0, "ts", pa.array(times, data.SCHEMA.field("ts").type)))
    return Streamed(made, disorder_us=2_000_000)


def engines(text: str, stream: Streamed, spark: SparkSession) -> list[str]:
    """Which engine evaluates the prefix of each input."""
    import tidegate as tg

    source = tg.MemorySource(stream.sources[0], time="ts")
    session = tg.Session(spark)
    query = session.sql(text, s=session.stream(source, time="ts", name="s"))
    plan = plan_for([Output(None, query.node)], Place(session=spark))
    return [p.engine for s in plan.subqueries for p in s.prefixes]


def assert_side_outputs(got: Answer, name: str) -> None:
    """Late and rejected tuples are those of the definition, each once."""
    order = 'ORDER BY "~source", "~seq"'
    late = database().sql(f'SELECT "~source", "~seq", i, s FROM "{name}~late" {order}').fetchall()
    assert late
    ours = [
        (int(row["_source"][-2:]), row["_seq"], row["i"], row["s"])
        for row in got.late[name].to_pylist()
    ]
    assert sorted(ours, key=lambda r: r[:2]) == late
    wanted = database().sql(f'SELECT "~source", "~seq" FROM "{name}~rejected" {order}').fetchall()
    assert got.rejected is not None
    found = [(int(r["_source"][-2:]), r["_seq"]) for r in got.rejected.to_pylist()]
    assert sorted(found) == wanted


@pytest.mark.parametrize("seed", [1, 2])
def test_windows_and_groups(spark: SparkSession, seed: int) -> None:
    rows = data.rows(np.random.default_rng(seed), 300)
    keys = "k, upper(s)" if seed == 1 else "t"
    text = f"SELECT {keys}, {ALL} FROM s {WINDOW} WHERE i > -18 GROUP BY {keys}"
    text = text.replace("upper(s),", "upper(s) AS upper,")
    check(text, {"s": rows}, spark=spark, batch_rows=130, switches={1: 3})


@pytest.mark.parametrize("seed", range(4))
def test_random_queries(spark: SparkSession, seed: int) -> None:
    draw = np.random.default_rng([9, seed])
    check(data.query(draw), {"s": data.rows(draw, 200)}, spark=spark, batch_rows=120)


def test_a_union_in_the_total_order(spark: SparkSession) -> None:
    draw = np.random.default_rng(3)
    sides = {n: Streamed([data.rows(draw, 80, span_s=5) for _ in range(2)]) for n in ("a", "b")}
    text = "SELECT k, i, s FROM a WHERE i > -15 UNION ALL SELECT b, k, upper(s) FROM b"
    check(text, sides, spark=spark, batch_rows=150)


@pytest.mark.parametrize("text", [IN_SPARK, STATELESS_IN_SPARK], ids=["windowed", "stateless"])
def test_a_prefix_in_spark_sql_with_late_and_rejected_tuples(
    spark: SparkSession, text: str
) -> None:
    stream = disordered(4)
    assert engines(text, stream, spark) == [SPARK]
    wanted = by_duckdb(text, {"s": stream})
    got = by_tidegate(text, {"s": stream}, spark=spark, batch_rows=110, instances=2)
    assert wanted.num_rows > 20
    assert not differences(got.rows, wanted)
    assert_side_outputs(got, "s")


def test_late_and_rejected_tuples_beside_arrow_kernels(spark: SparkSession) -> None:
    stream = disordered(5)
    text = f"SELECT k, {ALL} FROM s {WINDOW} GROUP BY k"
    options: dict[str, Any] = {"batch_rows": 110, "instances": 2}
    got = by_tidegate(text, {"s": stream}, spark=spark, **options)
    assert not differences(got.rows, by_duckdb(text, {"s": stream}))
    assert_side_outputs(got, "s")


def test_a_union_of_an_arrow_and_a_spark_prefix(spark: SparkSession) -> None:
    stream = disordered(6)
    union = "SELECT k, regexp_extract(s, '^([a-z])', 1) AS w FROM s UNION ALL SELECT k, s FROM s"
    text = f"SELECT w, COUNT(*) AS n, FIRST(k) AS f FROM ({union}) [RANGE 1 MINUTE] GROUP BY w"
    got = by_tidegate(text, {"s": stream}, spark=spark, batch_rows=250)
    assert not differences(got.rows, by_duckdb(text, {"s": stream}))
