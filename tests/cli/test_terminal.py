"""The commands on a real terminal and without one: what is drawn, what stays quiet, how it ends."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet
import pytest

from tests.cli.terminal import HIDE, SHOW, Terminal

SQL = """
CREATE STREAM rides FROM 'rides.csv' TIME ts;
SELECT route, SUM(fare) AS fare, COUNT(*) AS n
FROM rides [RANGE 10 SECONDS] GROUP BY route
"""
RUN = ["run", "q.sql", "--master", "none", "--batch-rows", "50"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [f"2024-01-01T00:{i // 60:02d}:{i % 60:02d}Z,route{i % 3},{i}.5" for i in range(300)]
    (tmp_path / "rides.csv").write_text("\n".join(["ts,route,fare", *rows]) + "\n")
    (tmp_path / "q.sql").write_text(SQL)
    return tmp_path


def test_a_run_draws_and_gives_the_terminal_back(folder: Path) -> None:
    seen = Terminal([*RUN, "--instances", "2", "--switch", "3=4"], folder).finish()
    assert seen.code == 0
    assert seen.drawn.count(HIDE) == seen.drawn.count(SHOW) == 1
    assert seen.drawn.index(HIDE) < seen.drawn.index(SHOW)
    screen = seen.screen
    assert screen[0].startswith("q  ")
    assert "finished" in screen[0]
    assert screen[0].endswith("batch 5")
    for part in ("rows in     300", "rows out    90", "instances             4 ■■■■  epoch 1"):
        assert any(part in line for line in screen)
    assert "switches    2 → 4 at batch 3" in screen
    first = screen.index("newest window 2024-01-01 00:04:50 to 00:05:00")
    assert screen[first + 1 : first + 5] == [
        "route      fare  n",
        "route0    883.5  3",
        "route1    886.5  3",
        "route2  1,180.0  4",
    ]
    assert screen[first + 5] == ""
    assert screen[first + 6].startswith("finished: 300 rows in, 90 out")
    assert '"window_start"' not in seen.plain


def test_results_in_files_are_the_same_with_a_view(folder: Path) -> None:
    seen = Terminal([*RUN, "--out", "seen"], folder).finish()
    assert "newest window 2024-01-01 00:04:50 to 00:05:00" in seen.screen
    quiet = piped([*RUN, "--out", "quiet"], folder)
    assert quiet.stdout == ""
    assert quiet.stderr.startswith("finished: 300 rows in, 90 out")

    def rows(out: str) -> list[object]:
        files = sorted((folder / out).rglob("*.parquet"))
        return [pyarrow.parquet.ParquetFile(f).read().to_pylist() for f in files]

    assert rows("seen") == rows("quiet")
    assert len(rows("seen")) == 6


def test_the_summary_goes_to_standard_error(folder: Path) -> None:
    seen = Terminal(RUN, folder, both=False).finish()
    assert seen.piped.startswith("finished: 300 rows in")
    assert "finished: " not in seen.plain
    assert "finished  0:0" in seen.plain


def test_a_dumb_terminal_gets_plain_rows(folder: Path) -> None:
    seen = Terminal(RUN, folder, TERM="dumb").finish()
    assert "\x1b" not in seen.drawn
    assert seen.plain.startswith('"window_start","window_end","route","fare","n"\n')


def test_without_colour_the_view_stays(folder: Path) -> None:
    coloured = Terminal(RUN, folder).finish()
    plain = Terminal(RUN, folder, NO_COLOR="1").finish()
    assert "\x1b[1;36m" in coloured.drawn
    assert "\x1b[1;36m" not in plain.drawn
    assert "newest window 2024-01-01 00:04:50 to 00:05:00" in plain.screen


def test_a_narrow_terminal(folder: Path) -> None:
    seen = Terminal(RUN, folder, width=60, height=24).finish()
    end = next(i for i, line in enumerate(seen.screen) if line.startswith("finished: "))
    assert max(len(line) for line in seen.screen[:end]) == 60
    assert end < 24


def test_an_interrupt_ends_it_with_a_summary(folder: Path) -> None:
    running = Terminal([*RUN, "--follow"], folder)
    running.read_until("batch 5")
    running.signal(signal.SIGINT)
    seen = running.finish()
    assert seen.code == 130
    assert "stopped  0:" in seen.plain
    assert seen.drawn.count(HIDE) == seen.drawn.count(SHOW) == 1
    assert "tidegate: stopping after this batch; Ctrl-C again aborts it" in seen.plain
    assert any(line.startswith("stopped: 300 rows in") for line in seen.screen)
    last = "Without --checkpoint it cannot be continued: another run begins anew."
    assert [line for line in seen.screen if line][-1] == last


def test_a_failure_is_one_line_below_the_view(folder: Path) -> None:
    ruined = (folder / "rides.csv").read_text().replace("route2,299.5", "route2,0")
    (folder / "rides.csv").write_text(ruined)
    (folder / "q.sql").write_text(SQL.replace("SUM(fare)", "SUM(1 / fare)"))
    seen = Terminal(RUN, folder).finish()
    assert seen.code == 1
    assert "failed  0:" in seen.plain
    assert seen.drawn.count(HIDE) == seen.drawn.count(SHOW) == 1
    assert seen.drawn.index(SHOW) < seen.drawn.index("tidegate: ")
    assert "Traceback" not in seen.plain


def test_a_mistake_draws_nothing(folder: Path) -> None:
    (folder / "file").write_text("")
    seen = Terminal([*RUN, "--out", "file"], folder).finish()
    assert seen.code == 2
    assert HIDE not in seen.drawn
    assert seen.plain.startswith("tidegate: file: the output must be a folder")


def test_a_finished_run_started_again_draws_nothing(folder: Path) -> None:
    again = [*RUN, "--out", "o", "--checkpoint", "c"]
    assert piped(again, folder).returncode == 0
    seen = Terminal(again, folder).finish()
    assert HIDE not in seen.drawn
    assert seen.screen[0] == "tidegate: c is finished already, and there is no new input."
    assert seen.screen[1].startswith("finished: 300 rows in")


def test_log_lines_stand_above_the_view(folder: Path) -> None:
    seen = Terminal([*RUN, "--log", "debug"], folder, width=200, height=60).finish()
    of_batches = re.compile(r"DEBUG tidegate\.driver\.(books|pipeline) ")
    logged = [i for i, line in enumerate(seen.screen) if of_batches.search(line)]
    assert len(logged) == 12
    assert max(logged) < seen.screen.index("─" * 200)


def test_a_piped_run_says_rows_and_summary_only(folder: Path) -> None:
    done = piped(RUN, folder)
    assert done.stdout.startswith('"window_start","window_end","route","fare","n"\n')
    assert done.stdout.count("\n") == 91
    assert "\x1b" not in done.stdout + done.stderr
    assert done.stderr.startswith("finished: 300 rows in")


def test_several_outputs_are_shown_by_name(folder: Path) -> None:
    (folder / "q.sql").write_text(
        "CREATE STREAM rides FROM 'rides.csv' TIME ts;"
        "CREATE STREAM fares AS "
        "SELECT route, SUM(fare) AS fare FROM rides [RANGE 10 SECONDS] GROUP BY route;"
        "INSERT INTO dear SELECT * FROM fares WHERE fare > 400;"
        "INSERT INTO most SELECT MAX(fare) AS fare FROM fares [RANGE 1 MINUTE]"
    )
    screen = Terminal(RUN, folder, height=24).finish().screen
    assert "subquery  instances  tuples in  rows out  state rows  cpu" in screen
    assert any(line.startswith("fares             1        300") for line in screen)
    assert any(line.startswith("most              1         90         5") for line in screen)
    assert "dear  54 rows out, newest window 2024-01-01 00:04:50 to 00:05:00" in screen
    assert "most  5 rows out, newest window 2024-01-01 00:04:00 to 00:05:00" in screen
    assert any("read        100% of" in line for line in screen)


def test_a_long_first_batch_says_how_far_it_is(folder: Path) -> None:
    (folder / "q.sql").write_text(SQL.replace("'rides.csv'", "'generator:taxi?rows=1000000'"))
    command = ["run", "q.sql", "--master", "none", "--time", "rides=dropoff_time"]
    running = Terminal(command, folder)
    running.read_until(" rows, ")
    running.read_until(" tasks")
    seen = running.finish()
    assert re.search(r"batch 0     [\d.]+ s, 1,000,000 rows, \d of \d+ tasks", seen.plain)


def test_the_source_that_others_wait_for_is_named(folder: Path) -> None:
    head, *rows = (folder / "rides.csv").read_text().splitlines()
    (folder / "slow.csv").write_text("\n".join([head, *rows[:61]]) + "\n")
    command = [*RUN, "--stream", "rides=rides.csv", "--stream", "rides=slow.csv", "--follow"]
    running = Terminal(command, folder, width=100)
    running.read_until("slow.csv")
    running.signal(signal.SIGTERM)
    seen = running.finish()
    line = "watermark waits for rides (slow.csv), which is at 2024-01-01 00:01:00"
    assert line in seen.screen


def test_a_live_stream_shows_latency_and_backlog(folder: Path) -> None:
    (folder / "q.sql").write_text(SQL.replace("'rides.csv'", "'generator:taxi?pace=500'"))
    command = ["run", "q.sql", "--master", "none", "--time", "rides=dropoff_time"]
    running = Terminal(command, folder)
    running.read_until("recent batches")
    running.signal(signal.SIGTERM)
    seen = running.finish()
    drawn = [line for line in seen.screen if line.startswith(("latency ", "backlog "))]
    assert re.match(r"backlog     ([\d,]+ rows?|none)( |$)", drawn[0])
    assert re.match(r"latency     p50 .* p95 .* p99 .* max .* newest batch$", drawn[1])
    assert re.match(r"latency p50 .*, from arrival to commit(;|$)", drawn[2]), "in the summary"
    assert drawn[3].startswith("backlog ")


def piped(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from tidegate.cli.main import main; main()", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
