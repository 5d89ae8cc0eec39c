"""What a careless user types: one clear line, exit code 2, nothing written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from tests.cli.mistake import (
    clause,
    command,
    elsewhere,
    keyed,
    lineage,
    option,
    query,
    simulate,
    stream,
    table,
)
from tests.cli.mistake.kind import COUNT, RIDES, Mistake, run_line
from tidegate.cli.main import invoke
from tidegate.execute import java

ROWS = """\
ts,route,fare,note
2024-01-01T00:00:01Z,a,5.0,x
2024-01-01T00:00:02Z,b,7.5,y
"""
TABLES = (query, elsewhere, clause, table, stream, option, command, simulate, keyed, lineage)
MISTAKES = [
    pytest.param(mistake, id=f"{module.__name__.rpartition('.')[2]}: {name}")
    for module in TABLES
    for name, mistake in module.MISTAKES.items()
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    put({"rides.csv": ROWS})
    Path("empty").mkdir()
    return tmp_path


def put(files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())


def contents() -> dict[str, bytes | None]:
    return {str(p): p.read_bytes() if p.is_file() else None for p in sorted(Path().rglob("*"))}


def said(arguments: Sequence[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit code and the one line, of a command that leaves everything as it was."""
    before = contents()
    code = invoke(arguments)
    assert contents() == before, "a mistake must leave nothing behind"
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1 or "What changed:\n  " in shown.err, shown.err
    assert shown.err.startswith("tidegate: ")
    return code, shown.err.removeprefix("tidegate: ").rstrip("\n")


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_clear_line(
    mistake: Mistake, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(dict(mistake.files))
    if mistake.before is not None:
        put({"q.sql": mistake.before.sql})
        assert invoke(run_line(mistake.before.options)) == 0
        capsys.readouterr()
    if mistake.command is None:
        put({"q.sql": mistake.sql})
    arguments = mistake.command or run_line(mistake.options)
    code, message = said(arguments, capsys)
    expected = re.escape(mistake.message.replace("{folder}", str(folder)))
    assert re.fullmatch(expected.replace(re.escape("{words}"), ".+"), message), message
    assert code == 2


def test_no_java(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(folder / "empty"))
    nowhere = partial(java.ensure_java, roots=())
    monkeypatch.setattr("tidegate.session.place.ensure_java", nowhere)
    put({"q.sql": COUNT})
    places = ("--out", "results", "--checkpoint", "state")
    code, message = said(["run", "q.sql", *RIDES, "--master", "local[2]", *places], capsys)
    assert message == (
        "Java: Tidegate on Spark needs Java 17 or newer; got none. Install Java 17 (Debian, "
        "Ubuntu: apt-get install openjdk-17-jre-headless), or set JAVA_HOME, or run "
        'without Spark: --master none, tg.Session(master="none").'
    )
    assert code == 2


def test_text_that_is_no_number_is_told_when_it_is_met(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in Spark, SUM reads text as numbers: only a row can be wrong, so it is a failed run."""
    put({"q.sql": "SELECT SUM(route) AS n FROM rides [RANGE 10 SECONDS]"})
    code, message = said(["run", "q.sql", "--master", "none", *RIDES], capsys)
    assert message == (
        "expression CAST(route AS double): the value must be convertible to double; got 'a'. "
        "Use TRY_CAST to get NULL instead."
    )
    assert code == 1


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        pytest.param("\ufeff" + COUNT, ROWS, id="byte order mark before the query"),
        pytest.param(COUNT.replace(" FROM", "\r\nFROM") + ";\r\n", ROWS, id="Windows query"),
        pytest.param(COUNT, "\ufeff" + ROWS, id="byte order mark before the rows"),
        pytest.param(COUNT, ROWS.replace("\n", "\r\n"), id="Windows rows"),
        pytest.param(COUNT, ROWS.replace("\n", ",\n"), id="comma at the end of lines"),
        pytest.param(COUNT, ROWS + "\n\n", id="empty lines at the end"),
        pytest.param(COUNT, ROWS.rstrip("\n"), id="last line not ended"),
        pytest.param(
            f"{COUNT}; CREATE STREAM rides FROM 'rides.csv'", ROWS, id="SELECT before CREATE STREAM"
        ),
        pytest.param(f"{COUNT} WHERE note <> '‘“'", ROWS, id="curly quotes inside a text"),
    ],
)
def test_what_is_no_mistake(
    sql: str, rows: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put({"q.sql": sql, "rides.csv": rows})
    assert invoke(["run", "q.sql", "--master", "none", *RIDES]) == 0
    window = "2024-01-01 00:00:00.000000Z,2024-01-01 00:00:10.000000Z,2"
    assert capsys.readouterr().out.splitlines()[1:] == [window]


def test_rows_that_are_only_a_header(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put({"q.sql": COUNT, "rides.csv": ROWS.splitlines()[0] + "\n"})
    assert invoke(["run", "q.sql", "--master", "none", *RIDES]) == 0
    assert "finished: 0 rows in, 0 out" in capsys.readouterr().err
