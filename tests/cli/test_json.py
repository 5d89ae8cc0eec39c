"""`--json`: every command that prints a table or figures prints them as JSON too."""

from __future__ import annotations

import io
import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

import tidegate as tg
from tests.driver.scene import memory
from tests.session.test_query import until
from tidegate.cli.main import commands, invoke

QUERY = """
CREATE STREAM calls FROM 'generator:calls?rows=2000&rate=50&keys=20' TIME ts;
CREATE STREAM minutes AS
SELECT district, COUNT(*) AS n FROM calls [RANGE 10 SECONDS] GROUP BY district;
SELECT district, MAX(n) AS most FROM minutes [RANGE 1 MINUTE] GROUP BY district
"""
WITHOUT = {
    "run": "its rows go to --out, its figures to --summary FILE, its lines with --log-format json",
    "demo": "a show for a person",
    "dashboard": "a server, until Ctrl-C; its page has /api",
}
ON_SPARK = {"audit": "tests/spark/test_audit.py"}
"""Those that need Spark, and where they are called."""
CALLS = {
    "explain": "explain q.sql --master none",
    "compare": "compare q.sql q.sql",
    "plan": "plan q.sql --master none --sample 1000",
    "calibrate": "calibrate q.sql --master none --rows 2000 --instances 1",
    "simulate": "simulate --experiment section8-1",
    "generate": "generate taxi --list",
    "sql": "sql --master none",
    "state": "state c",
    "report": "report c -o page.html",
    "digest": "digest finished",
    "verify": "verify finished q.sql",
    "why": "why finished q.sql --row 0",
    "replay": "replay finished q.sql --batch 0",
    "ctl scale": "ctl c scale 2",
    "ctl rebalance": "ctl c rebalance",
    "ctl move": "ctl c move 0 0",
    "ctl switch": f"ctl c switch {shlex.quote(json.dumps([0] * 64))}",
    "ctl policy": "ctl c policy fixed",
    "ctl status": "ctl c status",
    "ctl shed": "ctl c shed 50 percent",
    "ctl pause": "ctl c pause",
    "ctl resume": "ctl c resume",
    "ctl stop": "ctl c stop",
}
"""How each is called; the last one ends the query."""


def leaves(group: click.Group, before: str = "") -> Iterator[tuple[str, click.Command]]:
    """All commands that do something, by the words that call them."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from leaves(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


def test_every_command_has_it_or_a_reason_not_to() -> None:
    found = {
        name: any("--json" in parameter.opts for parameter in command.params)
        for name, command in leaves(commands)
    }
    assert {name for name, has in found.items() if not has} == set(WITHOUT)
    assert {name for name, has in found.items() if has} == {*CALLS, *ON_SPARK}


@pytest.fixture
def query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tg.RunningQuery]:
    monkeypatch.chdir(tmp_path)
    Path("q.sql").write_text(QUERY)
    places = ["--out", "out", "--checkpoint", "finished"]
    assert invoke(["run", "q.sql", "--master", "none", *places]) == 0
    source = memory((1, "a", 1), (12, "a", 2))
    stream = tg.Session(master="none").stream(source, time="ts", name="s").window(10)
    running = stream.agg(n=tg.count()).shed(up_to=0.5).start(sink=tg.sink.memory(), checkpoint="c")
    until(lambda: Path("c/journal/status.json").exists(), running)
    yield running
    running.stop()


def test_all_of_them_print_one_document(
    query: tg.RunningQuery, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    printed: dict[str, Any] = {}
    for name, call in CALLS.items():
        monkeypatch.setattr(sys, "stdin", io.StringIO(f"{QUERY.strip()};\n"))
        code = invoke([*shlex.split(call), "--json"])
        shown = capsys.readouterr()
        assert code == 0, (name, shown.err)
        lines = shown.out.splitlines() if name == "sql" else [shown.out]
        printed[name] = json.loads(lines[-1])
    assert printed["explain"]["subqueries"][1]["takes"][0]["subquery"] == "minutes"
    assert printed["explain"]["outputs"][0]["columns"]["most"] == "bigint"
    assert printed["compare"]["outputs"][0]["rows"]["new"] > 0
    assert printed["plan"]["instances"].keys() == printed["plan"]["loads"].keys()
    assert printed["plan"]["command"][:3] == ["tidegate", "run", "q.sql"]
    assert printed["calibrate"]["subqueries"]
    assert printed["simulate"][0]["t"] == 0
    assert printed["generate"][0]["columns"]["route"] == "string"
    assert printed["sql"]["columns"]["most"] == "bigint"
    assert printed["sql"]["rows"][0]["most"] > 0
    assert printed["report"]["bytes"] == Path("page.html").stat().st_size
    assert printed["verify"]["equal"]
    assert printed["why"]["again"]["equal"]
    assert printed["replay"]["equal"]
    assert printed["digest"]["digests"][""]["rows"] == printed["verify"]["outputs"][""]["rows"]
    assert printed["ctl scale"]["subqueries"]["aggregate"]["instances"] == 2
    assert printed["ctl pause"] == {"state": "paused"}
    assert printed["ctl stop"] == {"state": "stopping"}


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("explain q.sql --master none --strategy all", "strategies"),
        ("plan q.sql --master none --sample 2000 --rate 100", "choices"),
        ("generate taxi --rows 10 --out t.csv", "bytes"),
    ],
)
def test_other_tables_of_the_same_commands(
    call: str,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("q.sql").write_text(QUERY)
    assert invoke([*call.split(), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[name]
