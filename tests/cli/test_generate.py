"""`tidegate generate`: files with the generator's rows, and mistakes that leave nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidegate.cli.command import generate
from tidegate.cli.main import invoke
from tidegate.source.generator import names, open_generator
from tidegate.source.registry import open_uri


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def expected(name: str, query: str) -> pa.Table:
    source = open_generator(f"generator:{name}?{query}", "g", None)
    return source.reader(0, source.extend(1)).read(source.schema.names).table


def read_back(path: str, time: str) -> pa.Table:
    (source,) = open_uri(path, "g", time, False).discover()
    known = source.extend(1)
    while (more := source.extend(known + 1)) > known:
        known = more
    return source.reader(0, known).read(source.schema.names).table


@pytest.mark.parametrize("name", names())
def test_parquet_holds_the_same_rows(name, capsys):
    assert invoke(["generate", name, "--rows", "2000", "--out", "a.parquet"]) == 0
    assert pq.read_table("a.parquet") == expected(name, "rows=2000")
    said = capsys.readouterr().err
    assert said.startswith(f"2,000 rows of {name} in a.parquet")
    assert "its time column is" in said
    assert os.listdir() == ["a.parquet"]


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("file", ["a.csv", "a.jsonl"])
def test_text_is_read_back_as_it_was(name, file):
    assert invoke(["generate", name, "--rows", "500", "--out", file, "--param", "seed=3"]) == 0
    source = open_generator(f"generator:{name}?rows=500&seed=3", "g", None)
    whole, found = expected(name, "rows=500&seed=3"), read_back(file, source._time)
    assert found.column_names == whole.column_names
    for column in whole.column_names:
        before, after = whole.column(column).to_pylist(), found.column(column).to_pylist()
        assert [plain(v) for v in after] == [plain(v) for v in before]


def plain(value):
    """What text keeps of a value: numbers whatever their type, nothing of an empty text."""
    try:
        return "" if value is None else str(np.float32(value))
    except (TypeError, ValueError):
        return str(value)


def test_parameters_chunks_and_formats(monkeypatch):
    monkeypatch.setattr(generate, "CHUNK_ROWS", 300)
    options = [
        "--rows",
        "1000",
        "--param",
        "skew=0.5",
        "--param",
        "start=2020-01-01T00:00:00+01:00",
    ]
    assert invoke(["generate", "taxi", *options, "--out", "a.parquet"]) == 0
    assert pq.ParquetFile("a.parquet").num_row_groups == 4
    whole = pq.read_table("a.parquet")
    assert whole == expected("taxi", "rows=1000&skew=0.5&start=2019-12-31T23:00")
    for asked in ("csv", "jsonl", "json"):
        assert invoke(["generate", "taxi", *options, "--out", "b", "--format", asked]) == 0
        lines = Path("b").read_text().splitlines()
        assert len(lines) == 1000 + (asked == "csv")
    assert invoke(["generate", "taxi", "--rows", "0", "--out", "none.csv"]) == 0
    assert Path("none.csv").read_text().startswith('"medallion","pickup_time"')
    assert invoke(["generate", "taxi", "--rows", "0", "--out", "none.parquet"]) == 0
    assert pq.read_table("none.parquet").num_rows == 0


def test_an_earlier_file_is_replaced_whole():
    Path("a.csv").write_text("old")
    assert invoke(["generate", "s", "--rows", "10", "--out", "a.csv"]) == 0
    assert len(Path("a.csv").read_text().splitlines()) == 11


def test_a_failure_on_the_way_leaves_the_earlier_file(monkeypatch, capsys):
    Path("a.csv").write_text("old")

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert invoke(["generate", "s", "--rows", "10", "--out", "a.csv"]) == 1
    assert "No space left on device" in capsys.readouterr().err
    assert Path("a.csv").read_text() == "old"
    assert os.listdir() == ["a.csv"]


def test_the_list_names_everything(capsys):
    assert invoke(["generate", "--list"]) == 0
    text = capsys.readouterr().out
    for name in names():
        assert f"\n{name}: " in f"\n{text}"
    assert invoke(["generate", "trades", "--list"]) == 0
    text = capsys.readouterr().out
    for word in ("symbol", "average_price", "ts", "event time", "burst=1", "keys=10", "pace="):
        assert word in text
    assert "medallion" not in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "generate: needs the name of a generator; got none. There are: taxi, calls"),
        (
            ["trade", "--out", "a.csv"],
            "the generator must be known; got trade. Did you mean trades",
        ),
        (["--list", "tweet"], "the generator must be known; got tweet. Did you mean tweets"),
        (["taxi"], "--out: needs a file to write; got none. Give one, as --out taxi.parquet."),
        (["taxi", "--out", "a.txt"], "a.txt: the extension must say the format; got .txt"),
        (["taxi", "--out", "a"], "a: the extension must say the format; got none"),
        (
            ["taxi", "--out", "a.csv", "--format", "orc"],
            "--format: must be a known format; got orc",
        ),
        (
            ["taxi", "--out", "no/a.csv"],
            "no/a.csv: must be a file that can be written; got no fold",
        ),
        (["taxi", "--out", "."], ".: the extension must say the format"),
        (["taxi", "--out", "d.csv"], "d.csv: must be a file that can be written; got a folder"),
        (["taxi", "--out", "a.csv", "--rows", "-1"], "--rows: must not be negative; got -1"),
        (["taxi", "--out", "a.csv", "--rows", "many"], "--rows: must be a whole number; got many."),
        (["taxi", "--out", "a.csv", "--param", "skew"], "--param: must look like KEY=VALUE"),
        (["taxi", "--out", "a.csv", "--param", "skw=1"], "got parameter skw. Did you mean skew?"),
        (["taxi", "--out", "a.csv", "--param", "skew=x"], "skew must be a number from 0 on"),
        (["taxi", "--out", "a.csv", "--param", "rows=5"], "--param: cannot be rows; got 5. Use"),
        (["taxi", "--out", "a.csv", "--param", "pace=5"], "--param: cannot be pace, which is for"),
        (
            ["taxi", "--out", "a.csv", "--param", "seed=1", "--param", "seed=2"],
            "a parameter can be given once; got seed twice",
        ),
    ],
)
def test_mistakes_leave_nothing(arguments, message, capsys):
    Path("d.csv").mkdir()
    assert invoke(["generate", *arguments]) == 2
    said = capsys.readouterr().err.strip()
    assert message in said
    assert "\n" not in said
    assert os.listdir() == ["d.csv"]


def test_a_folder_that_cannot_be_written(capsys, monkeypatch):
    Path("d").mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write everywhere
    assert invoke(["generate", "taxi", "--out", "d/a.csv"]) == 2
    assert "no permission to write in" in capsys.readouterr().err


def test_a_live_query_with_a_trigger_tells_its_latency(capsys):
    Path("q.sql").write_text(
        "CREATE STREAM t FROM 'generator:trades?rows=600&pace=3000' TIME ts;"
        "SELECT symbol, COUNT(*) AS n FROM t [RANGE 20 MILLISECONDS] GROUP BY symbol;"
    )
    run = ["run", "q.sql", "--master", "none", "--out", "o", "--summary", "s.json"]
    assert invoke([*run, "--trigger", "50 milliseconds", "--batch-rows", "200"]) == 0
    said = json.loads(Path("s.json").read_text())
    latency = [said["latency_ms"][name] for name in ("p50", "p95", "p99", "max")]
    assert said["latency_ms"]["tuples"] == 600
    assert latency == sorted(latency)
    assert latency[-1] > 50, "those that come right after a batch wait for the trigger"
    assert said["batches"] >= 4
    assert set(said["batch_ms"]) == {"p50", "p95", "p99", "max"}
    assert said["backlog"]["rows"] == 0
    assert said["backlog_max"]["rows"] > 0
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[0] for line in lines][2:5] == ["batch", "latency", "backlog"]


def test_a_query_reads_a_live_generator_to_its_end():
    Path("q.sql").write_text(
        "CREATE STREAM t FROM 'generator:trades?rows=3000&pace=20000' TIME ts;"
        "SELECT COUNT(*) AS n FROM t [RANGE 1 DAYS];"
    )
    assert invoke(["run", "q.sql", "--master", "none", "--out", "o", "--checkpoint", "c"]) == 0
    found = pq.read_table(sorted(Path("o").glob("batch=*/*.parquet")))
    assert found.column("n").to_pylist() == [3000]
