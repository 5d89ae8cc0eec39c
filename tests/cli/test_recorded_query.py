"""A checkpoint records its query: verify, replay and why need nothing else, from any folder."""

from __future__ import annotations

import io
import json
import shutil
import sys
from contextlib import chdir
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tidegate as tg
from tests.driver.scene import memory
from tidegate.cli.main import invoke
from tidegate.cli.option.option import read_query
from tidegate.cli.option.query_text import QueryText
from tidegate.driver.options import RunOptions
from tidegate.session.launch import prepare
from tidegate.session.place import Place
from tidegate.session.planning import plan_for
from tidegate.session.recorded_script import RecordedScript
from tidegate.sink.folder.files import FileSink

SELECT = "SELECT k, COUNT(*) AS n, AVG(v) AS a FROM r [RANGE 10 SECONDS] GROUP BY k"
CREATE = "CREATE STREAM r FROM 'in.csv' TIME ts"
SQL = f"{CREATE}; {SELECT};"
RUN = ("run", "--master", "none", "--out", "out", "--checkpoint", "ck", "--batch-rows", "7")


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    rows = [f"2024-01-01T00:00:{i:02d}Z,{'abc'[i % 3]},{i * 1.5}" for i in range(60)]
    Path("in.csv").write_text("\n".join(["ts,k,v", *rows]) + "\n")
    Path("q.sql").write_text(SQL)
    return folder


def told(capsys: pytest.CaptureFixture[str], code: int, *words: str) -> str:
    """What a command prints, or says where it fails."""
    capsys.readouterr()
    assert invoke(words) == code, capsys.readouterr().err
    shown = capsys.readouterr()
    return shown.out if shown.out else shown.err


def facts(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(told(capsys, code, *words, "--json"))
    return found


def test_the_checkpoint_is_enough_in_any_folder(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke([*RUN, "q.sql", "--keep", "1 hour"]) == 0
    Path("q.sql").unlink()
    (work.parent / "other").mkdir()
    for folder, checkpoint in ((work, "ck"), (work.parent / "other", "../work/ck")):
        monkeypatch.chdir(folder)
        assert told(capsys, 0, "verify", checkpoint).startswith("equal")
        span = ("--from", "2024-01-01T00:00:10Z", "--to", "2024-01-01T00:00:20Z")
        assert told(capsys, 0, "verify", checkpoint, *span).startswith("equal")
        said = told(
            capsys, 0, "replay", checkpoint, "--batch", "4", "--out", f"again-{folder.name}"
        )
        assert "rows that were committed" in said
        assert list(folder.glob(f"again-{folder.name}/batch=*"))
        tuples = facts(capsys, "why", checkpoint, "--row", "4")["tuples"]
        assert [(t["file"], t["row"]) for t in tuples] == [("in.csv", n) for n in (10, 13, 16, 19)]
        assert Path.cwd() == folder


def test_queries_that_are_no_files_are_recorded_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke([*RUN, "-e", SQL]) == 0
    assert told(capsys, 0, "verify", "ck").startswith("equal")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(SQL.encode())))
    places = ["--out", "out-2", "--checkpoint", "ck-2"]
    assert invoke(["run", "-", "--master", "none", *places]) == 0
    assert told(capsys, 0, "verify", "ck-2").startswith("equal")


