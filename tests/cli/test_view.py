"""The live view: what it shows at each stage of a run, in any width, and how it ends."""

from __future__ import annotations

import pyarrow as pa
import pytest
from rich.cells import cell_len
from rich.console import Console

from tests.cli.scene import console, lines, report, times, windows
from tidegate.batch import MAX_US, MIN_US
from tidegate.cli.live.panel import clock_text, duration_text
from tidegate.cli.live.status import ViewStatus
from tidegate.cli.live.view import LiveView
from tidegate.driver.metric.progress import SlowestSource
from tidegate.driver.report.latency import Quantiles
from tidegate.execute.runner import TaskCounts
from tidegate.gate.backlog import Backlog
from tidegate.gate.extent import Extent
from tidegate.model.live.expectation import Expectation
from tidegate.testing import ManualClock

HIDDEN, VISIBLE = "\x1b[?25l", "\x1b[?25h"


class Run:
    """A view before a terminal of a fixed size, and the batches it is told of."""

    def __init__(
        self,
        width: int = 80,
        height: int = 40,
        windows: bool = True,
        outputs: tuple[str | None, ...] = (None,),
        start: str = "starting",
    ) -> None:
        self.clock = ManualClock(100.0)
        self.width = width
        self.console: Console = console(width, height)
        self.view = LiveView(self.console, "taxi", start, self.clock, windows, outputs)

    def batch(self, batch: int, rows: pa.Table | None = None, **changes: object) -> None:
        if rows is not None:
            self.view.rows(rows)
        self.clock.advance(0.1)
        self.view.batch(report(batch, **changes))

    def lines(self) -> list[str]:
        return lines(self.view.picture(), self.width)


@pytest.fixture
def run() -> Run:
    return Run()


def test_before_the_first_batch(run: Run) -> None:
    run.clock.advance(7)
    assert run.lines() == [
        "taxi" + " " * 62 + "starting  0:07",
        "─" * 80,
        "rows in     0                                     watermark (frontier)  none yet",
        "",
        "no window is complete yet",
    ]


def test_a_batch_without_a_window(run: Run) -> None:
    run.batch(0, windows(), rows_out=0, frontier_us=MIN_US)
    assert run.lines() == [
        "taxi" + " " * 54 + "running  0:00  batch 0",
        "─" * 80,
        "input       20,000 rows/s              newest event          2024-01-01 00:00:10",
        "rows in     1,000                      watermark (frontier)  none yet",
        "rows out    0                          event-time lag        not known yet",
        "batch time  50 ms  median 50 ms        instances             2 ■■  epoch 0",
        "state       12,345 rows  663 KiB",
        "",
        "no window is complete yet",
    ]


def test_the_whole_picture(run: Run) -> None:
    run.batch(0)
    run.batch(1, seconds=0.07)
    run.batch(2, windows((10, "old", 1.0), (20, "north", 9.2), (20, None, 11.0)), seconds=0.06)
    assert run.lines() == [
        "taxi" + " " * 54 + "running  0:00  batch 2",
        "─" * 80,
        "input       12,000 rows/s          newest event          2024-01-01 00:00:30",
        "rows in     3,000                  watermark (frontier)  2024-01-01 00:00:27.500",
        "rows out    9                      event-time lag        2.5 s",
        "batch time  60 ms  median 60 ms    instances             2 ■■  epoch 0",
        "state       12,345 rows  663 KiB",
        "",
        "newest window 2024-01-01 00:00:10 to 00:00:20",
        "route   fare",
        "north   9.20",
        "NULL   11.00",
    ]


@pytest.mark.parametrize(
    ("subqueries", "shares", "told"),
    [
        (("join", "join"), (0.617, 0.0712), "62% 7%"),
        (("join",) * 5, (0.5, 0.61, 0.4, 0.9, 1.04), "40% to 104%"),
        (("aggregate", "join"), (0.5, 0.61), "50% to 61%"),
    ],
)
def test_how_busy_instances_are(
    run: Run, subqueries: tuple[str, ...], shares: tuple[float, ...], told: str
) -> None:
    counts = ({},) * len(shares)
    run.batch(0, subqueries=subqueries, utilisation=shares, instance_counts=counts)
    line = next(line for line in run.lines() if "utilisation" in line)
    assert line.endswith(f"utilisation           {told}")


