"""The new sink that CONTRIBUTING.md shows: one file, one line, and nothing lost in a crash."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from tests.docs.block import ROOT
from tidegate.batch import from_bytes

SQL = """
CREATE STREAM rides FROM 'generator:taxi?rows=2000&rate=2' TIME dropoff_time;
SELECT route, COUNT(*) AS n FROM rides [RANGE 60 SECONDS] GROUP BY route
"""
PROGRAM = """
import sys
import tidegate as tg
from tidegate.testing import KillAt

query = tg.Session(master="none").sql(open("q.sql").read())
kill = KillAt(sys.argv[1], int(sys.argv[2])) if len(sys.argv) > 1 else None
options = {"checkpoint": "state", "batch_rows": 300, "instances": 2, "observer": kill}
query.start(sink="arrow:out", **options).wait()
"""


def shown() -> list[str]:
    """The blocks of Python in the section on sinks."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (section,) = re.findall(r"^## A new sink\n(.*?)^## ", text, re.MULTILINE | re.DOTALL)
    return re.findall(r"^```python\n(.*?)^```", section, re.MULTILINE | re.DOTALL)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package with the sink of the page put into it, as a contributor would."""
    file, line = shown()
    copied = tmp_path / "src" / "tidegate"
    shutil.copytree(ROOT / "src/tidegate", copied, ignore=shutil.ignore_patterns("__pycache__"))
    new, registry = copied / "sink" / "arrow.py", copied / "sink" / "registry.py"
    assert not new.exists()
    new.write_text(file, encoding="utf-8")
    text, table = registry.read_text(encoding="utf-8"), "SINKS: dict[str, str] = {\n"
    assert text.count(table) == 1
    assert line.count("\n") == 1
    registry.write_text(text.replace(table, f"{table}    {line}"), encoding="utf-8")
    return copied.parent


def run(package: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    folder.mkdir(exist_ok=True)
    (folder / "q.sql").write_text(SQL)
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        check=False,
    )


def results(folder: Path) -> dict[str, pa.Table]:
    return {p.name: from_bytes(p.read_bytes()) for p in sorted(folder.glob("out/[!.]*.arrow"))}


def test_it_survives_crashes_on_both_sides_of_the_commit(package: Path, tmp_path: Path) -> None:
    steady, crashed = tmp_path / "steady", tmp_path / "crashed"
    done = run(package, steady, "-c", PROGRAM)
    assert done.returncode == 0, done.stderr
    whole = results(steady)
    assert sum(t.num_rows for t in whole.values()) > 100
    assert len(whole) > 4
    for step, batch in (("before commit", 0), ("after commit", 0), ("after commit", 3)):
        killed = run(package, crashed, "-c", PROGRAM, step, str(batch))
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        assert len(results(crashed)) == batch, "the newest batch is written and not published"
        committed = (crashed / f"state/manifest/{batch:08d}.json").exists()
        assert committed == (step == "after commit")
    again = run(package, crashed, "-c", PROGRAM)
    assert again.returncode == 0, again.stderr
    assert results(crashed) == whole
    assert sorted(os.listdir(crashed / "out")) == list(whole), "nothing hidden is left"
    manifest = json.loads(sorted(crashed.glob("state/manifest/*"))[-1].read_text())
    (receipt,) = manifest["outputs"][""]
    path = crashed / "out" / receipt["name"]
    assert receipt["bytes"] == path.stat().st_size


def test_the_command_line_knows_it(package: Path, tmp_path: Path) -> None:
    command = "from tidegate.cli.main import main; main()"
    words = ("-c", command, "run", "q.sql", "--master", "none", "--out")
    done = run(package, tmp_path / "cli", *words, "arrow:out")
    assert done.returncode == 0, done.stderr
    assert len(results(tmp_path / "cli")) == 1
    again = run(package, tmp_path / "cli", *words, "arrow:out")
    assert again.returncode == 2
    assert re.search(r"out: must be without results; got 0{8}-0{5}\.arrow\.", again.stderr)
    typo = run(package, tmp_path / "cli", *words, "arow:out")
    assert "Did you mean arrow? There are: arrow, file, console, s3" in typo.stderr
