"""Spark Structured Streaming: files as the source, `foreachBatch` as the sink, written by batch id.

Append mode, a watermark of what rows may be late by on each stream, and a checkpoint. A batch that
is written again replaces what it wrote before, as Spark's guide advises for `foreachBatch`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

sys.path.insert(0, str(Path(__file__).parents[2]))

from determinism.answer import write_rows

SCHEMA = "ts timestamp, k string, price double, qty bigint, id bigint"
ALLOWED = "10 seconds"
_KILL_AT = 2


def sliding_avg(read: Callable[[str], DataFrame]) -> DataFrame:
    grouped = read("trades").groupBy(F.window("ts", "10 seconds", "5 seconds"), "k")
    return grouped.agg(F.avg("price").alias("mean"), F.count("*").alias("n"))


def first_last(read: Callable[[str], DataFrame]) -> DataFrame:
    grouped = read("trades").groupBy(F.window("ts", "10 seconds"), "k")
    return grouped.agg(
        F.min_by("price", "ts").alias("first"), F.max_by("price", "ts").alias("last")
    )


def join(read: Callable[[str], DataFrame]) -> DataFrame:
    near = "t.k = q.k AND q.ts BETWEEN t.ts - INTERVAL 1 SECOND AND t.ts + INTERVAL 1 SECOND"
    joined = read("trades").alias("t").join(read("quotes").alias("q"), F.expr(near))
    return joined.selectExpr("greatest(t.ts, q.ts) AS ts", "t.id AS t", "q.id AS q",
                             "t.price - q.price AS spread")  # fmt: skip


def dedup(read: Callable[[str], DataFrame]) -> DataFrame:
    return read("trades").dropDuplicatesWithinWatermark(["id"]).select("ts", "id", "price")


def late(read: Callable[[str], DataFrame]) -> DataFrame:
    grouped = read("late").groupBy(F.window("ts", "10 seconds"), "k")
    return grouped.agg(F.count("*").alias("n"), F.sum("qty").alias("qty"))


def top(read: Callable[[str], DataFrame]) -> DataFrame:
    """Ranking is refused on streams: the groups of a window are collected and sorted."""
    grouped = (
        read("trades").groupBy(F.window("ts", "10 seconds"), "k").agg(F.sum("qty").alias("qty"))
    )
    ranked = F.sort_array(F.collect_list(F.struct(-F.col("qty"), "k")))
    best = grouped.groupBy("window").agg(F.slice(ranked, 1, 2).alias("best"))
    return best.select("window", F.to_json("best").alias("best"))


QUERIES = {f.__name__: f for f in (sliding_avg, first_last, join, dedup, late, top)}


def run(spark: SparkSession, job: dict[str, Any]) -> None:
    """One query to the end of its input; one to be killed ends this process in a batch."""
    spark.conf.set("spark.sql.shuffle.partitions", job["shuffles"])
    rows = Path(job["work"], "rows")
    rows.mkdir(parents=True, exist_ok=True)

    def read(stream: str) -> DataFrame:
        reader = spark.readStream.schema(SCHEMA)
        if job["cut"]:
            reader = reader.option("maxFilesPerTrigger", job["cut"])
        folder = Path(job["data"], job["arrival"].replace(" ", "-"), stream)
        return reader.parquet(str(folder)).withWatermark("ts", ALLOWED)

    def write(frame: DataFrame, batch: int) -> None:
        pq.write_table(frame.toArrow(), rows / f"{batch:06}.parquet")
        if job["kill"] and batch == _KILL_AT:
            os.kill(os.getpid(), signal.SIGKILL)

    writer = QUERIES[job["query"]](read).writeStream.foreachBatch(write).trigger(availableNow=True)
    writer.option("checkpointLocation", f"{job['work']}/state").start().awaitTermination()
    write_rows(Path(job["out"]), (row for f in sorted(rows.iterdir()) for row in _rows(f)))


def _rows(file: Path) -> list[list[Any]]:
    found = []
    for row in pq.read_table(file).to_pylist():
        window = row.pop("window", None)
        found.append([*(window.values() if window else ()), *row.values()])
    return found


if __name__ == "__main__":
    jobs = json.loads(Path(sys.argv[1]).read_text())
    session = (
        SparkSession.builder.master(f"local[{jobs[0]['parallelism']}]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    for each in jobs:
        run(session, each)
