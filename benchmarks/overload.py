"""A live query that gets half as much again as it can process, with and without shedding.

    python benchmarks/overload.py                    about four minutes
    python benchmarks/overload.py --seconds 12       a quick look, two minutes

First the capacity of the query is measured: rows a second that it takes where more always wait,
with as many in a window as come at that rate. Then a stream comes in real time: at half of the
capacity for a while, at 1.5 times of it for `--seconds`, and at half again. It does so three times:

- nothing: the query without a clause
- by command: `query.shed(0.8)` some seconds after the overload begins, `query.shed("off")` after it
- up to: `WITH SHED UP TO 98 PERCENT`, which nobody tells anything

Of each second are noted the rows that wait, what is shed, and of each window how long after its end
it was published and how far the medians of its groups are off, in the mean over the groups, 1 for a
group that is missing. Each is a process of its own, without Spark, one instance. Results go to
benchmarks/results/overload.json, pictures to docs/overload-*.svg; `benchmarks/tables.py` puts them
into the page.
"""

from __future__ import annotations

import argparse
import statistics
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from chart import Chart, Line
from data import START_US
from measure import HERE, common_arguments, give, in_child, write_report

DOCS = HERE.parent / "docs"
BLOCK = 1 << 20
"""So many rows are drawn, and come again and again."""

