"""The new sink that CONTRIBUTING.md shows: one file, one line, and nothing lost in a crash."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from tests.docs.package_copy import PackageCopy, blocks
from tidegate.batch import from_bytes

SQL = """
CREATE STREAM rides FROM 'generator:taxi?rows=2000&rate=2' TIME dropoff_time;
SELECT route, COUNT(*) AS n FROM rides [RANGE 60 SECONDS] GROUP BY route
"""
PROGRAM = """
import json, os, sys
import tidegate as tg
from tidegate.cli.main import main
from tidegate.driver import loop
from tidegate.testing import KillAt

def query(*kill):
    options = {"checkpoint": "state", "batch_rows": 300, "instances": 2}
    asked = tg.Session(master="none").sql(open("q.sql").read())
    asked.start(sink="arrow:out", observer=KillAt(*kill) if kill else None, **options).wait()

def command(*words):
    sys.argv[1:] = words
    main()

for line in sys.stdin:
    folder, name, arguments = json.loads(line)
    child = os.fork()
    if not child:
        os.chdir(folder)
        os.dup2(os.open("said", os.O_CREAT | os.O_WRONLY | os.O_TRUNC), 2)
        os.dup2(2, 1)
        globals()[name](*arguments)
        sys.exit()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Does what each line asks in a process of its own, which is forked: modules are imported once."""


@pytest.fixture
def package(tmp_path: Path) -> PackageCopy:
    """The package with the sink of the page."""
    file, line = blocks("A new sink", "python")
    copy = PackageCopy(tmp_path)
    copy.add_file("sink/arrow.py", file)
    copy.add_line("sink/registry.py", "SINKS: dict[str, str] = {\n", f"    {line}")
    return copy


Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(package: PackageCopy) -> Iterator[Run]:
    """Runs a function of the program in a folder; its exit code, and what was said."""
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": str(package.source)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert program.stdin is not None
    assert program.stdout is not None

    def ask(folder: Path, name: str, *arguments: str | int) -> tuple[int, str]:
        folder.mkdir(exist_ok=True)
        (folder / "q.sql").write_text(SQL)
        program.stdin.write(json.dumps([str(folder), name, arguments]) + "\n")
        program.stdin.flush()
        code = program.stdout.readline()
        assert code, "the program has ended"
        return int(code), (folder / "said").read_text()

    yield ask
    program.communicate()


def results(folder: Path) -> dict[str, pa.Table]:
    return {p.name: from_bytes(p.read_bytes()) for p in sorted(folder.glob("out/[!.]*.arrow"))}


def test_it_touches_its_own_file_and_the_table(package: PackageCopy) -> None:
    assert list(package.touched()) == ["sink/arrow.py", "sink/registry.py"]


def test_it_survives_crashes_on_both_sides_of_the_commit(run: Run, tmp_path: Path) -> None:
    steady, crashed = tmp_path / "steady", tmp_path / "crashed"
    code, said = run(steady, "query")
    assert code == 0, said
    whole = results(steady)
    assert sum(t.num_rows for t in whole.values()) > 100
    assert len(whole) > 4
    for step, batch in (("before commit", 0), ("after commit", 0), ("after commit", 3)):
        code, said = run(crashed, "query", step, batch)
        assert code == -signal.SIGKILL, said
        assert len(results(crashed)) == batch, "the newest batch is written and not published"
        committed = (crashed / f"state/manifest/{batch:08d}.json").exists()
        assert committed == (step == "after commit")
    code, said = run(crashed, "query")
    assert code == 0, said
    assert results(crashed) == whole
    assert sorted(os.listdir(crashed / "out")) == list(whole), "nothing hidden is left"
    manifest = json.loads(sorted(crashed.glob("state/manifest/*"))[-1].read_text())
    (receipt,) = manifest["outputs"][""]
    path = crashed / "out" / receipt["name"]
    assert receipt["bytes"] == path.stat().st_size


def test_the_command_line_knows_it(run: Run, tmp_path: Path) -> None:
    words = ("command", "run", "q.sql", "--master", "none", "--out")
    code, said = run(tmp_path / "cli", *words, "arrow:out")
    assert code == 0, said
    assert len(results(tmp_path / "cli")) == 1
    code, said = run(tmp_path / "cli", *words, "arrow:out")
    assert code == 2
    assert re.search(r"out: must be without results; got 0{8}-0{5}\.arrow\.", said)
    _, said = run(tmp_path / "cli", *words, "arow:out")
    assert "Did you mean arrow? There are: arrow, file, console, " in said
