"""Previews, LIMIT and HAVING where only Spark knows a function."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import tidegate as tg
from tidegate import call, count, expr
from tidegate.errors import UnavailableError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = [
    {"ts": "2024-01-01T00:00:01Z", "route": "Robert", "fare": 5.0},
    {"ts": "2024-01-01T00:00:02Z", "route": "Rupert", "fare": 7.5},
    {"ts": "2024-01-01T00:00:03Z", "route": "Anna", "fare": 1.0},
]


def test_what_only_spark_knows_can_be_looked_at(spark: SparkSession) -> None:
    rides = tg.Session(spark).stream(ROWS, name="rides")
    sounds = rides.with_columns(sound=call("soundex", "route"))
    assert sounds.schema.field("sound").type == pa.string()
    assert [r["sound"] for r in sounds.preview(2).to_pylist()] == ["R163", "R163"]


def frame(spark: SparkSession) -> DataFrame:
    """A thousand rows in three partitions, out of order, five to an instant."""
    rows = spark.range(0, 1000, 1, 3).selectExpr("(id * 7919) % 1000 AS v")
    return rows.selectExpr("v", "timestamp_seconds(v DIV 5) AS `a``t.x`", "v % 3 AS k")


def test_a_data_frame_can_be_looked_at(spark: SparkSession) -> None:
    rides = tg.Session(spark).stream(frame(spark), time="a`t.x", name="rides")
    sink = tg.sink.memory()
    rides.start(sink=sink, instances=1).wait(120)
    assert sink.table().num_rows == 1000
    assert rides.to_arrow() == sink.table()
    seen = rides.preview(17)
    assert seen.table == sink.table().slice(0, 17)
    assert not seen.complete
    assert rides.preview(1000).complete


def test_a_preview_of_a_data_frame_shows_no_window_that_it_cuts(spark: SparkSession) -> None:
    rides = tg.Session(spark).stream(frame(spark), time="a`t.x", name="rides")
    counts = rides.window("1 minute").agg(n=count())
    assert [r["n"] for r in counts.preview(10, read=700).to_pylist()] == [300, 300]
    assert [r["n"] for r in counts.preview(10).to_pylist()] == [300, 300, 300, 100]
    assert counts.to_pandas()["n"].tolist() == [300, 300, 300, 100]


def test_a_streaming_data_frame_goes_on(spark: SparkSession) -> None:
    ticks = spark.readStream.format("rate").load()
    stream = tg.Session(spark).stream(ticks, time="timestamp", name="ticks")
    with pytest.raises(UnavailableError, match="preview: cannot read a streaming DataFrame"):
        stream.preview()
    with pytest.raises(UnavailableError, match="to_arrow: needs input that ends; got stream ticks"):
        stream.to_arrow()


def test_all_rows_of_what_only_spark_knows(spark: SparkSession) -> None:
    rides = tg.Session(spark).stream(ROWS, name="rides")
    sounds = rides.select(sound=call("soundex", "route"))
    assert sounds.to_polars()["sound"].to_list() == ["R163", "R163", "A500"]


def test_having_over_keys_by_spark(spark: SparkSession) -> None:
    rides = tg.Session(spark).stream(ROWS, name="rides")
    counts = rides.window("1 hour").group_by("route").agg(n=count())
    kept = counts.having(expr("route RLIKE '^R.*t$'"))
    assert [r["route"] for r in kept.preview().to_pylist()] == ["Robert", "Rupert"]


def test_the_first_rows_on_spark(spark: SparkSession) -> None:
    rides = tg.Session(spark).stream(ROWS, name="rides")
    sink = tg.sink.memory()
    assert rides.limit(2).start(sink=sink, batch_rows=1, instances=2).wait(120).finished
    assert sink.table().column("route").to_pylist() == ["Robert", "Rupert"]


def test_the_first_rows_of_what_only_spark_knows(spark: SparkSession) -> None:
    session = tg.Session(spark)
    rides = session.stream(ROWS, name="rides")
    first = session.sql("SELECT soundex(route) AS sound, fare FROM rides LIMIT 2", rides=rides)
    assert first.schema.field("sound").type == pa.string()
    assert [r["sound"] for r in first.preview().to_pylist()] == ["R163", "R163"]
    sink = tg.sink.memory()
    assert first.start(sink=sink, batch_rows=1, instances=2).wait(120).finished
    assert sink.table().column("sound").to_pylist() == ["R163", "R163"]
    counted = session.sql(
        "SELECT sound, COUNT(*) AS n FROM (SELECT soundex(route) AS sound FROM rides LIMIT 2) "
        "[RANGE 1 HOUR] GROUP BY sound",
        rides=rides,
    )
    assert [(r["sound"], r["n"]) for r in counted.preview().to_pylist()] == [("R163", 2)]
