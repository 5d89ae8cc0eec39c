"""What the page on tables shows runs as it stands."""

from __future__ import annotations

from pathlib import Path

import pytest

import tidegate as tg
from tests.docs.block import blocks

FILES = {
    "rides.csv": "ts,zone,fare\n2024-01-01T00:00:01Z,1,5.5\n2024-01-01T00:10:00Z,9,30.0\n",
    "zones.csv": "id,name,borough\n1,North,Hill\n2,South,Lake\n",
    "classes.csv": "name,low,high\ncheap,0,10\ndear,20,90\n",
    "closed.csv": "id\n9\n",
}


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)


def test_the_queries_run() -> None:
    (text,) = blocks("docs/tables.md", "sql")
    first, *others = text.split("\n\n")
    create = (
        first
        + "\nCREATE TABLE classes FROM 'classes.csv';\nCREATE TABLE closed FROM 'closed.csv';\n"
    )
    found = []
    for query in others:
        sink = tg.sink.memory()
        tg.Session(master="none").sql(create + query).start(sink=sink).wait()
        found.append([list(row.values())[-2:] for row in sink.table().to_pylist()])
    assert found == [[[5.5, "North"], [30.0, None]], [[1, 5.5]], [[5.5, "cheap"]]]


def test_the_program_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = blocks("docs/tables.md", "python")
    names: dict[str, tg.Stream] = {}
    exec(compile(program, "docs/tables.md", "exec"), names)
    assert "North" in capsys.readouterr().out
    rows = names["hourly"].preview().to_pylist()
    assert [(row["borough"], row["n"]) for row in rows] == [(None, 1), ("Hill", 1)]
