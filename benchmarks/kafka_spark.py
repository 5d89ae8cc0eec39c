"""Spark's own streaming from Kafka and to Kafka, for `kafka.py`, by a PySpark of its own.

Run by the Python of another virtual environment, which has the version of PySpark that Maven
Central has the whole connector for.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from measure import cpu_seconds, give, own_session, progress_of, spark_session

VERSION = "4.0.0"
"""The newest with both parts of the connector on Maven Central: later ones lack the one for tokens,
spark-token-provider-kafka-0-10_2.13, and 4.3 lacks both."""
CONNECTOR = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{VERSION}"
_THERE = (
    "com.google.code.findbugs:jsr305 org.apache.hadoop:hadoop-client-api "
    "org.apache.hadoop:hadoop-client-runtime org.lz4:lz4-java org.slf4j:slf4j-api "
    "org.scala-lang.modules:scala-parallel-collections_2.13 org.xerial.snappy:snappy-java"
).split()
"""What the connector needs and PySpark brings."""
JARS = {"spark.jars.packages": CONNECTOR, "spark.jars.excludes": ",".join(_THERE)}


def _rows(spark: Any, asked: argparse.Namespace) -> Any:
    """The records as rows, by their JSON values."""
    from pyspark.sql import functions as F

    stream = spark.readStream.format("kafka").option("kafka.bootstrap.servers", asked.address)
    stream = stream.option("subscribe", asked.source).option("startingOffsets", "earliest")
    if not asked.live:
        stream = stream.option("maxOffsetsPerTrigger", asked.batch_rows)
    value = F.from_json(F.col("value").cast("string"), "ts TIMESTAMP, k STRING, v BIGINT")
    return stream.load().select(value.alias("r")).select("r.*")


def _aggregate(rows: Any, asked: argparse.Namespace) -> Any:
    from pyspark.sql import functions as F

    delay = "0 seconds" if asked.live else "1 second"  # partitions are not read in step
    window = F.window("ts", f"{asked.range_ms} milliseconds")
    grouped = rows.withWatermark("ts", delay).groupBy(window, "k")
    found = grouped.agg(F.count("*").alias("n"), F.sum("v").alias("s"))
    ends = "window.start AS window_start", "window.end AS window_end"
    return found.selectExpr(*ends, "k", "n", "s")


def _copy(rows: Any, asked: argparse.Namespace) -> Any:
    return rows


QUERIES: dict[str, Callable[[Any, argparse.Namespace], Any]] = {
    "aggregate": _aggregate,
    "copy": _copy,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("query", "address", "source", "out", "work"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--range-ms", type=int, default=1_000)
    parser.add_argument("--batch-rows", type=int, default=0)
    parser.add_argument("--live", action="store_true")
    asked = parser.parse_args()
    own_session()
    spark = spark_session(JARS)
    found = QUERIES[asked.query](_rows(spark, asked), asked)
    writer = found.selectExpr("k AS key", "to_json(struct(*)) AS value").writeStream.format("kafka")
    writer = writer.option("kafka.bootstrap.servers", asked.address).option("topic", asked.out)
    writer = writer.option("checkpointLocation", str(Path(asked.work) / "checkpoint"))
    query = writer.start() if asked.live else writer.trigger(availableNow=True).start()
    query.awaitTermination()
    give({"batches": progress_of(query), "cpu_s": cpu_seconds()})


if __name__ == "__main__":
    main()
