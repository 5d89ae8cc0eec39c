"""The new operator that CONTRIBUTING.md shows: one file, one line, the same rows for any cut."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.docs.package_copy import PackageCopy, blocks

PROGRAM = """
import datetime as dt, json, sys
from dataclasses import replace
import tidegate as tg
from tidegate.plan.latest import Latest

rows = json.loads(sys.stdin.read())
found = []
for options in ({}, {"batch_rows": 7, "instances": 3, "switches": {2: 2}}, {"batch_rows": 1}):
    source = tg.MemorySource(
        [{**row, "ts": dt.datetime.fromtimestamp(row["ts"], dt.UTC)} for row in rows], time="ts"
    )
    source.end()
    stream = tg.Session(master="none").stream(source, time="ts", name="r")
    latest = replace(stream, node=Latest(stream.where(tg.col("v") != 13).node, "K"))
    query = latest.where(tg.col("v") < 70).select("k", w=tg.col("v") * 2)
    sink = tg.sink.memory()
    query.start(sink=sink, **options).wait()
    table = sink.table().to_pylist()
    found.append([[row["ts"].timestamp(), row["k"], row["w"]] for row in table])
mistake = ""
try:
    Latest(stream.node, "q")
except tg.QueryError as error:
    mistake = str(error)
print(json.dumps([found, query.explain(), mistake]))
"""

ROWS = [{"ts": i // 6, "k": "abc"[i * 7 // 2 % 3], "v": i} for i in range(90)]


@pytest.fixture
def package(tmp_path: Path) -> PackageCopy:
    (file,) = blocks("A new operator", "python")
    imported, line = blocks("A new operator", "text")
    copy = PackageCopy(tmp_path)
    copy.add_file("plan/latest.py", file)
    copy.add_line("plan/lowering/lower.py", "RULES: dict[type, Rule] = {\n", line)
    copy.add_line(
        "plan/lowering/lower.py",
        "from tidegate.plan.cut import Cutting, Unit\n",
        imported,
    )
    return copy


def test_it_touches_its_own_file_and_the_table(package: PackageCopy) -> None:
    assert list(package.touched()) == ["plan/latest.py", "plan/lowering/lower.py"]


def test_it_runs_and_gives_the_same_rows_for_any_cut(package: PackageCopy) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": str(package.source)},
        input=json.dumps(ROWS),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found, explained, mistake = json.loads(done.stdout)
    wanted = plain_twin()
    assert 20 < len(wanted) < len(ROWS)
    assert found == [wanted] * 3
    assert "1 latest: the last tuple of each key at an instant" in explained
    assert mistake.startswith("latest: no column has this name; got q.")


def plain_twin() -> list[list[Any]]:
    """The rows that the program asks for, row by row."""
    last: dict[tuple[int, str], int] = {}
    for row in ROWS:
        if row["v"] != 13:
            last.pop((row["ts"], row["k"]), None)
            last[row["ts"], row["k"]] = row["v"]
    return [[float(ts), k, v * 2] for (ts, k), v in last.items() if v < 70]