LIVE = {
    "latency": Quantiles(100, 12.3, 19.6, 31.0, 44.4),
    "recent_latency": Quantiles(5_000, 11.1, 18.0, 1204.0, 62_000.0),
    "backlog": Backlog({"rows": 1_204, "bytes": 0, "files": 0}),
}


def test_live_sources_have_a_latency_and_a_backlog(run: Run) -> None:
    run.batch(0, **LIVE)
    run.batch(1, **{**LIVE, "latency": None, "backlog": Backlog({**FILES})})
    assert run.lines() == [
        "taxi" + " " * 54 + "running  0:00  batch 1",
        "─" * 80,
        "input       13,333 rows/s          newest event          2024-01-01 00:00:20",
        "rows in     2,000                  watermark (frontier)  2024-01-01 00:00:17.500",
        "rows out    6                      event-time lag        2.5 s",
        "batch time  50 ms  median 50 ms    instances             2 ■■  epoch 0",
        "backlog     3 files, 78.2 KiB",
        "state       12,345 rows  663 KiB",
        "latency     p50 12 ms   p95 20 ms   p99 31 ms   max 44 ms   newest batch",
        "            p50 11 ms   p95 18 ms   p99 1.2 s   max 62 s    recent batches",
        "",
        "no further window is complete yet",
    ]
    run.batch(2, **LIVE)
    assert "backlog     1,204 rows" in [line[:22] for line in run.lines()]


@pytest.mark.parametrize(
    ("load", "told"),
    [
        (0.351, "predicted   mean 12 ms   measured 14 ms   load 35%"),
        (1.2, "predicted   mean 12 ms   measured 14 ms   load 120%    falls behind"),
    ],
)
def test_what_the_model_predicts_is_below_what_is_measured(
    run: Run, load: float, told: str
) -> None:
    expected = Expectation(load, 0.008, 0.0123, 0.0141, {})
    run.view.attend(lambda: 0, lambda: None, lambda: expected)
    run.batch(0, **LIVE)
    shown = run.lines()
    latency = next(place for place, line in enumerate(shown) if line.endswith("recent batches"))
    assert shown[latency + 1].rstrip() == told


FILES = {"rows": 0, "bytes": 80_112, "files": 3}


def test_a_narrow_terminal_has_one_column() -> None:
    run = Run(width=60)
    run.batch(0, windows((20, "日本語" * 20, 9.2)), rows_late=4)
    said = run.lines()
    assert said[2:12] == [
        "input                 20,000 rows/s",
        "rows in               1,000",
        "rows out              3",
        "batch time            50 ms  median 50 ms",
        "state                 12,345 rows  663 KiB",
        "newest event          2024-01-01 00:00:10",
        "watermark (frontier)  2024-01-01 00:00:07.500",
        "event-time lag        2.5 s",
        "instances             2 ■■  epoch 0",
        "late                  4  0.40%",
    ]
    assert all(cell_len(line) <= 60 for line in said)


@pytest.mark.parametrize("width", [20, 40, 60, 75, 76, 80, 200])
@pytest.mark.parametrize("height", [10, 24, 50])
def test_it_fits_the_terminal(width: int, height: int) -> None:
    run = Run(width, height)
    rows = windows(*((10, f"route {i}", float(i)) for i in range(100)))
    run.batch(0, rows)
    run.batch(1, rows, instances=100, epoch=1, rows_late=1, rows_rejected=1, **LIVE)
    said = run.lines()
    assert all(cell_len(line) <= width for line in said)
    assert len(said) < height or len([line for line in said if line.startswith("route ")]) == 4


