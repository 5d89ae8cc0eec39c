"""The page for people who know Spark: both programs run, and say what the page says they say."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from tests.docs.test_readme import write_rides
from tests.docs.test_spark_page import program

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Rows = dict[tuple[datetime, str], tuple[float, int]]


def tidegate_rows(folder: str) -> Rows:
    table = pq.read_table(sorted(Path(folder).glob("batch=*/*.parquet")), partitioning=None)
    return {(r["window_end"], r["route"]): (r["fare"], r["n"]) for r in table.to_pylist()}


def spark_rows(spark: SparkSession, folder: Path) -> Rows:
    frame = spark.read.parquet(f"{folder}/spark_out").selectExpr(
        "unix_micros(window.end) AS end", "route", "fare", "n"
    )
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return {
        (epoch + timedelta(microseconds=r["end"]), r["route"]): (r["fare"], r["n"])
        for r in frame.collect()
    }


def test_both_programs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rides").mkdir()
    write_rides("rides/a.parquet", rows=3_000)
    newest = max(pq.read_table("rides/a.parquet").column("dropoff_time").to_pylist())
    # Relative paths are those of the JVM, which was started elsewhere.
    of_spark = program("Spark").replace('"rides"', f'"{tmp_path}/rides"')
    of_spark = of_spark.replace('"spark_', f'"{tmp_path}/spark_')
    names: dict[str, Any] = {"spark": spark}
    exec(compile(of_spark, "spark.md", "exec"), names)
    exec(compile(program("Tidegate"), "spark.md", "exec"), names)
    theirs, ours = spark_rows(spark, tmp_path), tidegate_rows("out")
    assert len(theirs) > 100
    for key, (fare, n) in theirs.items():
        assert ours[key] == (pytest.approx(fare, rel=1e-12), n)
    assert {end for end, _ in ours.keys() - theirs.keys()} == {
        end for end, _ in ours if end > newest - timedelta(seconds=30)
    }
    exec(compile(program("rescale"), "spark.md", "exec"), names)
    assert {k: n for k, (_, n) in tidegate_rows("more").items()} == {
        k: n for k, (_, n) in ours.items()
    }
