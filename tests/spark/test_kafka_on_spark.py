"""A topic read by tasks of Spark that stay between batches, with a consumer in each process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tools.kafka import Broker

import tidegate as tg
from tests.kafka.conftest import broker, topic
from tests.kafka.topic import SQL, answer, given, send, spread, until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["broker", "topic"]


def test_resident_tasks_read_a_followed_topic(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    broker.create(topic, 2)
    session, sink = tg.Session(spark), tg.sink.memory()
    send(broker, topic, spread(range(400), 2))
    stream = session.stream(f"kafka://{broker.address}/{topic}", time="ts", name="r")
    counted = session.sql(SQL, r=stream)
    query = counted.start(
        sink=sink, follow=True, checkpoint=str(tmp_path / "c"), instances=2, batch_rows=300
    )
    send(broker, topic, spread(range(400, 800), 2))
    until(lambda: query.status().get("rows_in", 0) == 800, query)
    query.stop()
    assert given(sink.table().to_pylist()) == answer(range(700))