SEVERAL = {
    "subqueries": ("callers", "callers", "most"),
    "instance_counts": (
        {"taken": 600, "outputs": 40, "cpu_us": 700, "map_cpu_us": 100},
        {"taken": 400, "outputs": 20, "cpu_us": 100},
        {"taken": 60, "outputs": 3, "cpu_us": 100},
    ),
    "state_by": {"callers": 12_000, "most": 345},
    "output_rows": {"often": 2, "most": 1},
}


def test_subqueries_and_outputs_stand_by_their_names() -> None:
    run = Run(outputs=("often", "most"))
    run.batch(0, **SEVERAL)
    run.view.rows(windows((20, "north", 9.2)), "most")
    run.batch(1, **SEVERAL)
    assert run.lines()[7:] == [
        "",
        "subquery  instances  tuples in  rows out  state rows  cpu",
        "callers           2      2,000       120      12,000  90%",
        "most              1        120         6         345  10%",
        "",
        "often  no window is complete yet",
        "",
        "most  2 rows out, newest window 2024-01-01 00:00:10 to 00:00:20",
        "route   fare",
        "north  9.200",
    ]


def test_a_change_of_one_subquery_has_its_name() -> None:
    run = Run(outputs=("often", "most"))
    run.batch(0, **SEVERAL)
    more = {**SEVERAL, "subqueries": ("callers", "most", "most")}
    run.batch(1, **more)
    assert "switches    callers 2 → 1 at batch 1, most 1 → 2 at batch 1" in run.lines()


@pytest.mark.parametrize("width", [40, 60, 80, 200])
@pytest.mark.parametrize("height", [18, 24, 50])
def test_several_outputs_fit_the_terminal(width: int, height: int) -> None:
    names = ("often", "most", "near")
    run = Run(width, height, outputs=names)
    rows = windows(*((10, f"route {i}", float(i)) for i in range(100)))
    for name in names:
        run.view.rows(rows, name)
    run.batch(0, **SEVERAL)
    said = run.lines()
    assert all(cell_len(line) <= width for line in said)
    assert all(any(line.startswith(f"{name}  ") for line in said) for name in names)
    assert len(said) < height or width < 76


def test_the_first_batch_is_told_while_it_runs(run: Run) -> None:
    tasks: list[TaskCounts | None] = [None]
    run.view.attend(lambda: 600_000, lambda: tasks[0])
    run.view.step("before gate", 0)
    run.clock.advance(2)
    assert "reading input  0:02" in run.lines()[0]
    assert run.lines()[3] == "batch 0     2.0 s, reading event times"
    run.view.step("after gate", 0)
    assert "starting  0:02" in run.lines()[0]
    assert run.lines()[3] == "batch 0     600,000 rows to begin with"
    run.clock.advance(5)
    run.lines()
    tasks[0] = TaskCounts(3, 8)
    run.clock.advance(4)
    assert "running  0:11" in run.lines()[0]
    assert run.lines()[3] == "batch 0     4.0 s, 600,000 rows, 3 of 8 tasks"


def test_a_later_batch_is_told_when_it_takes_long(run: Run) -> None:
    run.view.attend(lambda: 1000, lambda: TaskCounts(1, 2))
    run.batch(0)
    run.view.step("before gate", 1)
    run.view.step("after gate", 1)
    run.clock.advance(0.5)
    assert any("batch time  50 ms  median 50 ms" in line for line in run.lines())
    run.clock.advance(6)
    said = run.lines()
    assert "running  0:06" in said[0], "it does not wait for input"
    assert any(line.startswith("batch 1     6.5 s, 1 of 2 tasks ") for line in said)
    run.batch(1)
    assert any("batch time  50 ms  median 50 ms" in line for line in run.lines())


def test_starting_is_told_apart_from_the_rate(run: Run) -> None:
    run.clock.advance(9)
    run.batch(0, start_s=3.1)
    said = "\n".join(run.lines())
    assert "input       20,000 rows/s" in said
    assert "started in            3.1 s" in said


