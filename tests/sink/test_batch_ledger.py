"""Damage to results that were published long ago, found by the ledgers beside the batches."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow.dataset
import pytest

from tests.sink.output import commit, opened, rows, started
from tests.sink.test_files import cut_short, flip, lengthen, remove
from tidegate.batch import BatchId
from tidegate.cli.main import invoke
from tidegate.sink.folder.batch_ledger import ledger_name, ledger_receipts, ledger_text
from tidegate.sink.folder.files import FileSink
from tidegate.sink.folder.past import Committed, past_of
from tidegate.sink.receipt import Receipt

SQL = """
CREATE STREAM s FROM 's.csv' TIME ts;
INSERT INTO big SELECT v FROM s WHERE v > 2;
INSERT INTO all_of_it SELECT k, v FROM s;
"""
BATCHES = 6


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with two outputs, late and rejected tuples, in several batches."""
    folder = tmp_path_factory.mktemp("done")
    lines = ["ts,k,v"]
    for i in range(30):
        lines.append(f"2024-01-01T00:00:{i:02d}Z,{'ab'[i % 2]},{i}")
        if i % 10 == 9:
            lines += ["2024-01-01T00:00:00Z,late,1", ",timeless,2"]
    (folder / "s.csv").write_text("\n".join(lines) + "\n")
    (folder / "q.sql").write_text(SQL)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        _run("c", "out")
    return folder


def _run(checkpoint: str, out: str, *more: str) -> None:
    command = ["run", "q.sql", "--master", "none", "--batch-rows", "6"]
    assert invoke([*command, "--checkpoint", checkpoint, "--out", out, *more]) == 0


