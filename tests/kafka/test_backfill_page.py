"""The queries of docs/backfill.md, run as they stand but for the places they name."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tools.kafka import Broker

from tests.kafka.topic import send
from tidegate.cli.main import invoke

PAGE = Path(__file__).parents[2] / "docs" / "backfill.md"
QUERY, KEEP = re.findall(r"```sql\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def test_a_history_is_filled_and_gone_on_with_as_the_page_says(
    broker: Broker,
    topic: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    broker.create(topic, 2)
    rows = [{"ts": f"2024-01-01T00:00:{n:02d}Z", "route": "a", "fare": n} for n in range(30)]
    bodies = [(n % 2, json.dumps(row).encode()) for n, row in enumerate(rows)]
    for name, text in (("q.sql", QUERY), ("keep.sql", KEEP)):
        Path(name).write_text(text.replace("localhost:9092/rides", f"{broker.address}/{topic}"))
    [keep] = re.findall("^tidegate (run keep.sql .*)$", PAGE.read_text(), re.MULTILINE)
    send(broker, topic, bodies[:15])
    assert invoke([*keep.split(), "--master", "none"]) == 0, capsys.readouterr()
    send(broker, topic, bodies[15:])
    capsys.readouterr()
    assert invoke(["run", "q.sql", "--master", "none", "--out", "out", "--format", "json"]) == 0
    files = sorted(Path("out").glob("batch=*/*"))
    found = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert [row["n"] for row in found] == [10, 10, 10]
    assert invoke(["explain", "q.sql"]) == 0
    assert "backfill: the topic goes on after the last offset" in capsys.readouterr().out
    place = f"rides=delta:rides-history THEN kafka://{broker.address}/{topic}?from=history"
    Path("q.sql").write_text("SELECT COUNT(*) AS n FROM rides [RANGE 1 MINUTE]")
    assert invoke(["run", "q.sql", "--master", "none", "--stream", place, "--out", "all"]) == 0
    assert "30 rows in, 1 out" in capsys.readouterr().err
