"""Previews, LIMIT and HAVING where only Spark knows a function."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

import tidegate as tg
from tidegate import call, count, expr

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
