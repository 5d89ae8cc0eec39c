"""Streams joined to tables on Spark: in tasks that stay, by a shuffle, and after Spark SQL."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import tidegate as tg
from tidegate.driver.options import RunOptions
from tidegate.query.definition import StreamDef
from tidegate.query.surface.table import Table
from tidegate.query.table import TableDef
from tidegate.session.launch import prepare
from tidegate.session.place import Place
from tidegate.session.planning import plan_for
from tidegate.sink.memory import MemorySink
from tidegate.source.memory import MemorySource
from tidegate.sql.bind import bind
from tidegate.sql.script import read_script

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RIDES = pa.table(
    {
        "ts": pa.array([n * 500_000 for n in range(60)], pa.int64()).cast(
            pa.timestamp("us", "UTC")
        ),
        "zone": [None if n % 11 == 0 else n % 7 for n in range(60)],
        "name": [("Ann", "Anne", "Bob", "Robert", "Rupert")[n % 5] for n in range(60)],
    }
)
ZONES = pa.table(
    {"id": [0, 2, 2, 5, 6], "sound": ["A500", "B100", "A500", "R163", None], "w": [1, 2, 3, 4, 5]}
)
TABLE = "SELECT r.name, z.w FROM rides AS r LEFT JOIN zones AS z ON r.zone = z.id WHERE r.zone <> 5"
GROUPED = (
    "SELECT z.w, COUNT(*) AS n, LAST(r.name) AS last FROM rides AS r [RANGE 4 SECONDS] "
    "JOIN zones AS z ON r.zone = z.id GROUP BY z.w"
)
BY_SPARK = (
    "SELECT r.name, SOUNDEX(r.name) AS s, z.w FROM rides AS r "
    "JOIN zones AS z ON SOUNDEX(r.name) = z.sound AND r.zone < z.id"
)
"""No kernel knows SOUNDEX: Spark computes it before the tuples are joined to the table."""


def rows(session: tg.Session, sql: str, zones: Any = ZONES, **options: Any) -> list[Any]:
    table = zones if isinstance(zones, Table) else session.table(zones, name="zones")
    rides = session.stream(RIDES, time="ts", name="rides")
    sink = tg.sink.memory()
    session.sql(sql, rides=rides, zones=table).start(sink=sink, batch_rows=17, **options).wait()
    found: list[Any] = sink.table().to_pylist()
    return found


@pytest.mark.parametrize("exchange", ["auto", "shuffle"])
@pytest.mark.parametrize("sql", [TABLE, GROUPED], ids=["rows", "windows"])
def test_the_same_rows_as_without_spark(spark: SparkSession, sql: str, exchange: str) -> None:
    wanted = rows(tg.Session(master="none"), sql)
    assert len(wanted) > 10
    assert rows(tg.Session(spark), sql, exchange=exchange, instances=2) == wanted


def test_what_spark_computes_is_joined_after_it(spark: SparkSession) -> None:
    sounds = {"Ann": "A500", "Anne": "A500", "Bob": "B100", "Robert": "R163", "Rupert": "R163"}
    wanted = [
        (ride["name"], sounds[ride["name"]], zone["w"])
        for ride in RIDES.to_pylist()
        for zone in ZONES.to_pylist()
        if sounds[ride["name"]] == zone["sound"]
        and ride["zone"] is not None
        and ride["zone"] < zone["id"]
    ]
    found = rows(tg.Session(spark), BY_SPARK)
    assert [(row["name"], row["s"], row["w"]) for row in found] == wanted


def test_a_part_of_a_table_that_only_spark_knows_is_refused(spark: SparkSession) -> None:
    with pytest.raises(tg.QueryError, match="Spark SQL is asked before a table is joined"):
        rows(tg.Session(spark), BY_SPARK.replace("= z.sound", "= SOUNDEX(z.sound)"))


def test_dataframes_and_tables_of_the_catalog(spark: SparkSession) -> None:
    session, wanted = tg.Session(spark), rows(tg.Session(master="none"), TABLE)
    frame = spark.createDataFrame(ZONES.to_pandas())
    frame.createOrReplaceTempView("zones_of_spark")
    assert rows(session, TABLE, frame) == wanted
    assert rows(session, TABLE, session.table("zones_of_spark", name="zones")) == wanted
    rides = session.stream(RIDES, time="ts", name="rides")
    sink = tg.sink.memory()
    text = f"CREATE TABLE zones FROM TABLE zones_of_spark; {TABLE}"
    session.sql(text, rides=rides).start(sink=sink).wait()
    assert sink.table().to_pylist() == wanted


def test_a_large_table_is_read_by_key_in_workers(spark: SparkSession, tmp_path: Path) -> None:
    rides = StreamDef("rides", ("memory:rides",), "ts", 0, None, RIDES.schema)
    given = TableDef("zones", (), ZONES.schema, given=lambda: ZONES)
    outputs = bind(read_script(GROUPED), {"rides": rides, "zones": given})
    source = MemorySource(RIDES, time="ts", id="rides")
    source.end()
    sink, place = MemorySink(), Place(session=spark)
    options = RunOptions(instances=2, buckets=8, batch_rows=17, whole_table_bytes=8)
    loop = prepare(
        plan_for(outputs, place),
        place,
        {None: sink},
        options,
        str(tmp_path),
        {"memory:rides": source},
    )
    while loop.step() is not None:
        pass
    manifest = loop.manifest
    loop.close()
    assert "by_key" in manifest.tables["zones"][0]
    assert sink.table().to_pylist() == rows(tg.Session(master="none"), GROUPED)
