"""What the page on sinks shows runs as it stands, and loses nothing wherever the process dies."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import tidegate as tg
from tests.docs.block import ROOT, blocks
from tidegate.sink.protocol import Opening
from tidegate.testing import STEPS

START = datetime(2024, 1, 1, tzinfo=UTC)


class Died(BaseException):
    """Instead of the end of a process."""


def dies_at(step: str, batch: int) -> Callable[[str, int], None]:
    def observe(reached: str, at: int) -> None:
        if (reached, at) == (step, batch):
            raise Died

    return observe


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the sink of the page defines, over a stream `rides`, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"rides": rides()}
    exec(compile(blocks("docs/sinks.md", "python")[1], "docs/sinks.md", "exec"), names)
    return names


def rides() -> tg.Stream:
    rows = [{"at": START + timedelta(seconds=7 * i), "route": "abc"[i % 3]} for i in range(120)]
    source = tg.MemorySource(rows, time="at")
    source.end()
    return tg.Session(master="none").stream(source, time="at")


def table(path: str = "rides.db") -> list[tuple[Any, ...]]:
    with sqlite3.connect(path) as database:
        return database.execute("SELECT * FROM counts ORDER BY rowid").fetchall()


def test_the_newest_of_each_key_runs_as_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [f"2024-01-01 00:{minute:02}:30,{'ab'[minute % 2]}" for minute in range(50)]
    Path("calls.csv").write_text("\n".join(["ts,district", *lines]), encoding="utf-8")
    names: dict[str, Any] = {"tg": tg}
    exec(compile(blocks("docs/sinks.md", "python")[0], "docs/sinks.md", "exec"), names)
    found = names["sink"].table()
    assert [(row["district"], row["n"]) for row in found.to_pylist()] == [("a", 25), ("b", 25)]


def test_the_program_runs_as_it_stands(page: dict[str, Any]) -> None:
    exec(compile(blocks("docs/sinks.md", "python")[2], "docs/sinks.md", "exec"), page)
    rows = table()
    assert sum(row[-1] for row in rows) == 120
    assert rows[0][1:] == ("2024-01-01 00:00:00.000000Z", "2024-01-01 00:01:00.000000Z", "a", 3)


def test_the_sink_has_each_batch_once_wherever_the_process_dies(page: dict[str, Any]) -> None:
    query = rides().window("1 minute").group_by("route").agg(n=tg.count())

    def run(path: str, observer: Any = None) -> None:
        sink = page["SqliteSink"](path, "counts")
        query.start(sink=sink, checkpoint=f"{path}-state", batch_rows=25, observer=observer).wait()

    run("steady.db")
    whole = table("steady.db")
    assert len({row[0] for row in whole}) > 3
    for batch in (0, 2):
        for step in STEPS[:5]:
            with pytest.raises(Died):
                run("rides.db", dies_at(step, batch))
            assert table() == [row for row in whole if row[0] < batch]
    with pytest.raises(Died):
        run("rides.db", dies_at("after publish", 3))
    assert table() == [row for row in whole if row[0] <= 3]
    run("rides.db")
    assert table() == whole
    run("rides.db")
    assert table() == whole, "a start after the end publishes the newest batch in its own place"


def test_the_page_names_all_there_is() -> None:
    text = (ROOT / "docs/sinks.md").read_text(encoding="utf-8")
    members = {n: m for n, m in vars(tg.sink.Sink).items() if not n.startswith("_")}
    calls = [n for n, member in members.items() if callable(member)]
    assert [n for n in calls if f"`{n}(" not in text] == []
    assert [n for n in members if n not in calls and f"`{n}" not in text] == []
    assert [n for n in Opening.__dataclass_fields__ if n not in text] == []


def test_the_simulation_of_the_page_runs_as_it_stands(
    page: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    exec(compile(blocks("docs/sinks.md", "python")[3], "docs/sinks.md", "exec"), page)
    faults = int(capsys.readouterr().out.split()[0])
    assert faults >= 20
