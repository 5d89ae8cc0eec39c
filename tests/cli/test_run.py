"""The command line end to end, in this process and without Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.csv
import pyarrow.json
import pyarrow.parquet
import pytest

from tidegate.cli.main import invoke
from tidegate.memory import MEMORY, bytes_of
from tidegate.memory_limit import LIMIT

ROWS = [
    ("2024-01-01T00:00:01Z", "a", "5.0"),
    ("2024-01-01T00:00:04Z", "b", "7.5"),
    ("2024-01-01T00:00:09Z", "a", "1.0"),
    ("2024-01-01T00:00:03Z", "a", "9.0"),
    ("", "a", "2.0"),
    ("2024-01-01T00:00:12Z", "", "4.0"),
    ("2024-01-01T00:00:13Z", "b", "cheap"),
    ("2024-01-01T00:00:31Z", "b", "6.0"),
]
SQL = """
CREATE STREAM rides FROM 'rides.csv' TIME ts;
SELECT route, SUM(fare) AS fare, COUNT(*) AS n
FROM rides [RANGE 10 SECONDS] GROUP BY route
"""
EXPECTED = [
    ("2024-01-01 00:00:00", "a", 6.0, 2),
    ("2024-01-01 00:00:00", "b", 7.5, 1),
    ("2024-01-01 00:00:10", None, 4.0, 1),
    ("2024-01-01 00:00:30", "b", 6.0, 1),
]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = ["ts,route,fare", *(",".join(row) for row in ROWS)]
    Path("rides.csv").write_text("\n".join(lines) + "\n")
    Path("q.sql").write_text(SQL)


READERS = {
    "parquet": pyarrow.parquet.read_table,
    "csv": pyarrow.csv.read_csv,
    "json": pyarrow.json.read_json,
}


def results(out: str, format_: str = "parquet") -> list[tuple]:
    rows = []
    for path in sorted(Path(out).glob(f"batch=*/*.{format_}")):
        if path.stat().st_size:
            for row in READERS[format_](path).to_pylist():
                start = str(row["window_start"])[:19].replace("T", " ")
                rows.append((start, row["route"] or None, row["fare"], row["n"]))
    return rows


@pytest.mark.parametrize("format_", ["parquet", "csv", "json"])
@pytest.mark.parametrize("batch_rows", ["1", "3", "100"])
def test_results_side_outputs_and_summary(format_, batch_rows):
    code = invoke(
        [
            "run",
            "q.sql",
            "--master",
            "none",
            "--out",
            "o",
            "--format",
            format_,
            "--batch-rows",
            batch_rows,
            "--summary",
            "s.json",
        ]
    )
    assert code == 0
    assert results("o", format_) == EXPECTED
    summary = json.loads(Path("s.json").read_text())
    counts = {k: summary[k] for k in ("rows_in", "rows_out", "rows_late", "rows_rejected")}
    assert counts == {"rows_in": 8, "rows_out": 4, "rows_late": 1, "rows_rejected": 2}
    late = list(Path("o/_late").rglob(f"*.{format_}"))
    assert sum(READERS[format_](p).num_rows for p in late) == 1
    rejected = list(Path("o/_rejected").rglob(f"*.{format_}"))
    reasons = [r for p in rejected for r in READERS[format_](p).column("_reason").to_pylist()]
    assert len(reasons) == 2
    assert any("fare" in r for r in reasons)
    assert not Path("o/_staging").exists()


def test_a_second_source_of_a_stream_is_merged_by_time():
    Path("more.csv").write_text("ts,route,fare\n2024-01-01T00:00:02Z,a,10.0\n")
    code = invoke(
        [
            "run",
            "q.sql",
            "--master",
            "none",
            "--out",
            "o",
            "--batch-rows",
            "2",
            "--stream",
            "rides=rides.csv",
            "--stream",
            "rides=more.csv",
        ]
    )
    assert code == 0
    assert results("o")[0] == ("2024-01-01 00:00:00", "a", 16.0, 3)


def test_a_run_on_a_used_output_folder_is_refused_and_changes_nothing(capsys):
    arguments = ["run", "q.sql", "--master", "none", "--out", "o"]
    assert invoke(arguments) == 0
    before = {p: p.read_bytes() for p in Path("o").rglob("*.parquet")}
    assert invoke(arguments) == 2
    assert "a new run needs an output folder without results" in capsys.readouterr().err
    assert {p: p.read_bytes() for p in Path("o").rglob("*.parquet")} == before


def test_a_finished_run_started_again_does_nothing_more(capsys):
    arguments = ["run", "q.sql", "--master", "none", "--out", "o", "--checkpoint", "c"]
    assert invoke(arguments) == 0
    before = {p: p.read_bytes() for p in Path("o").rglob("*.parquet")}
    assert invoke(arguments) == 0
    assert {p: p.read_bytes() for p in Path("o").rglob("*.parquet")} == before
    assert "finished: 8 rows in, 4 out" in capsys.readouterr().err


def test_a_checkpoint_of_another_query_is_refused(capsys):
    assert invoke(["run", "q.sql", "--master", "none", "--out", "o", "--checkpoint", "c"]) == 0
    Path("q.sql").write_text(SQL.replace("SUM", "MAX"))
    assert invoke(["run", "q.sql", "--master", "none", "--out", "p", "--checkpoint", "c"]) == 2
    assert "must be the checkpoint of this query" in capsys.readouterr().err
    assert not Path("p").exists()


def test_other_buckets_on_a_checkpoint_are_refused(capsys):
    base = ["run", "q.sql", "--master", "none", "--checkpoint", "c"]
    assert invoke([*base, "--out", "o"]) == 0
    assert invoke([*base, "--out", "o", "--buckets", "8"]) == 2
    assert "was made with 64 buckets" in capsys.readouterr().err


def test_without_out_rows_are_printed_as_csv_when_piped(capsys):
    assert invoke(["run", "q.sql", "--master", "none"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == '"window_start","window_end","route","fare","n"'
    assert len(lines) == 5


def test_a_switch_is_in_the_summary():
    code = invoke(
        [
            "run",
            "q.sql",
            "--master",
            "none",
            "--out",
            "o",
            "--batch-rows",
            "2",
            "--instances",
            "2",
            "--switch",
            "1=5",
            "--switch",
            "3=1",
            "--summary",
            "s.json",
        ]
    )
    assert code == 0
    assert results("o") == EXPECTED
    epochs = json.loads(Path("s.json").read_text())["epochs"]
    assert [(e["batch"], e["instances"]) for e in epochs] == [(0, 2), (1, 5), (3, 1)]


def test_what_an_option_asks_for_in_vain_is_said(capsys, caplog):
    """A stream that is not read, a batch that does not come, and Spark where there is none."""
    command = ["run", "q.sql", "--master", "none", "--out", "o", "--batch-rows", "2"]
    vain = ["--stream", "ridez=rides.csv", "--switch", "1=2", "--switch", "900=2"]
    assert invoke([*command, *vain, "--execution", "jobs", "--exchange", "shuffle"]) == 0
    assert results("o") == EXPECTED
    said = capsys.readouterr().err
    assert "--stream ridez: the query does not read a stream of this name\n" in said
    assert "--switch: batch 900 did not come; the last one was " in said
    assert said.count("did not come") == 1
    assert "--execution jobs is for Spark: with --master none it changes nothing" in caplog.text


def test_a_summary_that_cannot_be_written_is_told(capsys):
    command = ["run", "q.sql", "--master", "none", "--out", "o", "--summary"]
    assert invoke([*command, "/dev/full"]) == 1
    assert results("o") == EXPECTED
    said = capsys.readouterr().err
    assert "/dev/full: the summary must be written; got No space left on device. " in said
    assert "Traceback" not in said


@pytest.mark.parametrize("size", ["256MB", "2GB"])
def test_the_memory_limit_changes_no_result(size):
    command = ["run", "q.sql", "--master", "none", "--out", "o", "--batch-rows", "2"]
    assert invoke([*command, "--memory-limit", size]) == 0
    assert results("o") == EXPECTED
    assert bytes_of(size, "") == LIMIT.bytes == 3 * MEMORY.limit_bytes + LIMIT.bytes % 3


def test_explain_says_where_things_run(capsys):
    assert invoke(["explain", "q.sql", "--master", "none"]) == 0
    said = capsys.readouterr().out
    assert "Arrow task, map side" in said
    assert "one task per instance" in said


def test_state_shows_a_checkpoint(capsys):
    invoke(["run", "q.sql", "--master", "none", "--out", "o", "--checkpoint", "c"])
    capsys.readouterr()
    assert invoke(["state", "c", "--verify"]) == 0
    assert "frontier +inf" in capsys.readouterr().out
    assert invoke(["state", "c", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)


def test_help_and_version(capsys):
    assert invoke(["--help"]) == 0
    assert "Exit codes" in capsys.readouterr().out
    assert invoke(["run", "--help"]) == 0
    assert "--batch-rows" in capsys.readouterr().out
    assert invoke(["--version"]) == 0


@pytest.mark.parametrize(
    "out", ["o?format=csv", "file:o?format=csv", "file://{folder}/o?format=csv"]
)
def test_a_folder_by_its_uri(out, tmp_path):
    place = out.format(folder=tmp_path)
    assert invoke(["run", "q.sql", "--master", "none", "--out", place]) == 0
    assert results("o", "csv") == EXPECTED


def test_the_console_by_its_uri(capsys):
    assert invoke(["run", "q.sql", "--master", "none"]) == 0
    plain = capsys.readouterr().out
    assert invoke(["run", "q.sql", "--master", "none", "--out", "console:"]) == 0
    assert capsys.readouterr().out == plain
    assert plain.count("\n") == 5


def test_a_run_goes_on_where_the_same_folder_is_named_otherwise(tmp_path, capsys):
    run = ["run", "q.sql", "--master", "none", "--checkpoint", "c", "--out"]
    assert invoke([*run, "o?format=csv"]) == 0
    capsys.readouterr()
    assert invoke([*run, f"file://{tmp_path}/o", "--format", "csv"]) == 0
    assert "finished" in capsys.readouterr().err
    assert results("o", "csv") == EXPECTED
