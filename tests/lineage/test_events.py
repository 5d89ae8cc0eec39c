"""The events of whole runs, in a file: how they begin, go on and end, and what they name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tidegate as tg
from tests.lineage.published import check
from tidegate.cli.main import invoke
from tidegate.driver.lineage.options import LineageOptions
from tidegate.driver.options import RunOptions
from tidegate.errors import BrokenOffError
from tidegate.session.launch import prepare
from tidegate.session.place import Place
from tidegate.session.planning import plan_for
from tidegate.session.script import streams_of
from tidegate.sink.registry import of
from tidegate.sql.bind import bind
from tidegate.sql.script import read_script

SQL = """
CREATE STREAM rides FROM 'in/*.csv' TIME ts;
CREATE TABLE zones FROM 'zones.csv';
INSERT INTO busy SELECT rides.zone, COUNT(*) AS n FROM rides [RANGE 10 SECONDS] GROUP BY zone;
INSERT INTO named SELECT rides.zone, zones.name FROM rides JOIN zones ON rides.zone = zones.id
"""
NOW = "run q.sql --master none --available-now --out o --checkpoint c --lineage l.jsonl".split()
PARENT = "airflow/prod/rides.count/0198c0de-0000-7000-8000-000000000001"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    Path("q.sql").write_text(SQL)
    Path("zones.csv").write_text("id,name\na,north\n")
    arrive("1", 1, 5, 12)
    return tmp_path


def arrive(name: str, *seconds: int) -> None:
    lines = [f"2024-01-01T00:00:{second:02d}Z,a" for second in seconds]
    Path("in", f"{name}.csv").write_text("\n".join(["ts,zone", *lines]) + "\n")


def told() -> list[dict[str, Any]]:
    """All events of the file, each as the specification has it."""
    events = [json.loads(line) for line in Path("l.jsonl").read_text().splitlines()]
    assert [check(event).run.runId for event in events]
    return events


def states(events: list[dict[str, Any]]) -> list[str]:
    return [event["eventType"] for event in events]


def test_a_run_tells_what_it_reads_and_writes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENLINEAGE_NAMESPACE", "prod")
    monkeypatch.setenv("OPENLINEAGE_PARENT_ID", PARENT)
    assert invoke(NOW) == 0
    start, complete = told()
    assert states([start, complete]) == ["START", "COMPLETE"]
    assert (complete["job"]["namespace"], complete["job"]["name"]) == ("prod", "q")
    assert complete["job"]["facets"]["sql"]["query"] == SQL
    assert complete["job"]["facets"]["jobType"]["processingType"] == "BATCH"
    parent = complete["run"]["facets"]["parent"]
    assert (parent["job"]["namespace"], parent["job"]["name"]) == ("airflow/prod", "rides.count")
    assert parent["run"]["runId"] == PARENT.rpartition("/")[2]
    named = [(d["namespace"], d["name"]) for d in complete["inputs"]]
    assert named == [("file", str(folder / "in")), ("file", str(folder / "zones.csv"))]
    columns = complete["inputs"][0]["facets"]["schema"]["fields"]
    assert columns == [{"name": "ts", "type": "timestamp"}, {"name": "zone", "type": "string"}]
    outputs = {d["name"]: d["outputFacets"]["outputStatistics"] for d in complete["outputs"]}
    assert list(outputs) == [str(folder / "o/busy"), str(folder / "o/named")]
    for place, statistics in outputs.items():
        files = list(Path(place).glob("batch=*/*.parquet"))
        assert statistics["rowCount"] == sum(pq.ParquetFile(f).metadata.num_rows for f in files)
        assert statistics["size"] == sum(f.stat().st_size for f in files)
    assert start["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] == 0


def test_each_run_of_a_checkpoint_has_its_own_id_and_names_the_one_before() -> None:
    for name, seconds in ("1", (1, 5, 12)), ("2", (13, 25)), ("3", (26, 31)):
        arrive(name, *seconds)
        assert invoke(NOW) == 0
    events = told()
    assert states(events) == ["START", "COMPLETE"] * 3
    runs = [event["run"]["runId"] for event in events[::2]]
    assert [event["run"]["runId"] for event in events[1::2]] == runs
    assert len(set(runs)) == 3
    facets = [event["run"]["facets"]["tidegate_checkpoint"] for event in events[::2]]
    assert [f.get("previousRunId") for f in facets] == [None, runs[0], runs[1]]
    owners = [f["owner"] for f in facets]
    assert owners == sorted(set(owners))


def test_a_run_that_goes_on_tells_so_not_more_often_than_asked() -> None:
    every_batch = [*NOW, "--batch-rows", "1", "--lineage-every", "0 seconds"]
    assert invoke(every_batch) == 0
    events = told()
    between = states(events)[1:-1]
    assert len(between) > 1
    assert set(between) == {"RUNNING"}
    rows = [e["outputs"][1]["outputFacets"]["outputStatistics"]["rowCount"] for e in events]
    assert rows == sorted(rows)
    Path("l.jsonl").unlink()
    arrive("2", 13, 25)
    assert invoke([*NOW, "--batch-rows", "1"]) == 0
    assert states(told()) == ["START", "COMPLETE"]


def test_a_finished_checkpoint_has_no_more_runs_to_tell_of() -> None:
    whole = [word for word in NOW if word != "--available-now"]
    assert [invoke(whole), invoke(whole)] == [0, 0]
    assert states(told()) == ["START", "COMPLETE"]


def test_a_query_of_a_program_that_is_stopped_ends_with_abort(folder: Path) -> None:
    session = tg.Session(master="none")
    schema = pa.schema({"ts": pa.timestamp("us", "UTC"), "v": pa.int64()})
    source = tg.MemorySource(time="ts", schema=schema)
    query = session.stream(source, time="ts").start(
        sink="o2", checkpoint="c2", follow=True, lineage=folder / "l.jsonl"
    )
    query.stop()
    start, abort = told()
    assert states([start, abort]) == ["START", "ABORT"]
    assert abort["inputs"] == []
    assert "." in abort["job"]["name"]  # the program, and what the query makes
    assert abort["job"]["facets"]["jobType"]["processingType"] == "STREAMING"
    assert query.status()["lineage"] == {"sent": 2, "lost": 0}


@pytest.mark.parametrize("left", [False, True], ids=["in time", "given up"])
def test_a_batch_that_is_aborted_is_no_failure(left: bool) -> None:
    Path("q.sql").write_text("CREATE STREAM rides FROM 'in' TIME ts; SELECT zone FROM rides")
    script = read_script(Path("q.sql").read_text())
    place = Place("none")

    def abort(step: str, batch: int) -> None:
        loop.abort()
        if left:  # the process ends without waiting for the batch
            loop.abandon()
        raise BrokenOffError("batch 0", "was aborted")

    loop = prepare(
        plan_for(list(bind(script, streams_of(script))), place),
        place,
        {None: of("o")},
        RunOptions(),
        "c",
        observer=abort,
        lineage=LineageOptions("l.jsonl", job="q"),
    )
    with pytest.raises(BrokenOffError):
        loop.run()
    assert states(told()) == ["START", "ABORT"]


def test_a_failure_is_told_with_its_message() -> None:
    Path("q.sql").write_text(
        "CREATE STREAM rides FROM 'in' TIME ts; SELECT CAST(zone AS INT) AS n FROM rides"
    )
    assert invoke(NOW) == 1
    start, fail = told()
    assert states([start, fail]) == ["START", "FAIL"]
    assert "errorMessage" not in start["run"]["facets"]
    assert "'a'" in fail["run"]["facets"]["errorMessage"]["message"]


def test_tables_of_a_lakehouse_are_outputs_as_well(folder: Path) -> None:
    """Each output has one of its own, as a query that reads it would name it."""
    words = "run q.sql --master none --out delta:lake --checkpoint c --lineage l.jsonl".split()
    assert invoke(words) == 0
    _, complete = told()
    outputs = {d["name"]: d["outputFacets"]["outputStatistics"] for d in complete["outputs"]}
    assert list(outputs) == [str(folder / "lake/busy"), str(folder / "lake/named")]
    assert outputs[str(folder / "lake/named")]["rowCount"] == 3
