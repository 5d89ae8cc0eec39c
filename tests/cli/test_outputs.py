"""Scripts with several outputs on the command line, in this process and without Spark."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tidegate.batch import BatchId
from tidegate.cli.main import invoke
from tidegate.cli.option.out import address_of, sinks_of
from tidegate.errors import OptionError, SinkError
from tidegate.sink.console import ConsoleSink
from tidegate.sink.folder.files import FileSink
from tidegate.sink.receipt import Receipt

ROWS = [
    ("2024-01-01T00:00:01Z", "a", "5"),
    ("2024-01-01T00:00:04Z", "b", "7"),
    ("2024-01-01T00:00:09Z", "a", "1"),
    ("2024-01-01T00:00:03Z", "a", "9"),
    ("", "a", "2"),
    ("2024-01-01T00:00:12Z", "b", "4"),
    ("2024-01-01T00:00:31Z", "b", "6"),
]
COUNTS = "(SELECT route, COUNT(*) AS n FROM rides [RANGE 10 SECONDS] GROUP BY route)"
SQL = f"""
CREATE STREAM rides FROM 'rides.csv' TIME ts;
INSERT INTO Busy SELECT route, n FROM {COUNTS} WHERE n > 1;
INSERT INTO most SELECT MAX(n) AS most FROM {COUNTS} [RANGE 20 SECONDS];
INSERT INTO fares SELECT fare FROM rides WHERE fare > 4;
"""
EXPECTED = {"Busy": [("a", 2)], "most": [(2,), (1,)], "fares": [(5,), (7,), (6,)]}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = ["ts,route,fare", *(",".join(row) for row in ROWS)]
    Path("rides.csv").write_text("\n".join(lines) + "\n")
    Path("q.sql").write_text(SQL)


def run(*options: str, out: str = "o") -> int:
    return invoke(["run", "q.sql", "--master", "none", "--out", out, *options])


def results(out: str = "o") -> dict[str, list[tuple[Any, ...]]]:
    """The rows of every output without their times, in order."""
    found = {}
    for name in EXPECTED:
        files = sorted(Path(out, name).glob("batch=*/*.parquet"))
        rows = pq.read_table(files, partitioning=None).to_pylist()
        times = ("window_start", "window_end", "ts")
        found[name] = [tuple(v for n, v in row.items() if n not in times) for row in rows]
    return found


@pytest.mark.parametrize("strategy", ["operator-set", "query-cloud", "operator-cloud"])
@pytest.mark.parametrize("batch_rows", ["1", "3", "100"])
def test_every_output_has_a_folder_of_its_name(strategy: str, batch_rows: str) -> None:
    options = ("--batch-rows", batch_rows, "--strategy", strategy, "--summary", "s.json")
    assert run(*options) == 0
    assert results() == EXPECTED
    said = json.loads(Path("s.json").read_text())
    assert (said["rows_in"], said["rows_late"], said["rows_rejected"]) == (len(ROWS), 1, 1)
    assert said["rows_out"] == sum(map(len, EXPECTED.values()))


def test_side_outputs_are_beside_the_folders_and_once() -> None:
    assert run() == 0
    assert sorted(p.name for p in Path("o").iterdir()) == sorted([*EXPECTED, "_late", "_rejected"])
    (late,) = Path("o/_late").glob("batch=*/*.parquet")
    assert pq.ParquetFile(late).read().column("fare").to_pylist() == [9]
    assert not list(Path("o").glob("*/_late"))


def test_instances_and_switches_of_single_subqueries() -> None:
    options = ("--batch-rows", "2", "--instances", "1", "--instances", "aggregate=3")
    switches = ("--switch", "2=2", "--switch", "aggregate2:1=4")
    assert run(*options, *switches, "--summary", "s.json") == 0
    assert results() == EXPECTED
    epochs = json.loads(Path("s.json").read_text())["epochs"]
    history: dict[str, list[tuple[int, int]]] = {}
    for epoch in epochs:
        history.setdefault(epoch["subquery"], []).append((epoch["batch"], epoch["instances"]))
    assert history == {
        "aggregate": [(0, 3), (2, 2)],
        "most": [(0, 1), (1, 4), (2, 2)],
        "fares": [(0, 1), (2, 2)],
    }


def test_a_run_goes_on_with_all_its_outputs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--checkpoint", "c") == 0
    capsys.readouterr()
    assert run("--checkpoint", "c") == 0
    assert "finished" in capsys.readouterr().err
    assert results() == EXPECTED
    assert invoke(["state", "c"]) == 0
    said = capsys.readouterr().out
    for name in ("aggregate", "aggregate2", "stateless"):
        assert f"subquery {name}: epoch 0, " in said
    assert "state aggregate/panes: " in said


@pytest.mark.parametrize("used", ["Busy/batch=00000000", "fares/batch=00000007", "_late/batch=1"])
def test_folders_with_results_are_refused(used: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("o", used).mkdir(parents=True)
    assert run() == 2
    assert "a new run needs an output folder without results" in capsys.readouterr().err
    assert not list(Path("o").rglob("*.parquet"))


def test_another_set_of_outputs_is_another_query(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--checkpoint", "c") == 0
    Path("q.sql").write_text(SQL.replace("INSERT INTO fares", "INSERT INTO prices"))
    capsys.readouterr()
    assert run("--checkpoint", "c", out="p") == 2
    assert "must be the checkpoint of this query" in capsys.readouterr().err


def test_explain_shows_every_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["explain", "q.sql", "--master", "none"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line for line in said if line.startswith("query of output ")] == [
        f"query of output {name}" for name in EXPECTED
    ]
    assert [line for line in said if line.startswith("output ")] == [
        "output Busy, of aggregate",
        "output most, of most",
        "output fares, of fares",
    ]


# --- where outputs go --------------------------------------------------------------------------


def test_one_output_without_a_name_is_the_folder_itself() -> None:
    (sink,) = sinks_of([None], address_of("o", "csv")).values()
    assert isinstance(sink, FileSink)
    assert (sink.path, sink.sides, sink.format) == (Path("o"), Path("o"), "csv")


@pytest.mark.parametrize("names", [["a"], ["a", "b"]])
def test_outputs_with_names_are_folders_below_it(names: list[str | None]) -> None:
    sinks = sinks_of(names, address_of("o", "json"))
    assert list(sinks) == names
    for name, sink in sinks.items():
        assert isinstance(sink, FileSink)
        assert (sink.path, sink.sides, sink.format) == (Path("o", str(name)), Path("o"), "json")


@pytest.mark.parametrize("name", [None, "a"])
def test_one_output_is_printed_where_there_is_no_folder(name: str | None) -> None:
    sinks = sinks_of([name], address_of(None, None))
    assert list(sinks) == [name]
    assert isinstance(sinks[name], ConsoleSink)


def test_several_are_not() -> None:
    with pytest.raises(OptionError, match="--out: is needed by a script with several outputs"):
        sinks_of(["a", "b"], address_of(None, None))


def test_outputs_below_a_folder_by_its_uri(tmp_path: Path) -> None:
    assert run(out=f"file://{tmp_path}/o?format=parquet") == 0
    assert results() == EXPECTED


def test_an_output_that_is_published_stays_when_another_runs_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The batch is cut where it was, so that the outputs still fit together."""
    both = "SELECT fare FROM rides WHERE fare > 4;"  # so that a batch has something for both
    Path("q.sql").write_text(
        f"{SQL.splitlines()[1]} INSERT INTO fares {both} INSERT INTO most {both}"
    )
    assert run("--batch-rows", "3", "--checkpoint", "steady", out="s") == 0
    published = FileSink.publish

    def fail(sink: FileSink, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        if sink.path.name == "most":
            raise SinkError("most", "is away")
        published(sink, batch, receipts)

    monkeypatch.setattr(FileSink, "publish", fail)
    assert run("--batch-rows", "3", "--checkpoint", "c") == 1
    monkeypatch.setattr(FileSink, "publish", published)
    (staged,) = Path("o/most/_staging").glob("batch=*/part-*")
    batch = staged.parent.name.split(".")[0]
    there = Path("o/fares", batch).stat().st_ino
    staged.write_bytes(staged.read_bytes()[:-4])
    assert run("--batch-rows", "100", "--checkpoint", "c") == 0
    assert f"Batch {int(batch[6:])} runs again" in caplog.text
    assert Path("o/fares", batch).stat().st_ino == there
    for name in ("most", "fares"):
        (first, again) = (Path(o, name, batch, "part-00000.parquet") for o in "so")
        assert first.read_bytes() == again.read_bytes()
    assert [p.name for p in Path("o").rglob("_staging")] == []
