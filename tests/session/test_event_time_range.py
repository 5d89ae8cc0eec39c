"""Every row is in the output, late or rejected, whatever its event time: for all operators."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tidegate as tg
from tidegate.errors import QueryError, SourceError, TaskError
from tidegate.schema import TIME

DAY = 86_400_000_000
FIRST, LAST = -719_162 * DAY, 2_932_897 * DAY - 1
"""The years 1 to 9999, by the days that lie between them and 1970."""

TIMES = sorted(
    [
        *(FIRST, FIRST + 1, -1, 0, LAST - 1, LAST),
        *(-(2**63), -(2**63) + 1, FIRST - 1, LAST + 1, 2**63 - 3_600_000_000, 2**63 - 1),
    ]
)
INSIDE = [i for i, t in enumerate(TIMES) if FIRST <= t <= LAST]
REASONS = {
    **{i: "ts is before the year 1" for i, t in enumerate(TIMES) if t < FIRST},
    **{i: "ts is after the year 9999" for i, t in enumerate(TIMES) if t > LAST},
    len(TIMES): "ts is NULL",
}

QUERIES = {
    "stateless": "SELECT id FROM s",
    "tumbling": "SELECT id, COUNT(*) AS n FROM s [RANGE 1 HOUR] GROUP BY id",
    "sliding": "SELECT id, COUNT(*) AS n FROM s [RANGE 1 HOUR SLIDE 7 MINUTES] GROUP BY id",
    "longest": "SELECT id, COUNT(*) AS n FROM s [RANGE 3652425 DAYS] GROUP BY id",
    "rows": "SELECT id, COUNT(*) AS n FROM s [ROWS 1] GROUP BY id",
    "join": "SELECT a.id FROM s [RANGE 1 HOUR] AS a JOIN s [RANGE 1 HOUR] AS b ON a.id = b.id",
    "band": (
        "SELECT a.id FROM s [RANGE 3652425 DAYS] AS a JOIN s [RANGE 1 DAY] AS b"
        " ON a.id BETWEEN b.id AND b.id + 0"
    ),
    "last rows": "SELECT a.id FROM s [ROWS 1] AS a JOIN s [ROWS 1] AS b ON a.id = b.id",
    "union": "SELECT id FROM s UNION ALL SELECT id FROM s",
    "nested": (
        "SELECT id, COUNT(*) AS n FROM"
        " (SELECT id, COUNT(*) AS m FROM s [RANGE 1 DAY SLIDE 1 HOUR] GROUP BY id)"
        " [RANGE 2 DAYS SLIDE 1 DAY] GROUP BY id"
    ),
    "joined windows": (
        "SELECT a.id FROM (SELECT id, COUNT(*) AS n FROM s [RANGE 1 HOUR] GROUP BY id)"
        " [RANGE 1 HOUR] AS a JOIN s [RANGE 1 HOUR] AS b ON a.id = b.id"
    ),
}


class Echo(tg.Process):
    """Gives every tuple back from a timer at the time of the tuple."""

    output = {"id": "bigint"}  # noqa: RUF012

    def __init__(self) -> None:
        self.held: list[int] = []

    def on_tuple(self, tuple: Any, keys: list[Any]) -> Iterator[dict[str, Any]]:
        self.held.append(tuple.id)
        self.wake(tuple.ts)
        return iter(())

    def on_frontier(self, ts: datetime) -> Iterator[dict[str, Any]]:
        held, self.held = self.held, []
        return iter([{"id": i} for i in held])


def table(times: list[int | None] | None = None) -> pa.Table:
    """One row per time with its place as `id`, and one without a time."""
    given = [*TIMES, None] if times is None else times
    return pa.table({"ts": pa.array(given, TIME), "id": pa.array(range(len(given)))})


def parquet(folder: Path) -> str:
    """In row groups that are in range, out of it, and both."""
    pq.write_table(table(), folder / "s.parquet", row_group_size=2)
    return str(folder / "s.parquet")


def lines(out: Path, pattern: str) -> list[dict[str, Any]]:
    files = sorted(out.glob(pattern))
    return [json.loads(line) for p in files for line in p.read_text().splitlines()]


def checked(stream: tg.Stream, out: Path, rows: int = len(TIMES) + 1, **options: Any) -> None:
    """Run, and find every row."""
    sink = tg.sink.files(str(out), format="json")
    summary = stream.start(sink=sink, **options).wait()
    assert sorted({row["id"] for row in lines(out, "batch=*/*.json")}) == INSIDE
    sides = lines(out, "_rejected/*/*.json")
    assert {json.loads(row["_raw"])["id"]: row["_reason"] for row in sides} == REASONS
    assert len(sides) == summary.counters["rows_rejected"] == rows - len(INSIDE)
    assert summary.counters["rows_in"] == rows
    assert not summary.counters.get("rows_late")


@pytest.mark.parametrize("query", QUERIES)
def test_every_operator_has_every_row_in_its_output_or_rejected(query: str, tmp_path: Path) -> None:
    session = tg.Session(master="none")
    stream = session.stream(parquet(tmp_path), time="ts", name="s")
    checked(session.sql(QUERIES[query], s=stream), tmp_path / "out", batch_rows=4)


@pytest.mark.parametrize("disorder", ["0 seconds", "1 day", "3652425 days"])
def test_disorder_may_reach_beyond_the_first_time(disorder: str, tmp_path: Path) -> None:
    session = tg.Session(master="none")
    stream = session.stream(parquet(tmp_path), time="ts", name="s", disorder=disorder)
    checked(session.sql(QUERIES["sliding"], s=stream), tmp_path / "out", batch_rows=3)


def test_timers_may_be_at_the_first_and_the_last_time(tmp_path: Path) -> None:
    stream = tg.Session(master="none").stream(parquet(tmp_path), time="ts", name="s")
    checked(stream.process(Echo, keys="id"), tmp_path / "out", batch_rows=4)


@pytest.mark.parametrize("batch_rows", [1, 100])
def test_rows_of_memory(batch_rows: int, tmp_path: Path) -> None:
    source = tg.MemorySource(table(), time="ts")
    source.end()
    session = tg.Session(master="none")
    stream = session.stream(source, time="ts", name="s")
    query = session.sql(QUERIES["join"], s=stream)
    checked(query, tmp_path / "out", batch_rows=batch_rows)


def test_a_folder_of_files_that_begin_out_of_range(tmp_path: Path) -> None:
    whole = table()
    for number in range(whole.num_rows):
        (tmp_path / "s").mkdir(exist_ok=True)
        pq.write_table(whole.slice(number, 1), tmp_path / "s" / f"{number:02}.parquet")
    session = tg.Session(master="none")
    stream = session.stream(str(tmp_path / "s"), time="ts", name="s")
    checked(session.sql(QUERIES["tumbling"], s=stream), tmp_path / "out", batch_rows=2)


UNITS = pa.table(
    {
        "ts": pa.array([-(2**63), -1, 2**63 - 1], pa.timestamp("ms")),
        "fine": pa.array([-1_500, -1, 1_999], pa.timestamp("ns")),
    }
)


def source_of(rows: pa.Table, kind: str, time: str, folder: Path) -> str | tg.MemorySource:
    if kind == "file":
        pq.write_table(rows, folder / "s.parquet")
        return str(folder / "s.parquet")
    source = tg.MemorySource(rows, time=time)
    source.end()
    return source


def times_of(stream: tg.Stream) -> tuple[dict[str, list[int]], int]:
    sink = tg.sink.memory()
    summary = stream.start(sink=sink).wait()
    columns = {n: sink.table()[n].cast(pa.int64()).to_pylist() for n in sink.table().column_names}
    return columns, summary.counters["rows_rejected"]


@pytest.mark.parametrize("kind", ["file", "memory"])
def test_an_event_time_whose_unit_overflows_is_rejected(kind: str, tmp_path: Path) -> None:
    session = tg.Session(master="none")
    stream = session.stream(source_of(UNITS, kind, "ts", tmp_path), time="ts", name="s")
    query = session.sql("SELECT ts AS t, fine FROM s", s=stream)
    assert times_of(query) == ({"ts": [-1000], "t": [-1000], "fine": [-1]}, 2)


@pytest.mark.parametrize("kind", ["file", "memory"])
def test_nanoseconds_are_rounded_down(kind: str, tmp_path: Path) -> None:
    fine = UNITS.select(["fine"])
    session = tg.Session(master="none")
    stream = session.stream(source_of(fine, kind, "fine", tmp_path), time="fine", name="s")
    query = session.sql("SELECT fine AS t FROM s", s=stream)
    assert times_of(query) == ({"ts": [-2, -1, 1], "t": [-2, -1, 1]}, 0)


def test_a_time_that_is_no_event_time_and_overflows_is_an_error(tmp_path: Path) -> None:
    source = source_of(UNITS, "file", "fine", tmp_path)
    session = tg.Session(master="none")
    stream = session.stream(source, time="fine", name="s")
    assert times_of(session.sql("SELECT fine AS t FROM s", s=stream))[1] == 0
    wanted = r"s\.parquet: times in column ts must fit .*; got -9223372036854775808 ms\. Write"
    with pytest.raises(SourceError, match=wanted):
        times_of(session.sql("SELECT ts AS t FROM s", s=stream))
    with pytest.raises(SourceError, match="times in column ts must fit"):
        tg.MemorySource(UNITS, time="fine")


@pytest.mark.parametrize("type_", [pa.date32(), pa.date64()])
def test_dates_are_event_times_of_the_same_years(type_: pa.DataType, tmp_path: Path) -> None:
    days = [-(2**31), FIRST // DAY - 1, FIRST // DAY, 0, LAST // DAY, LAST // DAY + 1, 2**31 - 1]
    dates = pa.array(days, pa.int32()).view(pa.date32()).cast(type_)
    session = tg.Session(master="none")
    source = source_of(pa.table({"d": dates}), "memory", "d", tmp_path)
    stream = session.stream(source, time="d", name="s")
    columns, rejected = times_of(session.sql("SELECT 1 AS one FROM s", s=stream))
    assert (columns["ts"], rejected) == ([FIRST, 0, LAST // DAY * DAY], 4)


@pytest.mark.parametrize("form", ["csv", "json"])
def test_texts_that_are_no_times_of_these_years_are_rejected(form: str, tmp_path: Path) -> None:
    texts = [
        *("0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "0000-12-31T23:59:59Z"),
        *("10000-01-01T00:00:00Z", "+10000-01-01", "-0001-01-01", "0001-01-01T00:00:00+01:00"),
        "9999-12-31T23:59:59-01:00",
    ]
    rows = {"csv": "".join(["ts,id\n", *(f"{t},{i}\n" for i, t in enumerate(texts))])}
    rows["json"] = "".join(json.dumps({"ts": t, "id": i}) + "\n" for i, t in enumerate(texts))
    (tmp_path / f"s.{form}").write_text(rows[form])
    session = tg.Session(master="none")
    stream = session.stream(str(tmp_path / f"s.{form}"), time="ts", name="s")
    sink = tg.sink.files(str(tmp_path / "out"), format="json")
    summary = session.sql("SELECT id FROM s", s=stream).start(sink=sink).wait()
    assert [row["id"] for row in lines(tmp_path / "out", "batch=*/*.json")] == [0, 1]
    reasons = [row["_reason"] for row in lines(tmp_path / "out", "_rejected/*/*.json")]
    early, late = "ts is before the year 1", "ts is after the year 9999"
    first = 5 if form == "csv" else 4
    unread = [
        f"line {first + i}, column ts: {t!r} is not a timestamp" for i, t in enumerate(texts[3:6])
    ]
    assert reasons == [early, *unread, early, late]
    assert summary.counters["rows_in"] == len(texts)


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_a_window_that_ends_after_the_last_year_is_written(form: str, tmp_path: Path) -> None:
    source = tg.MemorySource(table([FIRST, LAST]), time="ts")
    source.end()
    session = tg.Session(master="none")
    stream = session.stream(source, time="ts", name="s")
    query = session.sql("SELECT COUNT(*) AS n FROM s [RANGE 2 DAYS SLIDE 1 DAY]", s=stream)
    query.start(sink=tg.sink.files(str(tmp_path / "out"), format=form)).wait()
    (path,) = (tmp_path / "out").glob("batch=*/*")
    if form == "parquet":
        ends = pq.read_table(path)["window_end"].cast(pa.int64()).to_pylist()
        assert ends == [FIRST + DAY, FIRST + 2 * DAY, LAST + 1, LAST + 1 + DAY]
    else:
        text = path.read_text()
        assert "0000-12-31" in text
        assert "+10000-01-01" in text
        assert "+10000-01-02" in text


def test_a_duration_is_at_most_10_000_years() -> None:
    stream = tg.Session(master="none").stream(tg.MemorySource(table(), time="ts"), time="ts")
    with pytest.raises(QueryError, match="a duration must not exceed 10,000 years; got 3"):
        stream.window("3652426 days")


def test_windows_over_windows_do_not_reach_beyond_64_bits() -> None:
    session = tg.Session(master="none")
    source = tg.MemorySource(table([LAST]), time="ts")
    source.end()
    window = "[RANGE 3652425 DAYS SLIDE 3652000 DAYS]"
    query = f"SELECT COUNT(*) AS n FROM s {window}"
    for _ in range(27):
        query = f"SELECT COUNT(*) AS n FROM ({query}) {window}"
    sink = tg.sink.memory()
    stream = session.stream(source, time="ts", name="s")
    session.sql(query, s=stream).start(sink=sink).wait()
    assert sink.table().num_rows == 28
    deeper = session.sql(f"SELECT COUNT(*) AS n FROM ({query}) {window}", s=stream)
    with pytest.raises(QueryError, match="must not exceed 280,000 years together"):
        deeper.start(sink=tg.sink.memory())


class Years(tg.Process):
    """The year of the other time of every tuple."""

    output = {"year": "int"}  # noqa: RUF012

    def on_tuple(self, tuple: Any, keys: list[Any]) -> Iterator[dict[str, Any]]:
        yield {"year": tuple.other.year}


def others(session: tg.Session, *micros: int, type_: pa.DataType = TIME) -> tg.Stream:
    """A stream with times that are not event times."""
    times = pa.array(micros, pa.int32() if type_ == pa.date32() else pa.int64()).cast(type_)
    ts = pa.array(range(len(micros)), TIME)
    source = tg.MemorySource(pa.table({"ts": ts, "other": times}), time="ts")
    source.end()
    return session.stream(source, time="ts", name="s")


def test_a_process_is_told_which_time_python_does_not_have() -> None:
    session, sink = tg.Session(master="none"), tg.sink.memory()
    others(session, 0, LAST).process(Years).start(sink=sink, buckets=1, instances=1).wait()
    assert sink.table()["year"].to_pylist() == [1970, 9999]
    wanted = r"times in other must be those of the years 1 to 9999; got \+10000-01-01 00:00:00"
    with pytest.raises(TaskError, match=wanted):
        others(session, 0, LAST + 1).process(Years).start(sink=tg.sink.memory()).wait()


def test_a_band_of_dates_may_be_of_any_year() -> None:
    days = [-(2**31), -(2**31) + 1, 0, 1, 2**31 - 1]
    session, sink = tg.Session(master="none"), tg.sink.memory()
    query = session.sql(
        "SELECT a.other AS x, b.other AS y FROM s [RANGE 1 HOUR] AS a JOIN s [RANGE 1 HOUR] AS b"
        " ON a.other BETWEEN b.other AND b.other + 1",
        s=others(session, *days, type_=pa.date32()),
    )
    query.start(sink=sink).wait()
    pairs = zip(*(sink.table()[n].cast(pa.int32()).to_pylist() for n in ("x", "y")))
    # The day after the last one is the first, as in Spark: nothing lies from one to the other.
    close = {(a, b) for a in days for b in days if b <= a <= b + 1} - {(2**31 - 1, 2**31 - 1)}
    assert set(pairs) == close
