"""EXPLODE, ROLLUP and lists on Spark: the rows of Spark's own SQL, and those without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tests.duckdb.compare import Streamed, by_tidegate
from tidegate.schema import TIME

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LISTS: list[Any] = [["a", "b"], [], None, ["c", None], ["a"], ["b", "a", "c"]] * 3
ROWS = pa.table(
    {
        "ts": pa.array([n * 1_000_000 for n in range(len(LISTS))], pa.int64()).view(TIME),
        "id": pa.array(range(len(LISTS)), pa.int64()),
        "tags": pa.array(LISTS, pa.list_(pa.string())),
        "note": ["x,y", None, "", "z"] * 4 + ["u,v,w", "q"],
    }
)
EXPLODED = (
    "SELECT id, EXPLODE(tags) AS tag FROM s WHERE id <> 4",
    "SELECT id, EXPLODE_OUTER(tags) AS tag FROM s",
    "SELECT id, POSEXPLODE(tags) AS (p, tag) FROM s",
    "SELECT id, tag FROM s LATERAL VIEW OUTER EXPLODE(tags) t AS tag WHERE id > 1",
    "SELECT id, p, tag FROM s LATERAL VIEW POSEXPLODE(tags) t AS p, tag",
    "SELECT id, EXPLODE(SPLIT(note, ',')) AS part FROM s",
)


@pytest.mark.parametrize("text", EXPLODED)
def test_the_rows_of_spark(spark: SparkSession, text: str) -> None:
    spark.createDataFrame(ROWS).createOrReplaceTempView("s")
    place = ", p" if "pos" in text.lower() else ""
    wanted = [
        tuple(row) for row in spark.sql(f"SELECT * FROM ({text}) ORDER BY id{place}").collect()
    ]
    got = by_tidegate(text, {"s": Streamed([ROWS])}, spark=spark, batch_rows=7, instances=2).rows
    found = [tuple(row.values())[1:] for row in got.to_pylist()]
    if place:
        assert found == wanted
    else:  # Spark does not say where in its list a value was
        assert sorted(map(repr, found)) == sorted(map(repr, wanted))
        assert [row[0] for row in found] == [row[0] for row in wanted]
    assert len(found) > 10


def test_sets_of_groups_are_those_of_spark(spark: SparkSession) -> None:
    spark.createDataFrame(ROWS).createOrReplaceTempView("s")
    items = "id % 2 AS k, note, GROUPING(note) AS g, GROUPING_ID() AS i, COUNT(*) AS n"
    group = "GROUP BY CUBE (id % 2, note)"
    wanted = spark.sql(f"SELECT {items} FROM s {group}").collect()
    text = f"SELECT {items} FROM s [RANGE 1 MINUTE] {group}"
    got = by_tidegate(text, {"s": Streamed([ROWS])}, spark=spark, batch_rows=7, instances=2).rows
    types = [str(t) for t in got.schema.types[2:]]
    assert types == ["int64", "string", "int8", "int64", "int64"]
    found = [tuple(row.values())[2:] for row in got.to_pylist()]
    assert sorted(map(repr, found)) == sorted(repr(tuple(row)) for row in wanted)
    without = by_tidegate(text, {"s": Streamed([ROWS])}, batch_rows=3, instances=3).rows
    assert without.to_pylist() == got.to_pylist()
