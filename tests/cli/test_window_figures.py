"""What a partitioner has made of windows, as those see it who have started or watch a run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.driver.scene import loop_of, memory
from tests.operate.aggregate.test_split_keys import node_of
from tidegate.cli.command.ctl import status_text
from tidegate.cli.main import invoke
from tidegate.driver.report.status import status_of
from tidegate.driver.report.window_log import newest_figures
from tidegate.plan.lowering.lower import lower
from tidegate.plan.lowering.rule import Choices
from tidegate.route.registry import partitioner_of

PACKETS = """
CREATE STREAM packets FROM 'generator:packets?rows=3000&rate=100';
SELECT src, COUNT(*) AS n FROM packets [RANGE 10 SECONDS] GROUP BY src WITH PARTITIONER {};
"""
SENT = (
    r"aggregate, 3 windows: tuple imbalance [\d.]+%.*, key imbalance [\d.]+%.*, "
    r"hybrid imbalance [\d.]+.*, merging within the largest load in 0%, "
    r"decided in [\d.]+ ms.*, memory .* B.*"
)
MERGED = r"merge, 3 windows: parts per group [\d.]+.*, groups split [\d.]+.*"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ran(name: str) -> dict[str, dict[str, float]]:
    """The largest figures of a run, by subquery."""
    Path("q.sql").write_text(PACKETS.format(name))
    options = [
        "--master",
        "none",
        "--instances",
        "3",
        "--partial",
        "instance",
        "--batch-rows",
        "700",
    ]
    assert invoke(["run", "q.sql", *options, "--summary", "s.json", "--out", name]) == 0
    windows = json.loads(Path("s.json").read_text())["windows"]
    return {
        subquery: {name: spread["max"] for name, spread in of["figures"].items()}
        for subquery, of in windows.items()
    }


def test_the_summary_has_them_in_words_and_as_json(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = ran("pk")
    lines = capsys.readouterr().err.splitlines()
    assert any(re.fullmatch(SENT, line) for line in lines), lines
    assert any(re.fullmatch(MERGED, line) for line in lines), lines
    assert found["aggregate"]["tuples"] == 1000
    assert found["aggregate"]["tuple_imbalance"] < 0.02
    assert 1 < found["merge"]["aggregation_cost"] <= 2
    assert 334 <= found["aggregate"]["largest_load"] < 340


def test_of_hash_they_are_in_the_json_only(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = ran("hash")
    assert "windows:" not in capsys.readouterr().err
    assert list(found) == ["aggregate"]
    assert found["aggregate"]["tuple_imbalance"] > 0.02
    assert (found["aggregate"]["aggregation_cost"], found["aggregate"]["groups_split"]) == (1, 0)


def test_the_status_and_the_view_have_the_newest(tmp_path: Path) -> None:
    sql = "SELECT k, COUNT(*) AS n FROM s [RANGE 10 SECONDS] GROUP BY k"
    plan = lower(node_of(sql), choices=Choices(partitioner=partitioner_of("shuffle")))
    rows = [(t / 2, "ab"[t % 2] if t > 25 else "a", 1) for t in range(60)]
    loop = loop_of(plan, [memory(*rows, end=True)], tmp_path, instances=2)
    loop.run()
    found = status_of(loop)
    newest = found["newest_windows"]["merge"][-1]
    assert newest == {
        "window_end": "1970-01-01T00:00:30Z",
        "groups": 2,
        "parts": newest["parts"],
        "groups_split": newest["parts"] - 2,
        "aggregation_cost": newest["parts"] / 2,
    }
    shown = newest_figures(loop.summary.windows())
    assert shown.startswith("tuple imbalance 0%, key imbalance 0%, parts per group ")
    lines = status_text(found).splitlines()
    assert [line.split(":")[0] for line in lines if "windows:" in line] == [
        "aggregate, 3 windows",
        "merge, 3 windows",
    ]
