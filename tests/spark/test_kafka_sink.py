"""A query whose tasks are Spark's writes to a topic, and goes on after a restart."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from tools.kafka import Broker

import tidegate as tg
from tests.kafka.conftest import broker, environment, topic
from tests.kafka.reading import rows_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["broker", "environment", "topic"]  # fixtures

START = datetime(2024, 1, 1, tzinfo=UTC)


def test_a_query_on_spark_writes_each_row_once(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    inputs, checkpoint = tmp_path / "in", tmp_path / "ckpt"
    inputs.mkdir()
    for part in range(2):
        times = [START + timedelta(seconds=100 * part + n) for n in range(100)]
        routes = [f"r{n % 3}" for n in range(100)]
        pq.write_table(pa.table({"at": times, "route": routes}), inputs / f"{part}.parquet")
        sink = tg.sink.kafka(f"kafka://{broker.address}/{topic}", key="route", partitions=2)
        rides = tg.Session(spark).stream(str(inputs), time="at")
        counts = rides.window("10 seconds").group_by("route").agg(n=tg.count())
        query = counts.start(sink=sink, checkpoint=checkpoint, available_now=True, batch_rows=40)
        query.wait()
    found = rows_in(broker, topic)
    assert len(found) == 19 * 3, "the last window is open"
    assert sum(row["n"] for row in found) == 190