@pytest.mark.parametrize(
    ("extent", "text"),
    [
        (Extent(420, 1000, "rows"), "read        42% of 1,000 rows"),
        (Extent(504e6, 1.2e9, "bytes"), "read        42% of 1.1 GiB"),
        (Extent(1.5, 4, "files"), "read        38% of 4 files"),
        (Extent(0.999, 1, ""), "read        99%"),
        (Extent(7, 7, "rows"), "read        100% of 7 rows"),
    ],
)
def test_how_much_of_the_input_is_read(run: Run, extent: Extent, text: str) -> None:
    run.batch(0, extent=extent)
    assert any(line.startswith(f"{text} ") for line in run.lines())


def test_who_holds_the_watermark_back(run: Run) -> None:
    newest_us = report(0).newest_us
    run.batch(0, held=SlowestSource("calls", "b.csv", newest_us))
    assert not any("waits for" in line for line in run.lines()), "nobody is ahead of it"
    run.batch(1, held=SlowestSource("calls", "b.csv", newest_us))
    assert "watermark waits for calls (b.csv), which is at 2024-01-01 00:00:10" in run.lines()
    run.batch(2, held=SlowestSource("calls", "c.csv", MIN_US))
    assert "watermark waits for calls (c.csv), which has no row yet" in run.lines()


def test_late_and_rejected_rows_are_shown_when_there_are_any(run: Run) -> None:
    run.batch(0)
    assert not any("late" in line or "rejected" in line for line in run.lines())
    run.batch(1, rows_late=3)
    run.batch(2, rows_late=2, rows_rejected=1)
    assert any(line.endswith("late                  5  0.17%") for line in run.lines())
    assert any(line.endswith("rejected              1  0.03%") for line in run.lines())
    run.batch(3, rows_shed=980)
    assert any(line.endswith("shed                  980") for line in run.lines())


def test_a_change_of_instances_stands_out_and_stays_in_the_list(run: Run) -> None:
    run.batch(0)
    run.batch(1, instances=5, epoch=1)
    said = "\n".join(run.lines())
    assert "instances             5 ■■■■■  epoch 1  was 2" in said
    assert "switches    2 → 5 at batch 1" in said
    run.clock.advance(4)
    run.batch(2, instances=5, epoch=1)
    assert "was 2" not in "\n".join(run.lines())
    run.batch(3, instances=1, epoch=2)
    said = "\n".join(run.lines())
    assert "instances             1 ■  epoch 2  was 5" in said
    assert "switches    2 → 5 at batch 1, 5 → 1 at batch 3" in said


def test_what_was_told_of_the_newest_window_has_a_line(run: Run) -> None:
    run.batch(0)
    assert not any(line.startswith("window ") for line in run.lines())
    run.view.attend(lambda: 0, lambda: None, figures=lambda: "tuple imbalance 12%")
    assert "window      tuple imbalance 12%" in run.lines()


def test_many_instances_are_not_drawn_one_by_one(run: Run) -> None:
    run.batch(0, instances=200)
    assert any(f"200 {'■' * 12}…" in line for line in run.lines())


def test_an_empty_batch_keeps_the_newest_window(run: Run) -> None:
    run.batch(0, windows((10, "a", 1.0)))
    run.batch(1, windows())
    assert "newest window 2024-01-01 00:00:00 to 00:00:10" in run.lines()


def test_a_stateless_query_shows_its_newest_rows() -> None:
    run = Run(windows=False)
    run.batch(0, state_rows=0, rows_out=0)
    assert "no row has come out yet" in run.lines()
    run.batch(1, pa.table({"ts": times(1, 2), "k": ["a", "b"]}), state_rows=0)
    said = run.lines()
    assert said[-4:] == [
        "newest rows",
        "ts                   k",
        "2024-01-01 00:00:01  a",
        "2024-01-01 00:00:02  b",
    ]
    assert not any(line.startswith("state") for line in said)


