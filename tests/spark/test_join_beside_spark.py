"""A join that Spark's Structured Streaming accepts, run by both: the same pairs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tidegate as tg
from tidegate.sink.memory import MemorySink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILES = 2
ROWS = 200
"""Rows in each file."""

JOIN = """
    SELECT l.n AS ln, r.n AS rn, l.k AS k, r.v - l.v AS gain
    FROM l [RANGE 5 SECONDS] JOIN r [RANGE 5 SECONDS]
    ON l.k = r.k AND r.ts >= l.ts - INTERVAL 2 SECONDS
"""
SAME_IN_SPARK = "lk = rk AND rts >= lts - INTERVAL 2 SECONDS AND rts <= lts + INTERVAL 5 SECONDS"


def write(folder: Path, seed: int) -> None:
    """A stream in several files, one after the other in time, with keys that may be NULL."""
    draw = np.random.default_rng(seed)
    folder.mkdir()
    times = np.sort(draw.integers(0, 90_000_000, FILES * ROWS) // 1000 * 1000)
    keys = [None if k == 0 else f"key {k}" for k in draw.integers(0, 12, len(times))]
    table = pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
            "n": pa.array(range(len(times)), pa.int64()),
            "k": pa.array(keys),
            "v": pa.array(draw.integers(0, 100, len(times)), pa.int64()),
        }
    )
    for number in range(FILES):
        pq.write_table(table.slice(number * ROWS, ROWS), folder / f"{number}.parquet")


def by_spark(spark: SparkSession, left: Path, right: Path, checkpoint: Path) -> Counter[Any]:
    """What Spark's own stream-stream join finds, a file of each side per micro-batch."""

    def side(folder: Path, name: str) -> DataFrame:
        schema = spark.read.parquet(str(folder)).schema
        frame = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        columns = [f"{c} AS {name}{c}" for c in ("ts", "n", "k", "v")]
        return (
            frame.parquet(str(folder)).selectExpr(*columns).withWatermark(f"{name}ts", "1 second")
        )

    from pyspark.sql.functions import expr

    pairs = side(left, "l").join(side(right, "r"), expr(SAME_IN_SPARK))
    query = (
        pairs.selectExpr("greatest(lts, rts) AS ts", "ln", "rn", "lk AS k", "rv - lv AS gain")
        .writeStream.format("memory")
        .queryName("pairs_by_spark")
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    table = spark.table("pairs_by_spark").toArrow()
    spark.catalog.dropTempView("pairs_by_spark")
    return pairs_of(table)


def pairs_of(table: pa.Table) -> Counter[Any]:
    times = table.column("ts").cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).to_pylist()
    columns = [times, *(table.column(c).to_pylist() for c in ("ln", "rn", "k", "gain"))]
    return Counter(zip(*columns, strict=True))


@pytest.mark.timeout(300)
def test_the_pairs_are_those_of_structured_streaming(spark: SparkSession, tmp_path: Path) -> None:
    left, right = tmp_path / "left", tmp_path / "right"
    write(left, 1)
    write(right, 2)
    wanted = by_spark(spark, left, right, tmp_path / "checkpoint")
    assert sum(wanted.values()) > 300
    session = tg.Session(spark)
    streams = {
        "l": session.stream(str(left), time="ts", name="l"),
        "r": session.stream(str(right), time="ts", name="r"),
    }
    sink = MemorySink()
    session.sql(JOIN, **streams).start(sink=sink, batch_rows=200, instances=2).wait()
    assert pairs_of(sink.table()) == wanted
