"""Tasks of Spark read their input from an S3 server and write results and state there.

They have the server from the URI, and the keys from the environment that Spark gives its workers.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.s3.server import KEYS, Server
from tidegate.cli.main import invoke
from tidegate.driver.options import RunOptions
from tidegate.driver.pipeline import StepSeen
from tidegate.execute import task_runner
from tidegate.session.launch import prepare
from tidegate.session.place import Place
from tidegate.session.planning import plan_for
from tidegate.session.script import streams_of
from tidegate.sink.registry import of
from tidegate.sql.bind import bind
from tidegate.sql.script import read_script

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERY = """
CREATE STREAM r FROM '{uri}' TIME dropoff_time;
SELECT route, COUNT(*) AS n FROM r [RANGE 10 SECONDS SLIDE 1 SECOND] GROUP BY route;
"""


class Died(Exception):
    """Instead of the end of the driver."""


def dies(step: str, batch: int) -> None:
    if (step, batch) == ("after commit", 1):
        raise Died


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path / "s3")
    yield made
    made.close()


def run(
    place: Place, uri: str, out: str, checkpoint: str, observer: StepSeen | None = None
) -> None:
    script = read_script(QUERY.replace("{uri}", uri))
    plan = plan_for(list(bind(script, streams_of(script))), place)
    options = RunOptions(instances=2, batch_rows=4_000)
    prepare(plan, place, {None: of(out)}, options, checkpoint, observer=observer).run()


def rows(folder: Path) -> pa.Table:
    files = sorted(folder.glob("batch=*/part-*.parquet"))
    return pa.concat_tables([pq.read_table(f, partitioning=None) for f in files])


def test_files_of_a_run_in_one_process(
    server: Server, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = server.folder / "in"
    folder.mkdir()
    for number in range(2):
        made = ("taxi", "--rows", "4000", "--param", "rate=400", "--param", f"seed={number}")
        assert invoke(["generate", *made, "--out", str(folder / f"{number}.parquet")]) == 0
    run(Place("none"), str(folder), str(tmp_path / "out"), str(tmp_path / "checkpoint"))
    monkeypatch.setattr(task_runner, "LARGE_ROWS", 500)
    monkeypatch.setattr(task_runner, "PART_ROWS", 1_000)
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
        # What spark.executorEnv sets; the session was started before.
        monkeypatch.setitem(spark.sparkContext.environment, name, value)
    uri, out, beside = [server.uri(name) for name in ("in", "out", "beside")]
    place, checkpoint = Place(session=spark), str(tmp_path / "on-spark")
    with pytest.raises(Died):
        run(place, uri, out, checkpoint, dies)
    assert len(list((server.folder / "out" / "_staging").rglob("*part*"))) > 1
    run(place, uri, out, checkpoint)
    assert rows(server.folder / "out").equals(rows(tmp_path / "out"))
    assert len(list((server.folder / "out" / "batch=00000001").iterdir())) > 1
    assert not (server.folder / "out" / "_staging").exists()
    run(place, uri, beside, beside.replace("/beside", "/state"))
    assert rows(server.folder / "beside").equals(rows(tmp_path / "out"))
    kept = [path.read_text() for path in (server.folder / "state" / "manifest").iterdir()]
    assert kept
    assert not [text for text in kept if KEYS["AWS_SECRET_ACCESS_KEY"] in text]