def test_the_most_state_is_shown_where_there_is_less_now(run: Run) -> None:
    run.batch(0, state_rows=2_000, state_bytes=5_000)
    assert not any(line.startswith("peak") for line in run.lines())
    run.batch(1, state_rows=500, state_bytes=6_144)
    run.batch(2, state_rows=10, state_bytes=100)
    said = "\n".join(run.lines())
    assert "state       10 rows" in said
    assert "peak        2,000 rows  6.0 KiB" in said


def test_a_continued_run_counts_on(run: Run) -> None:
    run.view.continue_from({"rows_in": 5000, "rows_out": 50, "rows_late": 1, "batches": 5})
    assert "no further window is complete yet" in run.lines()
    run.batch(5)
    said = "\n".join(run.lines())
    assert "rows in     6,000" in said
    assert "rows out    53" in said


def test_the_end_of_the_input(run: Run) -> None:
    run.batch(0, windows((10, "a", 1.0)), frontier_us=MAX_US, state_rows=0)
    run.view.ending("finished")
    said = "\n".join(run.lines())
    assert "finished  0:00  batch 0" in said
    assert "watermark (frontier)  end of the input" in said
    assert "event-time lag        none" in said
    assert "state       none" in said


def test_a_title_too_long_is_cut() -> None:
    view = LiveView(console(40), "a very long name of a query, really", clock=ManualClock())
    assert lines(view.picture(), 40)[0] == "a very long name of a q…  starting  0:00"


def test_the_rate_counts_waiting_and_falls_to_nothing() -> None:
    status = ViewStatus(0.0)
    assert status.rows_per_second(1.0) == 0.0
    for batch in range(10):
        status.add(report(batch), now=float(batch + 1))
    assert status.rows_per_second(10.0) == pytest.approx(1000)
    assert not status.quiet(11.9)
    assert status.quiet(12.1)
    assert 0 < status.rows_per_second(12.1) < 1000
    assert status.rows_per_second(20.0) == 0.0


def test_the_rate_during_a_long_batch_is_that_of_the_last() -> None:
    status = ViewStatus(0.0)
    status.add(report(0, seconds=20.0, rows_in=2000), now=20.0)
    assert status.rows_per_second(50.0) == pytest.approx(100)
    assert not status.quiet(50.0)


def test_a_query_that_waits_says_so(run: Run) -> None:
    run.batch(0)
    run.clock.advance(10)
    assert "waiting for input  0:10  batch 0" in run.lines()[0]
    assert run.lines()[2].startswith("input       0 rows/s")


def test_the_terminal_is_given_back(run: Run) -> None:
    with run.view:
        run.batch(0, windows((10, "last row", 1.0)))
        run.view.ending("stopped")
    drawn = run.console.file.getvalue()
    assert drawn.count(HIDDEN) == drawn.count(VISIBLE) == 1
    after = drawn[drawn.rindex("last row") :]
    assert after.index("\n") < after.index(VISIBLE)
    assert after.endswith(VISIBLE + "\n")


def test_the_terminal_is_given_back_after_a_failure(run: Run) -> None:
    run.batch(0)
    with pytest.raises(ValueError), run.view:
        raise ValueError("no")
    drawn = run.console.file.getvalue()
    assert "failed" in drawn
    assert drawn.endswith(VISIBLE + "\n")


@pytest.mark.parametrize(
    ("time_us", "text"),
    [
        (0, "0 us"),
        (999, "999 us"),
        (1_500, "1.5 ms"),
        (54_321, "54 ms"),
        (999_400, "999 ms"),
        (999_600, "1.0 s"),
        (59_900_000, "59.9 s"),
        (59_960_000, "1 min 0 s"),
        (200_000_000, "3 min 20 s"),
        (7_500_000_000, "2 h 5 min"),
        (190_000_000_000, "2 d 4 h"),
    ],
)
def test_lengths_of_time(time_us: int, text: str) -> None:
    assert duration_text(time_us) == text


def test_stop_watch() -> None:
    assert [clock_text(s) for s in (0.9, 61, 3723)] == ["0:00", "1:01", "1:02:03"]
