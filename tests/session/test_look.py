"""Previews: the first rows of a result, what was read for them, and how a REPL shows them."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pytest

import tidegate as tg
from tidegate import col, count
from tidegate.errors import QueryError, TaskError, UnavailableError
from tidegate.session.look import Preview

START = datetime(2024, 1, 1, tzinfo=UTC)


def seconds(n: int, end: bool = True) -> tg.MemorySource:
    """A row per second, v = 0, 1, ..."""
    rows = [{"ts": START + timedelta(seconds=i), "v": i, "k": i % 2} for i in range(n)]
    source = tg.MemorySource(rows, time="ts")
    if end:
        source.end()
    return source


def stream(n: int, end: bool = True) -> tg.Stream:
    return tg.Session(master="none").stream(seconds(n, end), time="ts", name="s")


def values(preview: Preview, name: str) -> list[object]:
    return [row[name] for row in preview.to_pylist()]


def test_the_first_rows_and_what_was_read_for_them() -> None:
    seen = stream(30_000).where(col("v") % 10_000 == 9_000).preview(2)
    assert values(seen, "v") == [9_000, 19_000]
    assert len(seen) == 2
    assert seen.rows_read == 20_000
    assert not seen.complete
    assert repr(seen).splitlines() == [
        "ts                       v  k",
        "2024-01-01 02:30:00   9000  0",
        "2024-01-01 05:16:40  19000  0",
        "first 2 rows (20,000 rows of the input read)",
    ]


def test_a_preview_of_everything_says_so() -> None:
    seen = stream(3).preview()
    assert seen.complete
    assert seen.note == "3 rows, the whole result (3 rows of the input read)"
    assert stream(3).preview(3).complete
    assert not stream(3).preview(2).complete


def test_windows_are_those_that_have_ended_in_what_was_read() -> None:
    counts = stream(25_000).window("1 hour").agg(n=count())
    assert values(counts.preview(3), "n") == [3600] * 3
    assert values(counts.preview(100), "n") == [3600] * 6 + [3400]
    assert counts.preview(100).complete
    nothing = counts.preview(1, read=2_000)
    assert len(nothing) == 0
    assert nothing.note == "no row yet (2,000 rows of the input read)"


def test_windows_that_are_open_are_not_shown_of_a_stream_that_goes_on() -> None:
    counts = stream(7_300, end=False).window("1 hour").agg(n=count())
    assert values(counts.preview(10), "n") == [3600, 3600]


def test_a_preview_is_the_beginning_of_the_output_of_a_run() -> None:
    pairs = stream(500).join(
        stream(500).select(w="v"), within="3 seconds", on=(tg.left.v % 7) == (tg.right.w % 7)
    )
    sink = tg.sink.memory()
    pairs.start(sink=sink, batch_rows=17).wait()
    assert pairs.preview(40).table == sink.table().slice(0, 40)


def test_what_takes_arrow_takes_a_preview() -> None:
    seen = stream(3).preview()
    assert pa.table(seen) == seen.table
    assert list(seen.to_pandas()["v"]) == [0, 1, 2]


def test_a_notebook_shows_a_table() -> None:
    rows = [{"ts": START, "note": "<b>", "n": None}]
    html = tg.Session(master="none").stream(rows).preview()._repr_html_()
    assert html == (
        "<table><thead><tr><th>ts</th><th>note</th><th>n</th></tr></thead><tbody><tr>"
        "<td>2024-01-01 00:00:00</td><td>&lt;b&gt;</td><td><em>NULL</em></td></tr></tbody></table>"
        "<p>1 row, the whole result (1 row of the input read)</p>"
    )


@pytest.mark.parametrize("n", [0, -1, "5", 2.0, True])
def test_the_number_of_rows_is_checked(n: object) -> None:
    with pytest.raises(QueryError, match="preview n: must be a whole number of rows from 1 on"):
        stream(1).preview(n)  # type: ignore[arg-type]


def test_what_a_stream_is_can_be_asked() -> None:
    made = stream(1).select("k", half=col("v") / 2)
    assert made.columns == ("ts", "k", "half")
    assert made.schema.field("half").type == pa.float64()
    assert repr(made) == "Stream(ts timestamp, k bigint, half double; select k, half = v / 2)"
    wide = stream(1).select(**{f"c{i}": col("v") for i in range(20)})
    assert repr(wide).startswith("Stream(ts timestamp, c0 bigint, c1 bigint, ")
    assert ", ... 13 more; select c0 = v, c1 = v, " in repr(wide)
    assert len(repr(wide)) < 260


def test_a_plan_is_shown_as_lines() -> None:
    plan = stream(1).explain()
    assert repr(plan) == plan
    assert repr(plan).splitlines()[0] == "query"


def test_what_needs_spark_says_so() -> None:
    sounds = stream(1).select(x=tg.call("soundex", "k"))
    assert repr(sounds) == "Stream(ts, x; select x = SOUNDEX(k))"
    for ask in (sounds.preview, lambda: sounds.schema):
        with pytest.raises(QueryError, match="SOUNDEX needs Spark"):
            ask()


def test_a_failure_in_the_query_is_told() -> None:
    class Odd(tg.Process):
        output: ClassVar = {"v": "bigint"}

        def on_tuple(self, tuple, keys):
            raise ValueError("odd")

    with pytest.raises(TaskError, match="odd"):
        stream(1).process(Odd, keys="k").preview()


def test_a_stream_without_a_session_has_no_preview() -> None:
    alone = tg.Stream(stream(1).node, lambda *_: None, lambda *_: "")
    with pytest.raises(UnavailableError, match="preview: needs a stream of a session"):
        alone.preview()


LINES = """
import tidegate as tg
from tidegate import col, count, mean
s = tg.Session(master="none")
s
rides = s.stream("rides.csv", name="rides")
rides
rides.preview(1)
hours = rides.window("1 hour").group_by("route")
hours
fares = hours.agg(n=count("*"), fare=mean("fare"))
fares
mean("fare"), col("fare") > 5
fares.preview()
sink = tg.sink.memory()
query = fares.start(sink=sink)
summary = query.wait()
type(summary)
repr(summary)[:48]
repr(query)
sink
rides.show()
"""
SHOWN = """\
Session(master='none')
Stream(ts timestamp, route string, fare double; stream rides from rides.csv)
ts                   route  fare
2024-01-01 00:00:01  a       5.0
first 1 row (2 rows of the input read)
Windowed([RANGE 1 hour] by route of Stream(ts timestamp, route string, fare double; \
stream rides from rides.csv); waits for agg() or process())
Stream(window_start timestamp, window_end timestamp, route string, n bigint, fare double; \
aggregate [RANGE 1 hour] by route: n = count(*), fare = mean(fare))
(mean(fare), Expression(fare > 5))
window_start         window_end           route  n   fare
2024-01-01 00:00:00  2024-01-01 01:00:00  a      1  5.000
2024-01-01 00:00:00  2024-01-01 01:00:00  b      1  7.500
2 rows, the whole result (2 rows of the input read)
<class 'tidegate.driver.report.metrics.Summary'>
'Summary(finished: 2 rows in, 2 out; 1 batch in 0'
'RunningQuery(finished: 1 batch, 2 rows in, 2 out)'
MemorySink(1 batch, 2 rows)
"""


@pytest.mark.whole
def test_in_a_repl(tmp_path: Path) -> None:
    rows = "ts,route,fare\n2024-01-01T00:00:01Z,a,5.0\n2024-01-01T00:00:02Z,b,7.5\n"
    (tmp_path / "rides.csv").write_text(rows)
    done = subprocess.run(
        [sys.executable, "-q", "-i"],
        input=LINES,
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.stdout == SHOWN
    assert "stream: a stream has no last row to wait for; got .show. Write .preview(10)" in (
        done.stderr
    )


def test_a_notebook_shows_streams_plans_and_queries_and_no_markup_of_their_names() -> None:
    hostile = "<img src=x>"
    rows = [{"ts": START, hostile: 1}]
    session = tg.Session(master="none")
    stream = session.stream(rows, time="ts", name="s")
    query = stream.start(sink=tg.sink.memory())
    query.wait(60)
    table = session.table(rows)
    for shown in (stream, stream.explain(), table, query):
        html = shown._repr_html_()
        assert "<img" not in html
        assert shown is query or "&lt;img src=x&gt;" in html
    assert "<td>1 rows in, 1 out, 0 late, 0 rejected</td>" in query._repr_html_()
    with pytest.raises(NotImplementedError):
        query._ipython_display_()  # no kernel: IPython takes the text
