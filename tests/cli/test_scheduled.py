"""The same command again and again over a folder that gets files, as a scheduler runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tidegate.cli.main import invoke

SQL = """
CREATE STREAM rides FROM 'in' TIME ts;
SELECT route, COUNT(*) AS n FROM rides [RANGE 10 SECONDS] GROUP BY route
"""
RUN = ["run", "q.sql", "--master", "none", "--out", "o", "--checkpoint", "c"]
NOW = [*RUN, "--available-now"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    Path("q.sql").write_text(SQL)
    arrive("1", 1, 5, 12)


def arrive(name: str, *seconds: int) -> None:
    lines = [f"2024-01-01T00:00:{second:02d}Z,a" for second in seconds]
    Path("in", f"{name}.csv").write_text("\n".join(["ts,route", *lines]) + "\n")


def results(out: str = "o") -> list[tuple[int, int]]:
    """The second at which each window begins, and how many it counted."""
    tables = [pq.ParquetFile(p).read() for p in sorted(Path(out).glob("batch=*/*.parquet"))]
    return [(r["window_start"].second, r["n"]) for t in tables for r in t.to_pylist()]


def test_each_run_takes_what_is_new_and_leaves_windows_open(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert invoke(NOW) == 0
    assert results() == [(0, 2)]
    assert capsys.readouterr().err.startswith("up to date: 3 rows in, 1 out")
    assert invoke(NOW) == 0
    assert ", none in this run" in capsys.readouterr().err
    arrive("2", 13, 25)
    arrive("3", 26, 31)
    assert invoke([*NOW, "--summary", "s.json"]) == 0
    assert results() == [(0, 2), (10, 2), (20, 2)]
    summary = json.loads(Path("s.json").read_text())
    assert (summary["up_to_date"], summary["finished"], summary["rows_late"]) == (True, False, 0)


def test_a_last_run_without_it_finishes_the_windows(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(NOW) == 0
    arrive("2", 13, 25)
    assert invoke(RUN) == 0
    assert results() == [(0, 2), (10, 2), (20, 1)]
    assert "finished: 5 rows in" in capsys.readouterr().err
    assert invoke(["run", "q.sql", "--master", "none", "--out", "all"]) == 0
    assert results("all") == results()


def test_a_finished_checkpoint_refuses_new_files_and_names_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert invoke(RUN) == 0
    before = results()
    for name in "23456":
        arrive(name, 13, 25)
    capsys.readouterr()
    for command in (RUN, NOW, [*RUN, "--follow"]):
        assert invoke(command) == 2
        said = capsys.readouterr().err
        assert "c: is finished: its last windows are closed" in said
        assert "got new input in in/2.csv, in/3.csv, in/4.csv and 2 more. " in said
        assert "--available-now" in said
    assert results() == before


def test_a_finished_checkpoint_refuses_a_file_that_has_grown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert invoke(RUN) == 0
    with Path("in/1.csv").open("a") as file:
        file.write("2024-01-01T00:00:13Z,a\n")
    assert invoke(RUN) == 2
    assert "got new input in in/1.csv. " in capsys.readouterr().err


def test_a_finished_checkpoint_refuses_a_source_that_was_added(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert invoke(RUN) == 0
    Path("more.csv").write_text("ts,route\n2024-01-01T00:00:13Z,b\n")
    assert invoke([*RUN, "--stream", "rides=in", "--stream", "rides=more.csv"]) == 2
    assert "got new input in more.csv. " in capsys.readouterr().err


def test_a_finished_checkpoint_without_new_input_says_that_it_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert invoke(RUN) == 0
    capsys.readouterr()
    for command in (RUN, NOW):
        assert invoke(command) == 0
        said = capsys.readouterr().err
        assert said.startswith("tidegate: c is finished already, and there is no new input.\n")


def test_a_line_that_is_being_written_is_for_the_next_run() -> None:
    path = Path("in/1.csv")
    path.write_text("ts,route\n2024-01-01T00:00:01Z,a\n2024-01-01T00:00:12Z,")
    assert invoke(NOW) == 0
    assert results() == []
    with path.open("a") as file:
        file.write("abc\n2024-01-01T00:00:13Z,a\n")
    assert invoke(NOW) == 0
    assert invoke(RUN) == 0
    assert results() == [(0, 1), (10, 1), (10, 1)]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--follow"], "--available-now: cannot be used with --follow"),
        (
            ["--stream", "rides=generator:taxi?pace=10", "--time", "rides=dropoff_time"],
            "got pace=10, which makes them as time goes by",
        ),
    ],
)
def test_what_cannot_be_taken_as_it_is_now(
    more: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke([*NOW, *more]) == 2
    assert said in capsys.readouterr().err
    assert not Path("c").exists()


def test_a_generator_has_an_end_that_finishes_it(capsys: pytest.CaptureFixture[str]) -> None:
    Path("q.sql").write_text(
        "CREATE STREAM rides FROM 'generator:taxi?rows=100' TIME dropoff_time;"
        "SELECT route, COUNT(*) AS n FROM rides [RANGE 1 HOUR] GROUP BY route"
    )
    assert invoke(NOW) == 0
    assert "finished: 100 rows in" in capsys.readouterr().err
