"""A large output is merged and written by tasks, whatever the operator: the same rows, in files."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.driver.test_join_state import BANDS, STREAMS
from tidegate.batch import BatchId
from tidegate.driver.loop import Loop
from tidegate.driver.options import RunOptions
from tidegate.driver.pipeline import StepSeen
from tidegate.errors import SinkError
from tidegate.execute import task_runner
from tidegate.query.output import Output
from tidegate.session.launch import prepare
from tidegate.session.place import Place
from tidegate.session.planning import plan_for
from tidegate.session.script import streams_of
from tidegate.sink.folder.files import FileSink
from tidegate.sink.folder.part import FilePartWriter
from tidegate.sql.bind import bind
from tidegate.sql.script import read_script
from tidegate.state.store import Store

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


class Died(Exception):
    """Instead of the end of the driver."""


def dies(step: str, batch: int) -> None:
    if (step, batch) == ("after commit", 1):
        raise Died


def loop_of(
    outputs: list[Output],
    place: Place,
    folder: Path,
    instances: int,
    observer: StepSeen | None = None,
) -> Loop:
    plan = plan_for(outputs, place)
    options = RunOptions(instances=instances, batch_rows=5_000)
    sinks = {None: FileSink(folder / "out")}
    return prepare(plan, place, sinks, options, str(folder / "checkpoint"), observer=observer)


def output(
    outputs: list[Output], place: Place, folder: Path, instances: int
) -> tuple[pa.Table, list[str]]:
    """The rows of all files in the order of their names, and the names of the second batch's."""
    summary = loop_of(outputs, place, folder, instances).run()
    files = sorted((folder / "out").glob("batch=*/part-*.parquet"))
    rows = pa.concat_tables([pq.read_table(f, partitioning=None) for f in files])
    assert summary.counters["rows_out"] == rows.num_rows
    assert not (folder / "checkpoint" / "exchange").exists()
    return rows, [f.name for f in files if f.parent.name == "batch=00000001"]


def cut_finely(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tasks write also what is small."""
    monkeypatch.setattr(task_runner, "LARGE_ROWS", 500)
    monkeypatch.setattr(task_runner, "PART_ROWS", 1_000)


@pytest.mark.parametrize("exchange", ["shared", "shuffle"])
@pytest.mark.parametrize("name", QUERIES)
def test_tasks_write_the_rows_that_one_process_writes(
    name: str, exchange: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, one = output(outputs(name), Place("none"), tmp_path / "whole", 1)
    assert whole.num_rows > 5_000
    assert one == ["part-00000.parquet"]
    cut_finely(monkeypatch)
    place = Place(session=spark, exchange=exchange)
    parts, several = output(outputs(name), place, tmp_path / exchange, 3)
    assert len(several) > 1
    assert parts.equals(whole)


def test_parts_of_tasks_are_published_by_the_receipts_in_the_manifest(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = outputs("join")
    whole, _ = output(asked, Place("none"), tmp_path / "whole", 1)
    cut_finely(monkeypatch)
    place, folder = Place(session=spark), tmp_path / "parts"
    with pytest.raises(Died):
        loop_of(asked, place, folder, 3, dies).run()
    manifest = Store.open(folder / "checkpoint").latest()
    assert manifest is not None
    receipts = manifest.outputs[""]
    (staged,) = (folder / "out/_staging").glob("batch=00000001.*")
    assert len(receipts) > 1
    for receipt in receipts:
        data = (staged / receipt["name"]).read_bytes()
        assert (receipt["bytes"], receipt["checksum"]) == (len(data), zlib.crc32(data))
    (staged / "part-00099.parquet").write_bytes(b"of a task that outlived another driver")
    found, names = output(asked, place, folder, 2)
    assert names == [r["name"] for r in receipts]
    assert found.equals(whole)


def test_a_task_that_cannot_write_says_why(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_finely(monkeypatch)
    out, begin = tmp_path / "out", FileSink.begin

    def occupied(sink: FileSink, batch: BatchId) -> FilePartWriter:
        writer = begin(sink, batch)
        Path(writer.folder).rmdir()
        Path(writer.folder).write_text("in the way")
        return writer

    monkeypatch.setattr(FileSink, "begin", occupied)
    loop = loop_of(outputs("join"), Place(session=spark), tmp_path, 2)
    with pytest.raises(SinkError, match="the batch must be written before it is committed") as e:
        loop.run()
    assert e.value.__cause__ is None, "it came out of a pickle, from a task"
    assert e.value.got == "Not a directory"
    assert e.value.where == str(out / "batch=00000000")
    assert loop.manifest.batch == -1


def test_one_window_is_one_part_written_by_a_task(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All its rows have one event time, so nothing divides them; the driver does not write them."""
    script = read_script(f"{TAXI} SELECT route, COUNT(*) AS n FROM r [RANGE 1 DAY] GROUP BY route")
    asked = list(bind(script, streams_of(script)))
    whole, _ = output(asked, Place("none"), tmp_path / "whole", 1)
    monkeypatch.setattr(task_runner, "LARGE_ROWS", 10)
    merges: list[int] = []
    settled = task_runner.TaskRunner.settled

    def counted(self: Any, job: Any, path: str, outcomes: Any) -> Any:
        found = settled(self, job, path, outcomes)
        merges.append(sum(len(o.receipts or ()) for o in found))
        return found

    monkeypatch.setattr(task_runner.TaskRunner, "settled", counted)
    found, _ = output(asked, Place(session=spark), tmp_path / "one", 2)
    assert max(merges) == 1
    assert found.equals(whole)
