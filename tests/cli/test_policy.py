"""`--policy`: instances that change by themselves, and rows that do not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tidegate.cli.main import invoke

COUNTS = """
CREATE STREAM rides FROM 'generator:taxi?rows=30000&rate=100' TIME dropoff_time;
SELECT route, COUNT(*) AS n FROM rides [RANGE 1 MINUTE] GROUP BY route
"""
HASTY = "threshold?maximum=2&batches=1&seconds=0&cooldown=0&improvement=0&lower=0.001"


def ran(*options: str) -> dict[str, Any]:
    """The summary of a run without Spark."""
    words = ["run", "q.sql", "--master", "none", "--batch-rows", "2000", "--summary", "s.json"]
    assert invoke([*words, *options]) == 0
    found: dict[str, Any] = json.loads(Path("s.json").read_text())
    return found


def test_a_policy_changes_the_instances_and_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("q.sql").write_text(COUNTS)
    fixed = ran("--instances", "1", "--format", "csv", "--out", "fixed")
    capsys.readouterr()
    found = ran(
        *("--instances", "1", "--format", "csv", "--out", "o", "--checkpoint", "c"),
        *("--policy", HASTY),
    )
    said = capsys.readouterr().err
    assert [e["by"] for e in fixed["epochs"] if e["epoch"]] == []
    first = next(e for e in found["epochs"] if e["epoch"])
    assert (first["by"], first["before"], first["instances"]) == ("policy threshold", 1, 2)
    assert first["why"].endswith("above 0.90: 1 -> 2 instances")
    assert "asked by policy threshold" in said
    parts = sorted(p.relative_to("o") for p in Path("o").rglob("*.csv"))
    assert len(parts) == 5
    assert parts == sorted(p.relative_to("fixed") for p in Path("fixed").rglob("*.csv"))
    assert all(Path("o", p).read_bytes() == Path("fixed", p).read_bytes() for p in parts)
    assert invoke(["state", "c"]) == 0
    shown = capsys.readouterr().out
    assert "policy\n  name: threshold\n" in shown
    assert "memory" not in shown
