"""The policy by model on the command line: what it says of input without rates, and its status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tidegate.cli.command.ctl import status_text
from tidegate.cli.main import invoke

PACKETS = """
CREATE STREAM packets FROM 'generator:packets?rows=600&rate=10';
SELECT src, COUNT(*) AS n FROM packets [RANGE 10 SECONDS] GROUP BY src;
"""


def test_over_files_it_says_once_that_there_are_no_rates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("q.sql").write_text(PACKETS)
    options = ["--master", "none", "--batch-rows", "100", "--summary", "s.json", "--out", "out"]
    assert invoke(["run", "q.sql", "--policy", "model?maximum=4", *options]) == 0
    assert caplog.text.count("no source of it is live") == 1
    summary = json.loads(Path("s.json").read_text())
    assert (summary["batches"], summary["predicted"], summary["saso"]) == (6, None, None)
    assert all("by" not in epoch for epoch in summary["epochs"])


STATUS = {
    "batch": 7,
    "frontier_us": 0,
    "rows_in": 10,
    "rows_out": 5,
    "rows_late": 0,
    "rows_rejected": 0,
    "rows_shed": 0,
    "state_rows": 0,
    "state_bytes": 0,
    "state_rows_max": 0,
    "state_bytes_max": 0,
    "subqueries": {"join": {"instances": 2, "epoch": 1}},
    "executors": None,
    "policy": {"name": "model", "failure": None, "remark": None},
    "advice": [],
    "pending": [],
    "window_lines": [],
    "change_lines": [],
    "epochs": [],
    "newest_batch_ms": 8.0,
    "recent_batches_ms": {"p50": 8.0, "p95": 9.0},
    "rows_per_second": 100.0,
    "latency_recent_batches_ms": {"p50": 12.0, "p95": 14.0, "p99": 20.0},
    "backlog": None,
}


@pytest.mark.parametrize(
    ("predicted", "told"),
    [
        (None, None),
        ({"latency_ms": None, "load": None, "over_run": {"seconds": 5}}, None),
        (
            {"latency_ms": 12.3, "measured_latency_ms": 13.4, "load": 0.351, "slowdown": 1.1},
            "predicted mean latency 12 ms, measured 13 ms; load 35%",
        ),
        (
            {"latency_ms": 2_300.0, "measured_latency_ms": None, "load": 1.4, "slowdown": 1.64},
            "predicted mean latency 2.3 s; load 140%, falls behind; "
            "batches take 1.6 times as long as before",
        ),
    ],
)
def test_ctl_status_has_the_prediction_below_the_latency(
    predicted: dict[str, object] | None, told: str | None
) -> None:
    lines = status_text({**STATUS, "predicted": predicted}).splitlines()
    latency = next(place for place, line in enumerate(lines) if line.startswith("latency p50"))
    assert (lines[latency + 1] == told) if told else not any("predicted" in s for s in lines)