def test_options_are_recorded_and_those_that_are_given_win(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = Path("in.csv").read_text()
    Path("data.csv").write_text(text.replace("ts,", "at,"))
    Path("other.csv").write_text(text.replace("ts,", "at,").replace("24Z,a", "24Z,b"))
    options = ["--stream", "r=data.csv", "--time", "r=at", "--partitioner", "pk?d=2"]
    assert invoke([*RUN, "-e", SELECT, *options, "--strategy", "operator-cloud"]) == 0
    assert told(capsys, 0, "verify", "ck", "--retained").startswith("equal")
    monkeypatch.chdir(work.parent)
    found = facts(capsys, "verify", "work/ck", "--stream", "R=work/other.csv", code=1)
    assert found["changed"] == ["input"]
    assert facts(capsys, "verify", "work/ck", "--time", "r=at")["equal"]
    assert "must name a stream" in told(capsys, 2, "verify", "work/ck", "--time", "x=at")


def test_a_query_that_is_given_wins(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke([*RUN, "q.sql"]) == 0
    assert facts(capsys, "verify", "ck", "q.sql")["equal"]
    other = SQL.replace("AVG(v)", "MAX(v)")
    assert facts(capsys, "verify", "ck", "-e", other, code=1)["changed"] == ["code"]
    assert "the query that made it" in told(capsys, 2, "replay", "ck", "-e", other, "--batch", "8")


def test_each_batch_has_the_query_that_made_it(capsys: pytest.CaptureFixture[str]) -> None:
    more = ["--keep", "1 hour", "--available-now"]
    assert invoke([*RUN, "q.sql", *more]) == 0
    rows = "".join(f"2024-01-01T00:01:{i:02d}Z,a,1\n" for i in range(40))
    with Path("in.csv").open("a") as file:
        file.write(rows)
    assert invoke([*RUN, "-e", f"{CREATE}; {SELECT} HAVING COUNT(*) > 3;", *more]) == 0
    assert len(list(Path("ck/script").iterdir())) == 2
    assert facts(capsys, "verify", "ck")["batches"]["first"] == 9
    for batch in (3, 8, 9, 12):
        assert facts(capsys, "replay", "ck", "--batch", str(batch))["equal"]


def test_a_start_that_fails_before_its_first_batch_starts_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    place = Place("none")
    plan = plan_for(read_query(QueryText.of_file("q.sql"), (), ()), place)
    for _ in range(2):
        loop = prepare(
            plan, place, {None: FileSink("out")}, RunOptions(), "ck", script=RecordedScript(SQL)
        )

        def fail() -> None:
            raise KeyboardInterrupt

        loop.on_run(fail)
        with pytest.raises(KeyboardInterrupt):
            loop.run()
        assert len(list(Path("ck/script").iterdir())) == 1
    assert "must be a checkpoint with batches" in told(capsys, 2, "verify", "ck")
    assert invoke([*RUN, "q.sql"]) == 0
    assert told(capsys, 0, "verify", "ck").startswith("equal")


def test_the_record_is_none_of_the_state(capsys: pytest.CaptureFixture[str]) -> None:
    """It may be damaged or gone: the run goes on, and a command says what to give."""
    assert invoke([*RUN, "q.sql", "--available-now"]) == 0
    (record,) = Path("ck/script").iterdir()
    record.write_text("{}")
    said = told(capsys, 1, "verify", "ck")
    assert f"{record.name}: must be as it was written" in said
    assert "Give QUERY.sql" in said
    shutil.rmtree("ck/script")
    for words in (["verify", "ck"], ["replay", "ck", "--batch", "8"], ["why", "ck", "--row", "0"]):
        said = told(capsys, 2, *words)
        assert "must have recorded the query" in said
        assert "an earlier version recorded no queries. Give QUERY.sql beside" in said
        assert invoke([*words, "q.sql"]) == 0
    record.parent.mkdir()
    record.write_text("{}")
    assert invoke([*RUN, "q.sql", "--available-now"]) == 0
    assert told(capsys, 0, "verify", "ck").startswith("equal")


def test_a_run_that_adds_nothing_keeps_the_record(work: Path) -> None:
    """Started again when it has finished, from another folder; or by a program, with nodes."""
    assert invoke([*RUN, "q.sql"]) == 0
    (record,) = Path("ck/script").iterdir()
    before = record.read_bytes()
    again = [word.replace("out", "work/out") if word == "out" else word for word in RUN]
    again = ["work/ck" if word == "ck" else word for word in again]
    with chdir(work.parent):
        shutil.copy("work/in.csv", "in.csv")
        assert invoke([*again, "work/q.sql", "--stream", "r=work/in.csv"]) in (0, 2)
    rides = tg.Session(master="none").stream("in.csv", time="ts", name="r")
    aggregate = rides.window("10 seconds").group_by("k").agg(n=tg.count(), a=tg.mean("v"))
    aggregate.start(sink="out", checkpoint="ck", batch_rows=7).wait()
    assert record.read_bytes() == before


def test_a_password_is_never_recorded(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not even in a script whose URI an option replaces."""
    for kind in (
        "STREAM r FROM 'kafka://me:hunter2@host:1/t' TIME ts",
        "TABLE t FROM 's3://k:hunter2@b/t'",
    ):
        words = [*RUN, "-e", f"CREATE {kind}; {SELECT};", "--stream", "r=in.csv", "--stream"]
        said = told(capsys, 2, *words, "t=in.csv")
        assert "a URI must be without keys and passwords" in said
        assert "hunter2" not in said
    assert not (work / "ck").exists()


def start(stream: tg.Stream, checkpoint: str) -> None:
    stream.start(sink=f"out-{checkpoint}", checkpoint=checkpoint, batch_rows=9).wait()


def test_queries_of_programs_in_sql_are_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    session = tg.Session(master="none")
    rides = session.stream("in.csv", time="ts", disorder="1 second")
    start(session.sql(SQL), "plain")
    start(session.sql(SELECT, r=rides), "given")
    start(session.sql(f"{CREATE}; INSERT INTO named {SELECT};"), "single")
    script = f"{CREATE}; INSERT INTO one {SELECT}; INSERT INTO two SELECT * FROM r WHERE v > 9;"
    several = session.queries(script)
    swapped = {"two": several["two"], "other": several["one"]}
    session.start(
        swapped, sinks={name: f"out-{name}" for name in swapped}, checkpoint="several"
    ).wait()
    for checkpoint in ("plain", "given", "single", "several"):
        found = facts(capsys, "verify", checkpoint)
        assert found["equal"], checkpoint
    assert set(found["outputs"]) == {"two", "other"}
    assert len(facts(capsys, "why", "several", "--output", "other", "--row", "4")["tuples"]) == 4
    text = Path("in.csv").read_text().replace("24Z,a", "24Z,b")
    Path("other.csv").write_text(text)
    assert facts(capsys, "verify", "given", "--stream", "r=in.csv")["equal"]
    found = facts(capsys, "verify", "given", "--stream", "r=other.csv", code=1)
    assert found["changed"] == ["input"]


@tg.function(returns="DOUBLE")
def halved_here(values: pa.Array) -> pa.Array:
    return pc.divide(values, 2.0)


def test_queries_that_a_program_alone_has_say_what_to_give(
    capsys: pytest.CaptureFixture[str],
) -> None:
    session = tg.Session(master="none")
    rides = session.stream("in.csv", time="ts", name="r")
    start(rides.window("10 seconds").group_by("k").agg(n=tg.count(), a=tg.mean("v")), "nodes")
    start(session.sql("SELECT k FROM r", r=rides).where(tg.col("k") == "a"), "more")
    source = memory((1, "a", 1), (12, "a", 2), end=True)
    rows = session.stream(source, time="ts", name="s")
    start(session.sql("SELECT * FROM s", s=rows), "rows")
    start(session.sql("SELECT halved_here(v) AS h FROM r", r=rides), "function")
    for checkpoint, why in (
        ("nodes", "not in SQL"),
        ("more", "not in SQL"),
        ("rows", "whose s the program alone has"),
        ("function", "whose halved_here the program alone has"),
    ):
        said = told(capsys, 2, "verify", checkpoint)
        assert f"got a query of a program, {why}" in said
        assert "Give QUERY.sql that asks the same beside the checkpoint" in said
    assert facts(capsys, "verify", "nodes", "q.sql")["equal"]  # SQL that asks the same
