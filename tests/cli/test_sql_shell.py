"""`tidegate sql`: through a pseudo terminal as a person uses it, and from standard input."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from tidegate.cli.main import invoke
from tidegate.cli.prompt import SqlCompleter
from tidegate.session.place import Place
from tidegate.session.shell import HELP, SqlShell
from tidegate.sql.statement import divided

ROWS = "ts,route,a b\n2024-01-01T00:00:01Z,north,5.5\n2024-01-01T00:00:04Z,south,7.5\n"
CREATE = "CREATE STREAM rides FROM 'rides.csv' TIME ts;"
PROMPT, MORE = "tidegate>", r"\.\.\.>"
UP, TAB = "\x1b[A", "\t"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rides.csv").write_text(ROWS)


def started(*options: str) -> pexpect.spawn:
    environment = {**os.environ, "TERM": "xterm", "XDG_STATE_HOME": os.getcwd()}
    environment |= {"PROMPT_TOOLKIT_NO_CPR": "1", "NO_COLOR": "1"}
    arguments = ["-m", "tidegate", "sql", "--master", "none", *options]
    return pexpect.spawn(
        sys.executable,
        arguments,
        env=environment,
        encoding="utf-8",
        timeout=240,
        dimensions=(50, 160),
        preexec_fn=_heed_ctrl_c,
        use_poll=True,  # select() takes no number from 1,024 on, and a worker may have such files
    )


def _heed_ctrl_c() -> None:
    """Tests that run in the background are deaf to it, and so would be what they start."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture
def terminal() -> Iterator[pexpect.spawn]:
    child = started("--stream", "rides=rides.csv")
    child.expect(PROMPT)
    yield child
    child.close(force=True)


def test_statements_of_several_lines_mistakes_and_the_end(terminal: pexpect.spawn) -> None:
    terminal.send("SELECT route\r")
    terminal.expect(MORE)
    terminal.send("FROM rides;\r")
    terminal.expect("2024-01-01 00:00:04 +south")
    terminal.expect("2 rows, the whole result")
    terminal.expect(PROMPT)
    terminal.send("SELECT rute FROM rides;\r")
    terminal.expect("tidegate: SELECT: no column has this name; got rute. Did you mean route?")
    terminal.expect(PROMPT)
    terminal.send("CREATE STREAM north AS SELECT route FROM rides WHERE route = 'north';\r")
    terminal.expect("stream north")
    terminal.expect(PROMPT)
    terminal.send("SELECT COUNT(*) AS n FROM north [RANGE 1 HOUR];\r")
    terminal.expect("2024-01-01 01:00:00 +1")
    terminal.expect(PROMPT)
    terminal.sendeof()
    terminal.expect(pexpect.EOF)
    terminal.wait()
    assert terminal.exitstatus == 0


def test_words_are_completed_and_history_is_kept(terminal: pexpect.spawn) -> None:
    for begun, end in (("SELECT route AS x, rout", "e"), (" FROM rid", "es")):
        terminal.send(begun)
        terminal.expect(begun[-3:])
        terminal.send(TAB)
        terminal.expect(end)
    terminal.send(" WHERE route = 'south';\r")
    terminal.expect("south +south")
    terminal.expect(PROMPT)
    terminal.send(".quit\r")
    terminal.expect(pexpect.EOF)
    later = started("--stream", "rides=rides.csv")
    later.expect(PROMPT)
    later.send(UP + UP)
    later.send("\r")
    assert later.expect(["south +south", "tidegate: "]) == 0
    later.close(force=True)


def test_ctrl_c_stops_the_query_and_not_the_shell(terminal: pexpect.spawn) -> None:
    terminal.send("CREATE STREAM many FROM 'generator:taxi?rows=10000000000' TIME dropoff_time;\r")
    terminal.expect("stream many")
    terminal.expect(PROMPT)
    terminal.send(".read 10000000000\r")
    terminal.expect("at most: 10,000,000,000")
    terminal.expect(PROMPT)
    terminal.send("SELECT * FROM many WHERE fare < 0;\r")
    for _ in range(200):  # the first may come before the prompt has given the terminal back
        terminal.sendintr()
        if terminal.expect(["stopped", pexpect.TIMEOUT], timeout=1) == 0:
            break
    else:
        pytest.fail("Ctrl-C does not stop the query")
    terminal.expect(PROMPT)
    terminal.send("SELECT * FROM rides\r")
    terminal.expect(MORE)
    terminal.sendintr()
    terminal.expect(PROMPT)
    terminal.send(".streams\r")
    terminal.expect("rides: ts, route, a b")


