"""Ctrl-C and other ways to stop a run from outside, on a real terminal."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from threading import Event

import pyarrow.parquet as pq
import pytest

from tests.cli.terminal import HIDE, SHOW, Terminal
from tidegate.cli.stop import Stopped, run_stoppable
from tidegate.driver.report.metrics import Summary

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


class Deaf:
    """A loop that nothing can break off."""

    summary = Summary()

    def __init__(self) -> None:
        self.go_on, self.ended = Event(), Event()

    def run(self) -> Summary:
        for _ in range(2):
            signal.raise_signal(signal.SIGINT)
        self.go_on.wait()
        self.ended.set()
        return self.summary

    def stop(self) -> None:
        """Hears nothing."""

    def abort(self) -> bool:
        return False


def test_a_loop_that_ends_too_late_writes_into_no_file_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its pipe is closed then, and the next file that is opened has the number of its end."""
    monkeypatch.setattr("tidegate.cli.stop._abandoned", [])
    loop = Deaf()
    with pytest.raises(Stopped):
        run_stoppable(loop, lambda state: None)
    files = [(tmp_path / str(number)).open("wb", buffering=0) for number in range(4)]
    loop.go_on.set()
    loop.ended.wait()
    for thread in threading.enumerate():
        if thread.name == "tidegate-run":
            thread.join()
    for file in files:
        file.close()
        assert not Path(file.name).read_bytes()
