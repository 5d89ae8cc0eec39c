"""LIMIT without a window: the first rows in the total order for any cut, and then the end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import tidegate as tg
from tidegate import col, left, right
from tidegate.cli.main import invoke
from tidegate.errors import QueryError

START = datetime(2024, 1, 1, tzinfo=UTC)
session = tg.Session(master="none")


def source(n: int, step: int = 1, end: bool = True) -> tg.MemorySource:
    rows = [{"ts": START + timedelta(seconds=i * step), "v": i, "row": -i} for i in range(n)]
    made = tg.MemorySource(rows, time="ts")
    if end:
        made.end()
    return made


def ran(stream: tg.Stream, **options: object) -> pa.Table:
    sink = tg.sink.memory()
    stream.start(sink=sink, **options).wait(60)
    return sink.table()


@pytest.mark.parametrize("batch_rows", [1, 7, 1000])
@pytest.mark.parametrize("instances", [1, 3])
def test_the_rows_are_the_first_for_any_cut(batch_rows: int, instances: int) -> None:
    two = session.stream([source(12, 2), source(12, 3)], time="ts")
    kept = two.where(col("v") % 2 == 1)
    all_rows = ran(kept)
    cut = ran(kept.limit(5), batch_rows=batch_rows, instances=instances)
    assert cut == all_rows.slice(0, 5)
    assert ran(kept.limit(1000), batch_rows=batch_rows) == all_rows


def test_a_query_ends_when_it_has_its_rows() -> None:
    stream = session.stream(source(10_000), time="ts").limit(5)
    sink = tg.sink.memory()
    summary = stream.start(sink=sink, batch_rows=100).wait(60)
    assert summary.finished
    assert summary.batches == 1
    endless = session.stream(source(100, end=False), time="ts").limit(5)
    query = endless.start(sink=sink, follow=True)
    assert query.wait(60).finished
    assert not query.status()["running"]
    assert len(ran(session.stream(source(5), time="ts").limit(0))) == 0


def test_a_restart_does_not_begin_to_count_again(tmp_path: Path) -> None:
    rows = source(40, end=False)
    stream = session.stream(rows, time="ts", name="s").limit(30)
    sink, checkpoint = tg.sink.memory(), str(tmp_path / "state")
    query = stream.start(sink=sink, checkpoint=checkpoint, follow=True, batch_rows=10)
    while query.status()["rows_out"] < 10:
        query.wait(0.01)
    query.stop()
    before = sink.table()
    again = tg.sink.memory()
    rows.append(
        [{"ts": START + timedelta(seconds=40 + i), "v": 40 + i, "row": 0} for i in range(5)]
    )
    rows.end()
    summary = stream.start(sink=again, checkpoint=checkpoint, batch_rows=10).wait(60)
    assert summary.finished
    both = pa.concat_tables([before, again.table()])
    assert both.column("v").to_pylist() == list(range(30))
    third = stream.start(sink=tg.sink.memory(), checkpoint=checkpoint).wait(60)
    assert third.finished
    assert third.batches == 0


def test_in_sql_over_anything_without_a_window() -> None:
    s = session.stream(source(20), time="ts")
    table = session.sql("SELECT *, v + 1 AS y FROM s ORDER BY ts LIMIT 3", s=s).preview().table
    assert table.column_names == ["ts", "v", "row", "y"]
    assert table.column("y").to_pylist() == [1, 2, 3]
    pairs = s.join(s.select(w="v"), within="1 second", on=left.v == right.w)
    assert (
        session.sql("SELECT w FROM p LIMIT 4", p=pairs.select("w")).preview().to_pylist()[-1]["w"]
        == 3
    )
    counted = session.sql(
        "SELECT COUNT(*) AS n FROM (SELECT v FROM s WHERE v > 4 LIMIT 7) [RANGE 1 HOUR]", s=s
    )
    assert [r["n"] for r in counted.preview().to_pylist()] == [7]
    assert "limit 3" in session.sql("SELECT v FROM s LIMIT 3", s=s).explain()


def test_of_windows_it_is_per_window() -> None:
    counts = session.stream(source(20), time="ts").window("10 seconds").group_by("v").agg()
    assert [r["v"] for r in counts.limit(2).preview().to_pylist()] == [0, 1, 10, 11]


def test_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [f"2024-01-01T00:00:{i:02d}Z,{i}" for i in range(30)]
    Path("rides.csv").write_text("\n".join(["ts,v", *lines]) + "\n")
    Path("q.sql").write_text("CREATE STREAM r FROM 'rides.csv'; SELECT v FROM r LIMIT 2")
    arguments = ["run", "q.sql", "--master", "none", "--batch-rows", "10", "--out", "out"]
    assert invoke([*arguments, "--format", "csv"]) == 0
    files = sorted(Path("out").rglob("*.csv"))
    assert "".join(f.read_text() for f in files).splitlines()[1:] == [
        "2024-01-01 00:00:00.000000Z,0",
        "2024-01-01 00:00:01.000000Z,1",
    ]
    assert "finished" in capsys.readouterr().err


def test_another_order_is_refused() -> None:
    s = session.stream(source(2), time="ts")
    told = (
        "ORDER BY: an unbounded stream has no last tuple to wait for, so its order cannot be "
        "changed; got {}. Rows are in the order of event time. Give the stream a window and an "
        "aggregate, or leave ORDER BY out."
    )
    for by, got in (("v", "v"), ("ts DESC", "ts DESC"), ("ts, v", "v")):
        with pytest.raises(QueryError) as error:
            session.sql(f"SELECT v FROM s ORDER BY {by} LIMIT 3", s=s)
        assert str(error.value) == told.format(got)
    with pytest.raises(QueryError) as error:
        s.order_by("v")
    assert str(error.value) == told.format("v")
