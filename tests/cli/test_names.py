"""Subqueries by the names of what they make, wherever a person meets them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tidegate.cli.main import invoke
from tidegate.state.store import Store

SQL = """
CREATE STREAM calls FROM 'generator:calls?rows=3000&rate=50&keys=40' TIME ts;
CREATE STREAM callers AS
SELECT src, COUNT(*) AS n FROM calls [RANGE 10 SECONDS] GROUP BY src;
INSERT INTO often SELECT * FROM callers WHERE n > 3;
INSERT INTO most SELECT MAX(n) AS n FROM callers [RANGE 1 MINUTE];
"""
RUN = ["run", "q.sql", "--master", "none", "--batch-rows", "700", "--out", "o"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("q.sql").write_text(SQL)


def test_explain_calls_them_by_what_they_make(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["explain", "q.sql", "--master", "none"]) == 0
    said = capsys.readouterr().out
    assert "  1 callers: aggregate over [RANGE 10 seconds] by src\n" in said
    assert "  2 most: aggregate over [RANGE 1 minute] by nothing\n    takes callers" in said
    assert "output often, of callers\n" in said


@pytest.mark.parametrize("called", ["callers", "aggregate"])
def test_options_and_the_summary_know_them(called: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Also as they were called before they had names."""
    options = ["--instances", f"{called}=2", "--switch", f"{called}:2=3", "--summary", "s.json"]
    assert invoke([*RUN, *options, "--checkpoint", "c"]) == 0
    assert "\ncallers epoch 1: 3 instances from batch 2, " in capsys.readouterr().err
    summary = json.loads(Path("s.json").read_text())
    assert {e["subquery"] for e in summary["epochs"]} == {"callers", "most"}
    assert {e["subquery"] for e in summary["per_instance"]} == {"callers", "most"}
    busy = {name: load["utilisation"] for name, load in summary["load"].items()}
    assert {name: len(shares) for name, shares in busy.items()} == {"callers": 3, "most": 1}
    assert all(0 < share < 1.5 for shares in busy.values() for share in shares)
    assert all(load["hottest_buckets"] for load in summary["load"].values())


def test_a_checkpoint_does_not_depend_on_them() -> None:
    assert invoke([*RUN, "--checkpoint", "c"]) == 0
    manifest = Store.open("c").latest()
    assert manifest is not None
    assert set(manifest.mappings) == {"aggregate", "aggregate2"}
    Path("q.sql").write_text(SQL.replace("callers", "people"))
    assert invoke([*RUN, "--checkpoint", "c"]) == 0


def test_a_name_that_another_has_by_itself_is_not_taken(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("q.sql").write_text(SQL.replace("callers", "aggregate2"))
    assert invoke(["explain", "q.sql", "--master", "none"]) == 0
    said = capsys.readouterr().out
    assert "  1 aggregate: aggregate over [RANGE 10 seconds] by src\n" in said
    assert "  2 most: aggregate over" in said
