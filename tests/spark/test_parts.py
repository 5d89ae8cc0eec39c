"""A large output is merged and written by tasks, whatever the operator: the same rows, in files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.driver.test_join_state import BANDS, STREAMS
from tidegate.driver.options import RunOptions
from tidegate.execute.spark import plain as spark_plain
from tidegate.query.output import Output
from tidegate.session.launch import prepare
from tidegate.session.place import Place
from tidegate.session.planning import plan_for
from tidegate.session.script import streams_of
from tidegate.sink.files import FileSink
from tidegate.sql.bind import bind
from tidegate.sql.script import read_script

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TAXI = "CREATE STREAM r FROM 'generator:taxi?rows=12000&rate=400' TIME dropoff_time;"
QUERIES = {
    "join": STREAMS.format(rows=6_000, rate=1_000, domain=10_000)
    + BANDS.replace("10 AND", "300 AND").replace("+ 10", "+ 300"),
    "stateless": f"{TAXI} SELECT route, fare FROM r WHERE fare > 1",
    "windows": f"{TAXI} SELECT route, COUNT(*) AS n FROM r [RANGE 10 SECONDS SLIDE 1 SECOND] "
    "GROUP BY route HAVING n >= 1 ORDER BY n DESC",
    "tuples": f"{TAXI} SELECT route, SUM(fare) AS s FROM r [ROWS 2 SLIDE 1] GROUP BY route",
}


def outputs(name: str) -> list[Output]:
    script = read_script(QUERIES[name])
    return list(bind(script, streams_of(script)))


def output(
    outputs: list[Output], place: Place, folder: Path, instances: int
) -> tuple[pa.Table, list[str]]:
    """The rows of all files in the order of their names, and the names of the second batch's."""
    plan = plan_for(outputs, place)
    options = RunOptions(instances=instances, batch_rows=5_000)
    sinks = {None: FileSink(folder / "out")}
    loop = prepare(plan, place, sinks, options, str(folder / "checkpoint"))
    summary = loop.run()
    files = sorted((folder / "out").glob("batch=*/part-*.parquet"))
    rows = pa.concat_tables([pq.read_table(f, partitioning=None) for f in files])
    assert summary.counters["rows_out"] == rows.num_rows
    assert not (folder / "checkpoint" / "exchange").exists()
    return rows, [f.name for f in files if f.parent.name == "batch=00000001"]


@pytest.mark.parametrize("exchange", ["shared", "shuffle"])
@pytest.mark.parametrize("name", QUERIES)
def test_tasks_write_the_rows_that_one_process_writes(
    name: str, exchange: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, one = output(outputs(name), Place("none"), tmp_path / "whole", 1)
    assert whole.num_rows > 5_000
    assert one == ["part-00000.parquet"]
    monkeypatch.setattr(spark_plain, "LARGE_ROWS", 500)
    monkeypatch.setattr(spark_plain, "PART_ROWS", 1_000)
    place = Place(session=spark, exchange=exchange)
    parts, several = output(outputs(name), place, tmp_path / exchange, 3)
    assert len(several) > 1
    assert parts.equals(whole)
