"""Runs over what is available, one after the other: together they give the rows of a single run."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.driver.scene import COUNTS, PASSED, Row, csv, loop_of, plan_of, rows_of, table
from tidegate.driver.connection import Connection, opened
from tidegate.driver.loop import Loop
from tidegate.driver.options import RunOptions
from tidegate.plan.physical import Plan
from tidegate.sink.memory import MemorySink

PAIRS = (
    "SELECT l.v AS one, r.v AS other FROM s AS l [RANGE 2 SECONDS] JOIN s AS r [RANGE 2 SECONDS] "
    "ON l.k = r.k"
)
DISORDER_S = 2
EXAMPLES = max(settings.default.max_examples // 3, 5)


@dataclass(frozen=True)
class Course:
    """Files in the order in which they come, how many there are at each run, and how it is cut."""

    format: str
    files: list[list[Row]]
    runs: list[int]
    batch_rows: list[int]


@st.composite
def courses(draw: st.DrawFn) -> Course:
    """Files whose rows are out of order by no more than is allowed, also from file to file."""
    steps = draw(st.lists(st.integers(0, 3), min_size=4, max_size=30))
    newest, rows = 0, list[Row]()
    for number, step in enumerate(steps):
        newest += step
        back = draw(st.integers(0, DISORDER_S))
        rows.append((newest - back + 10, draw(st.sampled_from("ab")), number))
    ends = draw(st.sets(st.integers(1, len(rows) - 1), max_size=6))
    bounds = [0, *sorted(ends), len(rows)]
    files = [rows[low:high] for low, high in pairwise(bounds)]
    stops = draw(st.sets(st.integers(1, len(files)), min_size=1, max_size=3))
    batch_rows = [draw(st.integers(1, 12)) for _ in range(len(stops) + 1)]
    return Course(draw(st.sampled_from(["csv", "parquet"])), files, sorted(stops), batch_rows)


def arrive(folder: Path, course: Course, first: int, last: int) -> None:
    folder.mkdir(exist_ok=True)
    for number in range(first, last):
        path = folder / f"{number:02d}.{course.format}"
        if course.format == "csv":
            csv(path, *course.files[number])
        else:
            pq.write_table(table(*course.files[number]), path)


def run(plan: Plan, folder: Path, checkpoint: Path, sink: MemorySink, **how: int | bool) -> Loop:
    options = RunOptions(available_now=bool(how.get("available_now")))
    connections = [
        Connection(place, opened(str(folder), stream, options), str(folder))
        for place, stream in enumerate(plan.streams)
    ]
    loop = loop_of(plan, connections, checkpoint, sink, **how)
    loop.run()
    return loop


@pytest.mark.parametrize("query", [COUNTS, PASSED, PAIRS])
@settings(max_examples=EXAMPLES)
@given(course=courses())
def test_any_split_of_files_over_runs_gives_the_rows_of_one(query: str, course: Course) -> None:
    plan = plan_of(query, disorder_s=DISORDER_S)
    with tempfile.TemporaryDirectory() as place:
        root, together, single = Path(place), MemorySink(), MemorySink()
        for start, stop, rows in zip([0, *course.runs], course.runs, course.batch_rows):
            arrive(root / "in", course, start, stop)
            loop = run(plan, root / "in", root / "c", together, available_now=True, batch_rows=rows)
            assert loop.summary.up_to_date
            assert loop.manifest.counters["rows_in"] == sum(map(len, course.files[:stop]))
        arrive(root / "in", course, course.runs[-1], len(course.files))
        last = run(plan, root / "in", root / "c", together, batch_rows=course.batch_rows[-1])
        assert last.manifest.finished
        run(plan, root / "in", root / "d", single)
        assert last.manifest.counters["rows_late"] == 0
    assert rows_of(together) == rows_of(single)
    assert query != PASSED or len(rows_of(single)) == sum(map(len, course.files))
