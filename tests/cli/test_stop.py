"""Ctrl-C and other ways to stop a run from outside, on a real terminal."""

from __future__ import annotations

import signal
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.cli.terminal import HIDE, SHOW, Terminal

COUNTS = """
CREATE STREAM rides FROM 'rides.csv' TIME ts;
SELECT route, COUNT(*) AS n FROM rides [RANGE 10 SECONDS] GROUP BY route
"""
HOURS = """
CREATE STREAM l FROM 'generator:r?rows=400000&rate=400000';
CREATE STREAM r FROM 'generator:s?rows=400000&rate=400000';
SELECT l.x AS x, r.a AS a FROM l [RANGE 1 HOUR] JOIN r [RANGE 1 HOUR] ON SIN(l.x * r.a) > 2
"""
"""One batch that takes a thousand times as long as this test may."""

KEPT = ["--checkpoint", "c", "--out", "o"]
CONTINUE = "Run the same command to continue."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [f"2024-01-01T00:{i // 60:02d}:{i % 60:02d}Z,a" for i in range(300)]
    (tmp_path / "rides.csv").write_text("\n".join(["ts,route", *rows]) + "\n")
    (tmp_path / "counts.sql").write_text(COUNTS)
    (tmp_path / "hours.sql").write_text(HOURS)
    return tmp_path


def running(query: str, folder: Path, *more: str, **environment: str) -> Terminal:
    return Terminal(["run", query, "--master", "none", *more], folder, **environment)


def last_line(screen: list[str]) -> str:
    return [line for line in screen if line][-1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_after_the_batch_and_the_same_command_goes_on(
    number: int, folder: Path
) -> None:
    followed = running("counts.sql", folder, *KEPT, "--follow", "--batch-rows", "100")
    followed.read_until("batch 2")
    followed.signal(number)
    seen = followed.finish()
    assert seen.code == 130
    assert last_line(seen.screen) == CONTINUE
    seen = running("counts.sql", folder, *KEPT).finish()
    assert seen.code == 0
    files = sorted((folder / "o").glob("batch=*/*.parquet"))
    assert sum(t["n"] for f in files for t in pq.ParquetFile(f).read().to_pylist()) == 300


@pytest.mark.parametrize("kept", [KEPT, ["--out", "o"]])
@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_a_second_signal_aborts_a_batch_that_takes_for_ever(
    kept: list[str], term: str, folder: Path
) -> None:
    hours = running("hours.sql", folder, *kept, "--log", "debug", TERM=term)
    hours.read_until("batch 0 begins with")
    hours.signal(signal.SIGINT)
    hours.read_until("stopping after this batch; Ctrl-C again aborts it")
    hours.signal(signal.SIGINT)
    seen = hours.finish()
    assert seen.code == 130
    assert "aborting the batch" in seen.plain
    assert "Traceback" not in seen.plain
    assert seen.drawn.count(HIDE) == seen.drawn.count(SHOW)
    if kept == KEPT:
        assert last_line(seen.screen) == CONTINUE
    else:
        assert "Without --checkpoint it cannot be continued: another run begins anew." in seen.plain
    assert not list((folder / "o").glob("batch=*"))
