"""Spark Structured Streaming in append mode, with RocksDB for state, as its guide advises.

With changelog checkpoints, which its guide offers against latency.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
ROCKSDB_SETTINGS = "spark.sql.streaming.stateStore.rocksdb"
NEAR = (
    "left_key = right_key AND right_ts BETWEEN left_ts - INTERVAL 60 SECONDS"
    " AND left_ts + INTERVAL 60 SECONDS"
)


def frame(spark: SparkSession, folder: Path, rows: int) -> DataFrame:
    """A stream of the files of a folder, so many rows to a batch, or a file where it has more;
    without a limit where `rows` is 0."""
    files = sorted(folder.glob("*.parquet"))
    first = spark.read.parquet(str(files[0]))
    reader = spark.readStream.schema(first.schema)
    if rows:
        reader = reader.option("maxFilesPerTrigger", max(rows // first.count(), 1))
    return reader.parquet(str(folder)).withWatermark("ts", "0 seconds")


def query(spark: SparkSession, job: dict[str, Any]) -> DataFrame:
    case, data, rows = job["case"], Path(job["data"]), job["batch_rows"]
    if case == "equality":
        sides = []
        for name in ("left", "right"):
            side = frame(spark, data / "keyed" / name, rows // 2)
            sides.append(side.select(*[F.col(c).alias(f"{name}_{c}") for c in side.columns]))
        joined = sides[0].join(sides[1], F.expr(NEAR))
        return joined.selectExpr("left_key AS key", "left_value AS a", "right_value AS b")
    if case == "latency":
        events, window = frame(spark, data, 0), F.window("ts", "10 seconds", "1 second")
    else:
        events = frame(spark, data / ("tiny" if case == "tiny" else "events"), rows)
        slide = "60 seconds" if case == "tumbling" else "10 seconds"
        window = F.window("ts", "60 seconds", slide)
    grouped = events.groupBy(window, "key")
    if case == "median":
        found = grouped.agg(F.percentile("value", 0.5).alias("m"))
        return found.selectExpr("unix_micros(window.end) AS end_us", "key", "m")
    found = grouped.agg(F.avg("value").alias("mean"), F.count("*").alias("n"))
    return found.selectExpr("unix_micros(window.end) AS end_us", "key", "mean", "n")


def run(job: dict[str, Any]) -> dict[str, Any]:
    work = Path(job["work"])
    spark = (
        SparkSession.builder.master(f"local[{job['cores']}]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", str(job["cores"]))
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
        .config(f"{ROCKSDB_SETTINGS}.changelogCheckpointing.enabled", "true")
        .config("spark.sql.streaming.numRecentProgressUpdates", "10000")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    writer = query(spark, job).writeStream.format("parquet").option("path", f"{work}/out")
    writer = writer.option("checkpointLocation", f"{work}/state")
    began = time.perf_counter()
    if job["case"] == "latency":
        started = writer.start()
    else:
        started = writer.trigger(availableNow=True).start()
    print("ABOUT", json.dumps(about(job)), flush=True)
    started.awaitTermination()
    seconds = time.perf_counter() - began
    spark.read.parquet(f"{work}/out").coalesce(1).write.parquet(f"{work}/rows.parquet")
    batches = sum(1 for p in started.recentProgress if p["numInputRows"])
    return {"seconds": seconds, "batches": batches, **about(job)}


def about(job: dict[str, Any]) -> dict[str, str]:
    batches = f"availableNow, batches of {job['batch_rows']:,} rows"
    if job["case"] == "latency":
        batches = "no trigger"
    return {
        "version": pyspark.__version__,
        "settings": f"local[{job['cores']}], as many shuffle partitions, RocksDB with changelog, "
        + batches,
    }


if __name__ == "__main__":
    print("RESULT", json.dumps(run(json.loads(sys.argv[1]))), flush=True)