@pytest.fixture
def copied(done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same in the place that its manifests name, put back afterwards."""
    shutil.copytree(done / "out", tmp_path / "kept")
    monkeypatch.chdir(done)
    yield done / "out"
    shutil.rmtree(done / "out")
    shutil.copytree(tmp_path / "kept", done / "out")


def verified(capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, dict[str, list[str]]]]:
    """The exit code, and by output what is told of its batches."""
    capsys.readouterr()
    code = invoke(["state", "c", "--verify", "--json"])
    outputs = json.loads(capsys.readouterr().out)["verified"]["outputs"]
    assert sorted(outputs) == ["all_of_it", "big"]
    return code, {name: of["past"] for name, of in outputs.items()}


def test_all_that_was_published_is_checked(
    copied: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found = verified(capsys)
    assert code == 0
    assert [of["problems"] for of in found.values()] == [[]] * 2
    published = [p for p in copied.rglob("*.parquet") if "_ledger" not in p.parts]
    sides = [p for p in published if p.parent.parent.name in ("_late", "_rejected")]
    assert len(sides) == 6
    assert sum(of["parts"] for of in found.values()) == len(published) > 12
    assert sum(of["bytes"] for of in found.values()) == sum(p.stat().st_size for p in published)
    assert invoke(["state", "c", "--verify"]) == 0
    assert "published batches of output big: " in capsys.readouterr().out


@pytest.mark.parametrize("harm", [flip, cut_short, lengthen])
@pytest.mark.parametrize("of", ["big/batch=*", "all_of_it/batch=*", "_late/*", "_rejected/*"])
def test_damaged_contents_fail(
    copied: Path, of: str, harm: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    path = min(copied.glob(f"{of}/*.parquet"))
    harm(path)
    code, found = verified(capsys)
    assert code == 1
    (problem,) = [p for past in found.values() for p in past["problems"]]
    assert problem.startswith(f"{path}: ")
    assert invoke(["state", "c", "--verify"]) == 1
    assert problem in capsys.readouterr().out.splitlines()
    assert invoke(["state", "c"]) == 0, "nothing is read that was not asked for"


def test_folders_that_are_gone_are_named(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gone = sorted(copied.glob("big/batch=*"))[:3]
    late = sorted((copied / "_late").glob("batch=*"))
    for path in (*gone, *late):
        shutil.rmtree(path)
    emptied = min(copied.glob("all_of_it/batch=*"))
    for path in emptied.iterdir():
        remove(path)
    code, found = verified(capsys)
    assert code == 1
    problems = {problem for past in found.values() for problem in past["problems"]}
    assert problems == {
        *(f"{folder}/part-00000.parquet: no such file" for folder in (*gone, emptied)),
        *(f"{folder}/s.parquet: no such file" for folder in late),
    }
    assert len(late) == 3
    assert invoke(["verify", "c"]) == 1
    said = capsys.readouterr().out
    assert all(problem in said for problem in problems)


def test_one_part_of_several_that_is_gone_is_damage(tmp_path: Path) -> None:
    sink, store = FileSink(tmp_path / "out", "json"), started(tmp_path / "c")
    opened(sink, store)
    receipts = commit(sink, store, 0, rows((10, "a", 1.0)))
    two = [*receipts, Receipt("part-00001.json", 1, 5, 1)]
    (tmp_path / "out" / ledger_name(0)).write_bytes(ledger_text(0, two))
    found = past_of(sink, Committed(0))
    place = tmp_path / "out/batch=00000000/part-00001.json"
    assert found.problems == (f"{place}: no such file",)


def test_a_ledger_that_is_lost_or_damaged_is_told(
    copied: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, third = sorted(copied.glob("big/_ledger/*"))[:3]
    for bit in range(8 * len(first.read_bytes())):
        raw = bytearray(first.read_bytes())
        raw[bit // 8] ^= 1 << bit % 8
        assert ledger_receipts(bytes(raw)) is None
    assert ledger_receipts(b"") is None
    first.write_bytes(b"")
    second.unlink()
    shutil.copy(sorted(copied.glob("big/_ledger/*"))[-1], third)
    code, found = verified(capsys)
    assert code == 1
    assert found["big"]["problems"] == [
        f"{first}: damaged: it is not as it was written",
        f"{third}: damaged: it is not as it was written",
        f"{second}: no such file: it was deleted, or {second.name} was added",
    ]


def test_a_batch_that_is_gone_with_its_ledger_shows_in_the_rows(
    copied: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = sorted(copied.glob("all_of_it/batch=*"))[2].name
    shutil.rmtree(copied / "all_of_it" / gone)
    (copied / "all_of_it/_ledger" / gone).unlink()
    code, found = verified(capsys)
    assert code == 1
    (problem,) = found["all_of_it"]["problems"]
    assert " of the 30 committed rows are in no batch: " in problem
    assert problem.endswith(f", of {gone}")


def _copy(path: Path, place: Path) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    (shutil.copytree if path.is_dir() else shutil.copy)(path, place)
    return place


@pytest.mark.parametrize(
    "where",
    [
        "big/batch=00000004/part-00001.parquet",
        "big/batch=00000004/more/x",
        "big/batch=00000099",
        "big/batch=4",
        "big/extra.parquet",
        "big/_extra.parquet",
        "big/more",
    ],
)
def test_what_was_added_is_named(
    copied: Path, where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    batch = copied / "big/batch=00000004"
    source = batch if Path(where).suffix == "" and "/x" not in where else min(batch.iterdir())
    _copy(source, copied / where)
    named = (copied / where).parent if where.endswith("/x") else copied / where
    code, found = verified(capsys)
    assert code == 1
    assert found["big"]["problems"] == [f"{named}: no batch has published it"]
    assert found["all_of_it"]["problems"] == []


def test_side_outputs_that_were_added_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(done / "s.csv", "s.csv")
    Path("q.sql").write_text(SQL.partition("INSERT")[0] + "SELECT v FROM s;")
    _run("c", "out", "--format", "csv")
    late = min(Path("out/_late").glob("batch=*"))
    added = [late / "t.csv", Path("out/_late/batch=00000099"), Path("out/_rejected/x.csv")]
    shutil.copy(late / "s.csv", added[0])
    shutil.copytree(late, added[1])
    shutil.copy(late / "s.csv", added[2])
    capsys.readouterr()
    assert invoke(["state", "c", "--verify", "--json"]) == 1
    (of,) = json.loads(capsys.readouterr().out)["verified"]["outputs"].values()
    paths = {
        problem.partition(": ")[0].rpartition("out/_")[2] for problem in of["past"]["problems"]
    }
    assert {"late/batch=00000099", "rejected/x.csv"} <= paths


def test_what_a_run_publishes_beside_the_check_is_not_added(tmp_path: Path) -> None:
    sink, store = FileSink(tmp_path / "out", "json"), started(tmp_path / "c")
    opened(sink, store)
    for batch in range(2):
        commit(sink, store, batch, rows((10, "a", 1.0)))
    assert past_of(sink, Committed(0, newest_now=lambda: 1)).problems == ()
    (problem,) = past_of(sink, Committed(0, newest_now=lambda: 0)).problems
    assert problem == f"{tmp_path}/out/batch=00000001: no batch has published it"


def test_readers_pass_over_ledgers(copied: Path) -> None:
    out = copied / "all_of_it"
    assert sorted(p.name for p in out.glob("_ledger/*")) == sorted(
        p.name for p in out.glob("batch=*")
    )
    assert {p.suffix for p in out.glob("batch=*/*")} == {".parquet"}
    rows = duckdb.sql(f"SELECT COUNT(*) FROM '{out}/**/*.parquet'").fetchall()
    assert rows == [(30,)]
    assert pyarrow.dataset.dataset(out, format="parquet").count_rows() == 30
    assert len(pd.read_parquet(out)) == 30


def test_ledgers_are_the_same_bytes_in_any_run(done: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(done)
    _run("c2", "out2", "--instances", "3")
    first, second = (
        {str(p.relative_to(done / out)): p.read_bytes() for p in (done / out).rglob("_ledger/*")}
        for out in ("out", "out2")
    )
    assert first == second
    assert len(first) >= BATCHES
    assert max(map(len, first.values())) < 1_000


def test_a_restart_writes_the_ledger_of_the_newest_batch_again(tmp_path: Path) -> None:
    """That of an older one is not touched: what is lost there is told."""
    out, store = tmp_path / "out", started(tmp_path / "c")
    sink = FileSink(out, "json")
    opened(sink, store)
    receipts = [commit(sink, store, batch, rows((10, "a", 1.0))) for batch in range(2)]
    for batch in range(2):
        (out / ledger_name(batch)).write_bytes(b"")
    again = FileSink(out, "json")
    opened(again, store, owner=1)
    again.publish(BatchId(1), receipts[1])
    assert (out / ledger_name(1)).read_bytes() == ledger_text(1, receipts[1])
    assert (out / ledger_name(0)).read_bytes() == b""


def test_a_new_run_begins_without_the_ledgers_of_results_that_are_gone(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for run in range(2):
        store = started(tmp_path / str(run))
        sink = FileSink(out, "json")
        opened(sink, store)
        for batch in range(3 - run):
            commit(sink, store, batch, rows((10, str(run), 1.0)))
        sink.close()
        assert sorted(p.name for p in (out / "_ledger").iterdir()) == sorted(
            p.name for p in out.glob("batch=*")
        )
        for path in out.glob("batch=*") if run == 0 else ():
            shutil.rmtree(path)
    assert past_of(sink, Committed(1)).problems == ()
