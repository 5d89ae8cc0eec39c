"""A large output of a join is merged and written by tasks: the same rows, in several files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.driver.test_join_state import BANDS, STREAMS
from tidegate.driver.options import RunOptions
from tidegate.execute.spark import plain as spark_plain
from tidegate.session.launch import Place, plan_for, prepare
from tidegate.session.script import streams_of
from tidegate.sink.files import FileSink
from tidegate.sql.bind import bind
from tidegate.sql.script import read_script

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WIDE = BANDS.replace("10 AND", "300 AND").replace("+ 10", "+ 300")


def output(place: Place, folder: Path, instances: int) -> tuple[pa.Table, list[str]]:
    """The rows of all files in the order of their names, and the names of the second batch's."""
    script = read_script(STREAMS.format(rows=6_000, rate=1_000, domain=10_000) + WIDE)
    plan = plan_for(bind(script, streams_of(script)), place)
    options = RunOptions(instances=instances, batch_rows=5_000)
    loop = prepare(
        plan, place, {None: FileSink(folder / "out")}, options, str(folder / "checkpoint")
    )
    summary = loop.run()
    files = sorted((folder / "out").glob("batch=*/part-*.parquet"))
    rows = pa.concat_tables([pq.read_table(f, partitioning=None) for f in files])
    assert summary.counters["rows_out"] == rows.num_rows
    assert not (folder / "checkpoint" / "exchange").exists()
    return rows, [f.name for f in files if f.parent.name == "batch=00000001"]


@pytest.mark.parametrize("exchange", ["shared", "shuffle"])
def test_tasks_write_the_rows_that_one_process_writes(
    exchange: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, one = output(Place("none"), tmp_path / "whole", 1)
    assert whole.num_rows > 20_000
    assert one == ["part-00000.parquet"]
    monkeypatch.setattr(spark_plain, "LARGE_ROWS", 1_000)
    monkeypatch.setattr(spark_plain, "PART_ROWS", 5_000)
    parts, several = output(Place(session=spark, exchange=exchange), tmp_path / exchange, 3)
    assert len(several) > 1
    assert parts.equals(whole)
