"""Shedding behind a prefix that only Spark SQL can evaluate: the rows of one process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tidegate as tg
from tests.spark.test_graphs_on_spark import ROWS, stream
from tidegate.query.stream import Stream
from tidegate.sink.memory import MemorySink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run(of: Stream, by: str, folder: Path, **options: Any) -> tuple[list[Any], int]:
    """The rows, and how many tuples were shed."""
    windows = of.window("3 seconds", slide="1 second").group_by("k")
    query, sink = windows.agg(n=tg.count(), v=tg.mean("v")).shed(0.9, by=by), MemorySink()
    summary = query.start(sink=sink, checkpoint=folder, instances=2, **options).wait()
    return sink.table().to_pylist(), summary.as_dict()["rows_shed"]


@pytest.mark.parametrize("by", ["concept", "concept total", "uniform"])
def test_what_is_shed_is_the_same_where_spark_sql_comes_first(
    spark: SparkSession, tmp_path: Path, by: str
) -> None:
    expected, shed = run(stream(tg.Session(master="none")), by, tmp_path / "here")
    assert len(expected) > 20
    assert shed > ROWS // 2
    every = tg.call("length", tg.call("md5", tg.col("k").cast("string").cast("binary"))) > 0
    there = stream(tg.Session(spark)).where(every)
    assert "Spark SQL in the JVM" in there.window("1 second").agg(n=tg.count()).explain()
    rows, shed_there = run(there, by, tmp_path / "there", batch_rows=ROWS // 3)
    assert rows == expected
    assert shed_there == shed
