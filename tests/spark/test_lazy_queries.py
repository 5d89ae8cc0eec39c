"""Guards in aggregates, FILTER, WHERE, HAVING and ON: what fails here fails in Spark, and no more.

All rows are in one window, and all pairs within it, so that Spark's query over whole tables has the
same answer.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import tidegate as tg
from tests.spark.both_engines import FAILS, compiled
from tidegate.errors import TaskError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Rows = list[str] | str


def _times(count: int) -> pa.Array:
    times = [datetime(2024, 1, 1, 0, 0, second, tzinfo=UTC) for second in range(count)]
    return pa.array(times, pa.timestamp("us", "UTC"))


TABLES = {
    "a": pa.table(
        {
            "ts": _times(4),
            "i": pa.array([1, 2, None, 1], pa.int32()),
            "z": pa.array([0, 0, 0, 2], pa.int32()),
            "s": pa.array(["bad", "bad", "bad", "5"]),
            "b": pa.array([False, None, False, True]),
            "k": pa.array([1, 0, 2, 1], pa.int32()),
            "d": pa.array([1.0, 2.0, None, float("nan")]),
        }
    ),
    "c": pa.table(
        {
            "ts": _times(3),
            "i": pa.array([1, 2, 3], pa.int32()),
            "z": pa.array([0, 4, 5], pa.int32()),
            "s": pa.array(["bad", "6", "7"]),
            "b": pa.array([False, True, True]),
            "k": pa.array([1, 9, 2], pa.int32()),
        }
    ),
}

AGGREGATES = """
sum(if(b, CAST(s AS INT), 0)) AS r FROM a
sum(if(i IS NULL, 0, CAST(s AS INT))) AS r FROM a
sum(CAST(s AS INT)) FILTER (WHERE b) AS r FROM a
sum(CAST(s AS INT)) FILTER (WHERE b AND k > 0) AS r FROM a
count(*) FILTER (WHERE b AND CAST(s AS INT) > 1) AS r FROM a
count(*) FILTER (WHERE CAST(s AS INT) > 1 AND b) AS r FROM a
count(*) FILTER (WHERE b OR CAST(s AS INT) > 1) AS r FROM a
count_if(b AND CAST(s AS INT) > 1) AS r FROM a
avg(nanvl(d, CAST(s AS DOUBLE))) AS r FROM a
max(nvl2(b, 1, CAST(s AS INT))) FILTER (WHERE b) AS r FROM a
count(DISTINCT if(b, CAST(s AS INT), NULL)) AS r FROM a
corr(d, CAST(s AS DOUBLE)) AS r FROM a WHERE i IS NULL
corr(CAST(s AS DOUBLE), d) AS r FROM a WHERE i IS NULL
covar_pop(d, CAST(s AS DOUBLE)) AS r FROM a WHERE i IS NULL
covar_samp(d, CAST(s AS DOUBLE)) AS r FROM a
max_by(CAST(s AS INT), i) AS r FROM a WHERE i IS NULL
max_by(i, CAST(s AS INT)) AS r FROM a WHERE i IS NULL
count(*) AS r FROM a WHERE b AND CAST(s AS INT) > 1
count(*) AS r FROM a WHERE CAST(s AS INT) > 1 AND b
k, count(*) AS r FROM a GROUP BY k HAVING k <> 0 AND 1 / k > 0
k, count(*) AS r FROM a GROUP BY k HAVING 1 / k > 0 AND k <> 0
k, sum(z) AS r FROM a GROUP BY k HAVING sum(z) <> 0 AND 1 / sum(z) > 0
k, sum(z) AS r FROM a GROUP BY k HAVING 1 / sum(z) > 0 AND sum(z) <> 0
k, sum(z) AS r FROM a GROUP BY k HAVING sum(CAST(s AS INT)) FILTER (WHERE b) > 0
k, if(sum(z) <> 0, 1 / sum(z), 0) AS r FROM a GROUP BY k
""".strip().splitlines()

CONDITIONS = """
a.k = c.k AND a.z <> 0 AND c.z / a.z > 0
a.k = c.k AND c.z / a.z > 0 AND a.z <> 0
a.k = c.k AND c.z / a.z > 0
a.k = c.k AND (a.z = 0 OR c.z / a.z > 0)
a.k = CAST(c.s AS INT)
a.k = CAST(c.s AS INT) AND c.b
a.z = c.z AND a.k = CAST(c.s AS INT)
a.k < CAST(c.s AS INT)
a.k < CAST(c.s AS INT) AND c.b
a.k < c.k AND CAST(a.s AS INT) < CAST(c.s AS INT)
a.k - c.k BETWEEN -1 AND 1 / a.z
a.z <> 0 AND a.k - c.k BETWEEN -1 AND 1 / a.z
CASE WHEN a.b THEN a.k = CAST(a.s AS INT) - 4 ELSE a.k = c.k END
a.k = c.k AND nanvl(a.d, CAST(c.s AS DOUBLE)) > 0
nanvl(a.d, CAST(a.s AS DOUBLE)) > c.z
if(a.z = 0, 0, 1 / a.z) < c.i
a.k = c.k WHERE a.z <> 0 AND c.z / a.z > 0
a.k = c.k WHERE c.z / a.z > 0
""".strip().splitlines()

WINDOW = " [RANGE 1 HOUR]"
QUERIES = [("SELECT " + text.replace("FROM a", "FROM a{w}")) for text in AGGREGATES]
QUERIES += [f"SELECT a.i AS i, c.z AS z FROM a{{w}} JOIN c{{w}} ON {text}" for text in CONDITIONS]


def answer(query: str, session: tg.Session) -> Rows:
    streams = {}
    for name, table in TABLES.items():
        source = tg.MemorySource(table, time="ts", id=name)
        source.end()
        streams[name] = session.stream(source, time="ts", name=name)
    used = {name: stream for name, stream in streams.items() if f" {name}{WINDOW}" in query}
    sink = tg.sink.memory()
    try:
        session.sql(query, **used).start(sink=sink).wait()
    except TaskError:
        return FAILS
    implicit = ("ts", "window_start", "window_end")
    return shown(sink.table().select([n for n in sink.table().column_names if n not in implicit]))


def by_spark(query: str, spark: SparkSession) -> Rows:
    from pyspark.errors import PySparkException

    for name, table in TABLES.items():
        spark.createDataFrame(table).createOrReplaceTempView(name)
    try:
        with compiled(spark):
            return shown(spark.sql(query).toArrow())
    except PySparkException as error:
        if "SQLSTATE: 22" not in str(error):  # those of values
            raise
        return FAILS


def shown(rows: pa.Table) -> list[str]:
    return sorted(map(str, rows.to_pylist()))


@pytest.mark.parametrize("query", QUERIES)
def test_queries_fail_where_spark_does(query: str, spark: SparkSession) -> None:
    wanted = by_spark(query.format(w=""), spark)
    assert answer(query.format(w=WINDOW), tg.Session(master="none")) == wanted


@pytest.mark.parametrize("query", QUERIES[4:5] + QUERIES[8:9] + QUERIES[21:23])
def test_the_same_on_spark(query: str, spark: SparkSession) -> None:
    wanted = answer(query.format(w=WINDOW), tg.Session(master="none"))
    assert answer(query.format(w=WINDOW), tg.Session(spark)) == wanted


def test_guards_are_in_the_order_that_is_written() -> None:
    """Spark evaluates more of these: it moves what is of keys or DISTINCT before the guard."""
    session = tg.Session(master="none")
    for query in (
        "SELECT k, count(*) AS r FROM a{w} GROUP BY k HAVING count(*) > 1 AND 1 / k > 0",
        "SELECT count(DISTINCT CAST(s AS INT)) FILTER (WHERE b) AS r FROM a{w}",
    ):
        assert len(answer(query.format(w=WINDOW), session)) == 1