def given(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


def test_without_a_terminal_statements_are_read_plainly(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given(f"{CREATE} SELECT route FROM rides; -- ;\n.rows 1\nSELECT route\nFROM rides", monkeypatch)
    assert invoke(["sql", "--master", "none"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert said.out.splitlines() == [
        "stream rides",
        "  ts     timestamp",
        "  route  string",
        "  a b    double",
        "ts                   route",
        "2024-01-01 00:00:01  north",
        "2024-01-01 00:00:04  south",
        "2 rows, the whole result (2 rows of the input read)",
        "rows shown of a result: 1",
        "ts                   route",
        "2024-01-01 00:00:01  north",
        "first 1 row (2 rows of the input read)",
    ]


def test_a_mistake_is_a_line_and_the_rest_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given(f"{CREATE}\nSELEC 1;\nCREATE STREAM rides FROM 'no.csv';\n.rowz\n.streams\n", monkeypatch)
    assert invoke(["sql", "--master", "none"]) == 2
    said = capsys.readouterr()
    assert said.out.splitlines()[-1] == "rides: ts, route, a b"
    assert [line.split(";")[0] for line in said.err.splitlines()] == [
        "tidegate: SQL line 1, column 1: expected CREATE STREAM, INSERT INTO or SELECT",
        "tidegate: stream rides, no.csv: the file or folder must be there",
        "tidegate: shell: no command has this name",
    ]


def test_a_pipe_that_is_closed_ends_it() -> None:
    text = f"{CREATE}\nquit\nSELEC;\n".encode()
    command = [sys.executable, "-m", "tidegate", "sql", "--master", "none"]
    done = subprocess.run(command, input=text, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def shell() -> SqlShell:
    return SqlShell(Place("none"), uris={"rides": ["rides.csv"]}, times={"rides": "ts"})


def test_streams_can_be_made_again_and_what_reads_them_is_made_again_too() -> None:
    made = shell()
    made.answer("CREATE STREAM fares AS SELECT `a b` AS fare FROM rides")
    made.answer("CREATE STREAM fares AS SELECT `a b` * 2 AS fare FROM rides")
    assert "11.0" in str(made.answer("SELECT * FROM fares WHERE fare < 12"))
    assert made.answer("DESCRIBE fares") == "fares\n  ts    timestamp\n  fare  double"
    assert made.answer("\\d") == "rides: ts, route, a b\nfares: ts, fare"
    assert made.answer("EXPLAIN SELECT * FROM fares").startswith("query\n")
    assert made.answer(".help") == HELP
    assert made.answer("  ") == ""


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("SELECT rou", ["route", "round"]),
        ("SELECT ROU", ["route", "ROUND"]),
        ("SELECT rides.", ["ts", "route", "`a b`"]),
        ("SELECT r.ro", ["route"]),
        ("SELECT * FROM rid", ["rides"]),
        ("CREATE STRE", ["STREAM"]),
        ("SELECT APPROX_C", ["APPROX_COUNT_DISTINCT"]),
    ],
)
def test_what_is_offered(typed: str, offered: list[str]) -> None:
    completer = SqlCompleter(lambda: shell().columns())
    found = completer.get_completions(Document(typed), CompleteEvent())
    assert [completion.text for completion in found] == offered


@pytest.mark.parametrize(
    ("text", "statements", "rest"),
    [
        ("SELECT 1; SELECT ';' -- ;\n;", ["SELECT 1", "SELECT ';' -- ;"], ""),
        ("SELECT 1; SELECT 2", ["SELECT 1"], " SELECT 2"),
        ("SELECT 'ü'; -- done", ["SELECT 'ü'"], ""),
        ("SELECT ';", [], "SELECT ';"),
        (" ; ;", [], ""),
    ],
)
def test_where_statements_end(text: str, statements: list[str], rest: str) -> None:
    assert divided(text) == (statements, rest)