GROUPS, RANGE_S = 20, 2
QUERY = (
    f"SELECT k, MEDIAN(v) AS v FROM s [RANGE {RANGE_S} SECONDS SLIDE 500 MILLISECONDS] GROUP BY k"
)
UP_TO = "WITH SHED UP TO 98 PERCENT BY CONCEPT"
WAYS = {"nothing": QUERY, "by command": f"{QUERY} {UP_TO}", "up to": f"{QUERY} {UP_TO}"}
OVER, UNDER = 1.5, 0.5
STEP_S, NOTE_S, TRIES = 0.02, 0.25, 3
TRY_S = 6.0
COMMANDED, AFTER_S = 0.8, 4.0
"""What is shed by command, and how long after the beginning and the end of the overload."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Course:
    """How many rows have come by when: rates by the second from which on they hold."""

    capacity: float
    calm_s: float
    over_s: float
    after_s: float

    @property
    def seconds(self) -> float:
        return self.calm_s + self.over_s + self.after_s

    @property
    def _corners(self) -> tuple[Floats, Floats]:
        """Seconds, and the rows that have come by then."""
        lengths = np.array([self.calm_s, self.over_s, self.after_s])
        rows = lengths * np.array([UNDER, OVER, UNDER]) * self.capacity
        return np.cumsum([0.0, *lengths]), np.cumsum([0.0, *rows])

    def due(self, second: float) -> int:
        """How many rows have come."""
        return int(np.interp(second, *self._corners))

    def times_us(self, first: int, last: int) -> Ints:
        """When rows come, as event time."""
        seconds, rows = self._corners
        return START_US + (np.interp(np.arange(first, last), rows, seconds) * 1e6).astype(np.int64)


class Rows:
    """The rows by their numbers."""

    def __init__(self) -> None:
        draw = np.random.default_rng(32)
        self.k = np.minimum(draw.zipf(1.3, BLOCK), GROUPS)
        self.v = draw.lognormal(3.0, 1.0, BLOCK) * (1 + self.k / GROUPS)

    def columns(self, first: int, last: int) -> tuple[Ints, Floats]:
        at = np.arange(first, last) % BLOCK
        return self.k[at], self.v[at]

    def table(self, first: int, last: int, times_us: Ints) -> pa.Table:
        k, v = self.columns(first, last)
        return pa.table({"ts": pa.array(times_us, pa.timestamp("us", "UTC")), "k": k, "v": v})


def started(sql: str, work: Path, sink: Any) -> tuple[Any, Any, Rows]:
    """A live query over rows that are appended: its source, itself, and what makes the rows."""
    import tidegate as tg

    rows, session = Rows(), tg.Session(master="none")
    empty = rows.table(0, 0, np.zeros(0, np.int64))
    source = tg.MemorySource(time="ts", schema=empty.schema)
    stream = session.sql(sql, s=session.stream(source, time="ts"))
    query = stream.start(sink=sink, checkpoint=work / "checkpoint", instances=1)
    return source, query, rows


def capacity(work: Path, seconds: float) -> list[float]:
    """Rows a second that the query takes where more always wait, try by try.

    What a row costs depends on how many a window has, so a try gives rows the times that they have
    at the rate of the try before.
    """
    import tidegate as tg

    rates = [100_000.0]
    for number in range(TRIES):
        sink, rate = tg.sink.call(lambda *_: None), rates[-1]
        source, query, rows = started(QUERY, work / str(number), sink)
        warm_up(source, query, rows)
        done, taken, base = 0, 0, query.status()["rows_in"]
        commits: list[tuple[float, int]] = []
        while not commits or time.monotonic() - commits[0][0] < seconds:
            while done < taken + RANGE_S * rate:  # so much waits
                last = done + int(rate / 10)
                times = START_US + (np.arange(done, last) / rate * 1e6).astype(np.int64)
                source.append(rows.table(done, last, times + WARM_US))
                done = last
            time.sleep(STEP_S)
            now = query.status()["rows_in"] - base
            if now > taken and now >= RANGE_S * rate:  # windows are full
                commits.append((time.monotonic(), now))
            taken = now
        query.stop()
        (since, before), (until, after) = commits[0], commits[-1]
        rates.append((after - before) / (until - since))
    return rates[1:]


class Answers:
    """What a query has published: by window its time and its medians."""

    def __init__(self) -> None:
        self.windows: dict[int, tuple[float, dict[int, float], float]] = {}

    def take(self, table: pa.Table, _: int) -> None:
        now = time.monotonic()
        ends = table.column("window_end").cast(pa.int64()).to_numpy()
        k, v = table.column("k").to_numpy(), table.column("v").to_numpy()
        kept = table.column("kept").to_numpy() if "kept" in table.column_names else np.ones(len(k))
        for end in np.unique(ends):
            mine = ends == end
            medians = dict(zip(k[mine].tolist(), v[mine].tolist(), strict=True))
            self.windows[int(end)] = now, medians, float(kept[mine].mean())


def overloaded(way: str, course: Course, work: Path) -> dict[str, Any]:
    """One course: what was noted of it, second by second and window by window."""
    import tidegate as tg

    answers = Answers()
    source, query, rows = started(WAYS[way], work, tg.sink.call(answers.take))
    warm_up(source, query, rows)
    fed, noted = 0, []
    stop = threading.Event()
    base = query.status()["rows_in"]

    def note() -> None:
        while not stop.wait(NOTE_S):
            status = query.status()
            (shedding,) = status.get("shedding", {}).values() or ({"share": 0.0},)
            noted.append((time.monotonic(), fed - (status["rows_in"] - base), shedding["share"]))

    thread = threading.Thread(target=note, daemon=True)
    begun = time.monotonic()
    thread.start()
    asked = [
        (course.calm_s + AFTER_S, COMMANDED),
        (course.calm_s + course.over_s + AFTER_S, "off"),
    ]
    while (passed := time.monotonic() - begun) < course.seconds:
        due = course.due(passed)
        if due > fed:
            source.append(rows.table(fed, due, course.times_us(fed, due) + WARM_US))
            fed = due
        if way == "by command" and asked and passed > asked[0][0]:
            query.shed(asked.pop(0)[1])
        time.sleep(STEP_S)
    source.end()
    summary = query.wait().as_dict()
    drained_s = time.monotonic() - begun - course.seconds
    stop.set()
    thread.join()
    found = judged(answers, course, rows, begun, fed)
    return {
        "rows": fed,
        "rows_shed": summary.get("rows_shed", 0),
        "drained_s": round(drained_s, 2),
        "seconds": [
            {"at": round(at - begun, 2), "waiting_rows": waiting, "share": share}
            for at, waiting, share in noted
        ],
        "windows": found,
    }


WARM_US = 3600 * 1_000_000
"""What comes first, to compile what is compiled once, is an hour before."""


def warm_up(source: Any, query: Any, rows: Rows) -> None:
    """Some windows at once, before anything is noted."""
    for number in range(4):
        first, last = 20_000 * number, 20_000 * (number + 1)
        source.append(rows.table(first, last, START_US + np.arange(first, last) * 100))
        while query.status()["rows_in"] < last - 1:
            time.sleep(STEP_S)


def judged(
    answers: Answers, course: Course, rows: Rows, begun: float, fed: int
) -> list[dict[str, float]]:
    """Of each window: when it ended, how late it was, how far off, and what it was made of."""
    times = course.times_us(0, fed)
    found = []
    for end_us, (published, medians, kept) in sorted(answers.windows.items()):
        end_us -= WARM_US
        end_s = (end_us - START_US) / 1e6
        if not RANGE_S <= end_s <= course.seconds:
            continue
        first, last = np.searchsorted(times, (end_us - RANGE_S * 1_000_000, end_us))
        off = []
        for group, true in true_medians(*rows.columns(int(first), int(last))):
            off.append(min(abs(medians[group] - true) / true, 1.0) if group in medians else 1.0)
        found.append(
            {
                "end_s": round(end_s, 3),
                "late_s": round(published - begun - end_s, 3),
                "error": round(statistics.mean(off), 5),
                "kept": round(kept, 4),
            }
        )
    return found


def true_medians(k: Ints, v: Floats) -> Iterator[tuple[int, float]]:
    """The median of each group, from all its rows."""
    order = np.argsort(k, kind="stable")
    groups, starts = np.unique(k[order], return_index=True)
    for group, values in zip(groups.tolist(), np.split(v[order], starts[1:]), strict=True):
        yield group, float(np.median(values))


def figures(course: Mapping[str, float], run: Mapping[str, Any]) -> dict[str, float]:
    """What a course comes to: the most that waited, how late and how far off windows were."""
    since, until = course["calm_s"], course["calm_s"] + course["over_s"]
    over = [w for w in run["windows"] if since + RANGE_S <= w["end_s"] <= until]
    late = [w["late_s"] for w in over]
    waiting = max(one["waiting_rows"] for one in run["seconds"])
    return {
        "waiting_s": waiting / course["capacity"],
        "late_median_s": statistics.median(late),
        "late_max_s": max(w["late_s"] for w in run["windows"]),
        "error": statistics.mean(w["error"] for w in over),
        "error_max": max(w["error"] for w in over),
        "shed": run["rows_shed"] / run["rows"],
    }


def table(report: Mapping[str, Any]) -> Iterator[str]:
    """In Markdown, with the pictures."""
    yield "| shedding | waits at most | windows late by | at most | their error | at most | shed |"
    yield "|---|---|---|---|---|---|---|"
    for way, run in report["ways"].items():
        found = figures(report["course"], run)
        yield (
            f"| {way} | {found['waiting_s']:.1f} s of work | {found['late_median_s']:.1f} s "
            f"| {found['late_max_s']:.1f} s | {found['error']:.1%} | {found['error_max']:.1%} "
            f"| {found['shed']:.0%} |"
        )
    yield ""
    yield "![Rows that wait, in seconds of work](../overload-backlog.svg)"
    yield "![How long after its end a window is published](../overload-latency.svg)"
    yield "![Error of the medians of a window](../overload-error.svg)"


def draw(report: Mapping[str, Any]) -> None:
    """Backlog, latency and error over time."""
    course, ways = report["course"], report["ways"]
    marks = [(course["calm_s"], "1.5 times"), (course["calm_s"] + course["over_s"], "half")]
    work = course["capacity"]
    waiting = [
        Line(way, [s["waiting_rows"] / work for s in run["seconds"]], _at(run["seconds"], "at"))
        for way, run in ways.items()
    ]
    Chart("Rows that wait", "seconds of work", waiting, marks=marks).write(
        DOCS / "overload-backlog.svg"
    )
    for file, title, unit, name, scale in (
        ("latency", "Windows are published after their end", "seconds", "late_s", 1.0),
        ("error", "Error of the medians of a window", "percent", "error", 100.0),
    ):
        lines = [
            Line(way, [w[name] * scale for w in run["windows"]], _at(run["windows"], "end_s"))
            for way, run in ways.items()
        ]
        Chart(title, unit, lines, marks=marks).write(DOCS / f"overload-{file}.svg")


def _at(rows: Sequence[Mapping[str, float]], name: str) -> list[float]:
    return [row[name] for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=40.0, help="how long the overload lasts")
    parser.add_argument("--capacity", type=float, help=argparse.SUPPRESS)
    common_arguments(parser)
    given = parser.parse_args()
    if given.child == "capacity":
        give(capacity(Path(given.work), TRY_S))
        return
    if given.child:
        give(overloaded(given.child, course_of(given), Path(given.work)))
        return
    tries = in_child(__file__, "--child", "capacity")
    print("capacity, rows a second:", *(f"{rate:,.0f}" for rate in tries), flush=True)
    given.capacity = tries[-1]
    report: dict[str, Any] = {"query": QUERY, "capacity_tries": tries}
    report |= {"course": asdict(course_of(given)), "ways": {}}
    words = [f"--seconds={given.seconds}", f"--capacity={given.capacity}"]
    for way in WAYS:
        report["ways"][way] = run = in_child(__file__, "--child", way, *words)
        told = ", ".join(f"{n} {v:.3g}" for n, v in figures(report["course"], run).items())
        print(f"{way}: {told}", flush=True)
    write_report("overload", report)
    draw(report)


def course_of(given: argparse.Namespace) -> Course:
    return Course(given.capacity, calm_s=8.0, over_s=given.seconds, after_s=given.seconds / 2)


if __name__ == "__main__":
    main()
