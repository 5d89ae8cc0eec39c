"""Queries over Spark Connect: a real server, and clients that are processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tidegate as tg
from tidegate.execute.spark.session.master import check_answers
from tidegate.session.place import Place

QUERY = """
CREATE STREAM rides FROM 'in' TIME ts;
SELECT route, COUNT(*) AS n, SUM(fare) AS fare FROM rides [RANGE 10 SECONDS] GROUP BY route;
"""

PROGRAM = """
import sys, threading
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf
import tidegate as tg

spark = SparkSession.builder.remote(sys.argv[1]).create()
session = tg.Session(spark)
assert "sc://127.0.0.1" in repr(session), session
try:
    session.stream(spark.readStream.format("rate").load(), time="timestamp")
except tg.UnavailableError as error:
    print("refused:", error)
rides = session.stream("in", time="ts")
sound = tg.call("soundex", "route")
print("type:", rides.with_columns(x=sound).schema.field("x").type)
spark.udf.register("dice", udf(lambda x: x, "bigint").asNondeterministic())
try:
    rides.with_columns(x=tg.expr("dice(fare)")).schema
except tg.QueryError as error:
    print("unstable:", error)
held = session.stream(spark.createDataFrame([(1, "2024-01-01T00:00:00Z")], "v int, t string")
                      .selectExpr("v", "CAST(t AS TIMESTAMP) AS ts"))
memory = tg.sink.memory()
held.start(sink=memory, instances=1).wait(120)
print("frame:", memory.table().column("v").to_pylist())
found = threading.Event()
sink = tg.sink.call(lambda table, batch: found.set())
query = rides.with_columns(x=sound).start(sink=sink, checkpoint="live", follow=True, instances=2)
assert found.wait(200), query.status()
query.stop()
print("followed:", query.status()["failure"])
spark.stop()
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("connect")
    (folder / "in").mkdir()
    times = [1_000_000 * second for second in range(60)]
    rows = {
        "ts": pa.array(times, pa.timestamp("us", "UTC")),
        "route": [f"r{n % 5}" for n in range(60)],
        "fare": list(range(60)),
    }
    pq.write_table(pa.table(rows), folder / "in" / "a.parquet")
    (folder / "query.sql").write_text(QUERY)
    return folder


def run(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        cwd=place,
        capture_output=True,
        text=True,
        timeout=280,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )


def rows(folder: Path) -> list[dict[str, object]]:
    files = sorted(folder.glob("batch=*/*.parquet"))
    return [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]


def test_a_run_of_what_is_available_and_one_to_the_end(connect_url: str, place: Path) -> None:
    command = ["-m", "tidegate", "run", "query.sql", "--instances", "2", "--batch-rows", "25"]
    same = run(place, *command, "--master", "none", "--out", "same")
    assert same.returncode == 0, same.stderr
    there = [*command, "--master", connect_url, "--out", "out", "--checkpoint", "ckpt"]
    first = run(place, *there, "--available-now")
    assert first.returncode == 0, first.stderr
    assert 0 < len(rows(place / "out")) < len(rows(place / "same"))
    second = run(place, *there, "--summary", "summary.json")
    assert second.returncode == 0, second.stderr
    assert rows(place / "out") == rows(place / "same")
    assert json.loads((place / "summary.json").read_text())["rows_in"] == 60


def test_a_program_with_a_session_of_the_client(connect_url: str, place: Path) -> None:
    done = run(place, "-c", PROGRAM, connect_url)
    assert done.returncode == 0, done.stderr
    told = dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)
    assert "a streaming DataFrame needs Spark in this process" in told["refused"]
    assert told["type"] == "string"
    assert "the same value whenever a batch is replayed; got DICE" in told["unstable"]
    assert told["frame"] == "[1]"
    assert told["followed"] == "None"


def test_what_cannot_be_there() -> None:
    for option, message in (
        ({"exchange": "shared"}, "shared needs all tasks on one host"),
        ({"execution": "resident"}, "resident needs tasks that this process can reach"),
        ({"conf": {"spark.ui.enabled": "true"}}, "Set it where the server is started."),
    ):
        with pytest.raises(tg.OptionError, match=message):
            Place("sc://there:15002", **option)


def test_nobody_answers() -> None:
    with pytest.raises(tg.OptionError, match=r"sc://127.0.0.1:9 .*start-connect-server.sh"):
        check_answers("sc://127.0.0.1:9")
