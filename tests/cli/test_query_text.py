"""Queries behind -e and on standard input: rows as from a file, and mistakes by their place."""

from __future__ import annotations

import io
import shlex
import sys
from pathlib import Path

import pytest

from tidegate.cli.main import invoke

ROWS = "ts,route,fare\n2024-01-01T00:00:01Z,a,5.0\n2024-01-01T00:00:04Z,b,7.5\n"
QUERY = "SELECT route, fare FROM rides WHERE fare > 6"
RIDES = ["--stream", "rides=rides.csv", "--time", "rides=ts", "--master", "none"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rides.csv").write_text(ROWS)
    Path("q.sql").write_text(QUERY)


def given(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


@pytest.mark.parametrize("command", ["run", "explain", "plan"])
@pytest.mark.parametrize("words", [["-e", QUERY], ["-"]])
def test_it_is_the_query_of_a_file(
    command: str,
    words: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given(f"\ufeff{QUERY};\n".encode(), monkeypatch)
    assert invoke([command, *words, *RIDES]) == 0
    told = capsys.readouterr().out
    given(b"", monkeypatch)
    assert invoke([command, "q.sql", *RIDES]) == 0
    of_file = capsys.readouterr().out
    if command in ("run", "explain"):
        assert told == of_file
    if command == "run":
        assert told == '"ts","route","fare"\n2024-01-01 00:00:04.000000Z,"b",7.5\n'
    if command == "plan":
        assert f" run {shlex.join(words)} " in told.splitlines()[-1]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "standard input: a script needs a SELECT; got none. Add a SELECT statement."),
        (
            b"SELECT route\nFROM rides WHER fare",
            "standard input line 2, column 17: expected another clause or the end of the "
            "statement; got fare.",
        ),
        (
            b"SELECT \xff",
            "standard input: the query must be UTF-8 text; got the byte 0xff at position 7. Save "
            "it as UTF-8.",
        ),
        (b"SELECT far FROM rides", "SELECT: no column has this name; got far. Did you mean fare?"),
    ],
)
def test_a_mistake_on_standard_input(
    content: bytes,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given(content, monkeypatch)
    assert invoke(["run", "-", *RIDES]) == 2
    assert capsys.readouterr().err.startswith(f"tidegate: {message}")


def test_bytes_behind_e_that_are_no_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["run", "-e", "SELECT \udcff", *RIDES]) == 2
    assert capsys.readouterr().err.startswith("tidegate: -e: the query must be UTF-8 text; got the")
