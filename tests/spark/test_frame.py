"""DataFrames as sources: bounded and streaming, once each, whatever is repeated or restarted."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

import tidegate as tg
from tests.driver.scene import SCHEMA, Row, csv, memory, rows_of, table
from tidegate.driver.report.metrics import Summary
from tidegate.errors import RunError, SourceError
from tidegate.execute.spark.frame import FrameConnector
from tidegate.state.store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS: list[Row] = [(t, "abc"[t % 3], t) for t in range(1, 25)]
COUNTED = [(t * 10.0, t * 10.0 + 10, sum(r[0] // 10 == t for r in ROWS)) for t in range(3)]


def counted(stream: tg.Stream) -> tg.Stream:
    return stream.window("10 seconds").agg(n=tg.count())


def bounded(spark: SparkSession, *rows: Row) -> DataFrame:
    return spark.createDataFrame(table(*rows))


START_S = 1_700_000_000


def write(folder: Path, name: str, *rows: Row) -> None:
    """A file that is newer than those before it: Spark takes files in the order of their age."""
    folder.mkdir(exist_ok=True)
    pq.write_table(table(*rows), folder / f".{name}")
    age = START_S + len(list(folder.glob("*.parquet")))
    os.utime(folder / f".{name}", (age, age))
    (folder / f".{name}").rename(folder / f"{name}.parquet")


def streaming(spark: SparkSession, folder: Path) -> DataFrame:
    """One file per micro-batch."""
    schema = "ts timestamp, k string, v bigint"
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def until(condition: Callable[[], bool], query: tg.RunningQuery) -> None:
    for _ in range(2_400):
        if condition():
            return
        query.wait(0.05)
    raise AssertionError(f"never came: {query.status()}")


def spooled(checkpoint: Path) -> list[str]:
    return sorted(p.name for p in (checkpoint / "spool").glob("*"))


def test_a_bounded_frame(spark: SparkSession, tmp_path: Path) -> None:
    frame = bounded(spark, *ROWS, (None, "no time", 0)).repartition(2)
    sink = tg.sink.memory()
    stream = tg.Session(spark).stream(frame, time="ts", name="s")
    summary = counted(stream).start(sink=sink, checkpoint=str(tmp_path)).wait()
    assert rows_of(sink) == COUNTED
    assert (summary.counters["rows_in"], summary.counters["rows_rejected"]) == (25, 1)
    assert spooled(tmp_path) == ["s_2f_0-00000000.json"], "runs go when they are consumed"


def test_a_stream_is_run_again_on_another_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    stream = counted(tg.Session(spark).stream(bounded(spark, *ROWS), time="ts", name="s"))
    for place in ("one", "two"):
        sink = tg.sink.memory()
        stream.start(sink=sink, checkpoint=str(tmp_path / place)).wait()
        assert rows_of(sink) == COUNTED


def test_other_rows_at_the_place_of_an_earlier_checkpoint(
    spark: SparkSession, tmp_path: Path
) -> None:
    session = tg.Session(spark)
    for value in (1, 2):
        sink = tg.sink.memory()
        stream = session.stream(bounded(spark, (1, "a", value)), time="ts", name="s")
        stream.start(sink=sink, checkpoint=str(tmp_path / "c")).wait()
        assert rows_of(sink) == [(1.0, "a", value)]
        shutil.rmtree(tmp_path / "c")


def test_a_streaming_frame_in_several_micro_batches(spark: SparkSession, tmp_path: Path) -> None:
    for i in range(3):
        write(tmp_path / "in", str(i), *ROWS[8 * i : 8 * i + 8])
    sink = tg.sink.memory()
    stream = tg.Session(spark).stream(streaming(spark, tmp_path / "in"), time="ts", name="s")
    checkpoint = tmp_path / "c"
    query = counted(stream).start(sink=sink, checkpoint=str(checkpoint))
    assert query.wait().finished
    assert rows_of(sink) == COUNTED
    assert query.status()["rows_late"] == 0
    assert query.status()["latency_ms"] is None, "a run that does not follow it is no live one"
    assert [n for n in spooled(checkpoint) if n.endswith(".arrow")] == []
    assert len(spooled(checkpoint)) == 1, "markers of older micro-batches go"


def test_a_streaming_frame_as_far_as_it_is_available(spark: SparkSession, tmp_path: Path) -> None:
    sink, checkpoint = tg.sink.memory(), tmp_path / "c"

    def run(**options: bool) -> Summary:
        stream = tg.Session(spark).stream(streaming(spark, tmp_path / "in"), time="ts", name="s")
        return counted(stream).start(sink=sink, checkpoint=str(checkpoint), **options).wait()

    write(tmp_path / "in", "0", *ROWS[:6])
    write(tmp_path / "in", "1", *ROWS[6:12])
    summary = run(available_now=True)
    assert (summary.up_to_date, summary.finished, summary.counters["rows_in"]) == (True, False, 12)
    assert rows_of(sink) == COUNTED[:1]
    write(tmp_path / "in", "2", *ROWS[12:])
    assert run().finished
    assert rows_of(sink) == COUNTED


def test_a_followed_frame_goes_on_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    """The newest micro-batch is repeated by Spark, as after a crash, and counts once."""
    write(tmp_path / "in", "0", *ROWS[:6])
    write(tmp_path / "in", "1", *ROWS[6:12])
    sink, checkpoint = tg.sink.memory(), tmp_path / "c"

    def start() -> tg.RunningQuery:
        """What a program does at each of its starts."""
        stream = tg.Session(spark).stream(streaming(spark, tmp_path / "in"), time="ts", name="s")
        return counted(stream).start(sink=sink, checkpoint=str(checkpoint), follow=True)

    query = start()
    until(lambda: query.status()["rows_in"] == 12, query)
    query.stop()
    assert query.status()["latency_ms"]["tuples"] == 12
    assert query.status()["backlog"]["rows"] == 0
    (logs,) = checkpoint.glob("spark-*")
    newest = max(int(p.name) for p in (logs / "commits").iterdir() if p.name.isdigit())
    (logs / "commits" / str(newest)).unlink()
    (logs / "commits" / f".{newest}.crc").unlink(missing_ok=True)
    write(tmp_path / "in", "2", *ROWS[12:])
    query = start()
    until(lambda: query.status()["rows_in"] >= 24, query)
    query.stop()
    assert query.status()["rows_in"] == 24
    assert rows_of(sink) == COUNTED[:2]
    assert query.status()["frontier_us"] == 24_000_000


def test_a_micro_batch_that_was_spooled_is_not_spooled_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    store = Store.open(tmp_path)
    store.create({})
    connector = FrameConnector(bounded(spark, *ROWS), "s/0", "ts")
    connector.attach(store, follow=False)
    before = [s.id for s in connector.discover()]
    connector._absorb(bounded(spark, *ROWS[:1]), 0)
    assert [s.id for s in connector.discover()] == before
    again = connector.for_run(0)
    (tmp_path / "spool" / "s_2f_0-00000001.0-00000.arrow").write_bytes(b"of a crash")
    again.attach(store, follow=False)
    assert [s.id for s in again.discover()] == before
    assert sum(s.extend(1) for s in again.discover()) == len(ROWS)
    again.forget(before)
    assert again.discover() == []
    assert spooled(tmp_path) == ["s_2f_0-00000000.json"]
    marker = json.loads((tmp_path / "spool" / "s_2f_0-00000000.json").read_text())
    assert sum(rows for _, rows, _ in marker) == len(ROWS)
    third = connector.for_run(0)
    third.attach(store, follow=False)
    assert third.discover() == []


def test_a_frame_at_two_places_of_a_query(spark: SparkSession, tmp_path: Path) -> None:
    for i in range(2):
        write(tmp_path / "in", str(i), *ROWS[12 * i : 12 * i + 12])
    sink = tg.sink.memory()
    stream = tg.Session(spark).stream(streaming(spark, tmp_path / "in"), time="ts", name="s")
    high, rest = stream.split(tg.col("v") > 12)
    assert counted(high.union(rest)).start(sink=sink).wait().finished
    assert rows_of(sink) == COUNTED


def test_frames_files_and_memory_are_one_stream(spark: SparkSession, tmp_path: Path) -> None:
    frame = bounded(spark, *ROWS[::3])
    path = csv(tmp_path / "s.csv", *ROWS[1::3])
    sources = [frame, path, memory(*ROWS[2::3], end=True)]
    sink = tg.sink.memory()
    stream = tg.Session(spark).stream(sources, time="ts", name="s")
    assert stream.start(sink=sink, batch_rows=7).wait().finished
    assert rows_of(sink) == [(float(t or 0), k, v) for t, k, v in ROWS]


def test_a_frame_that_fails_is_an_error_of_the_run(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in", "0", *ROWS)
    broken = streaming(spark, tmp_path / "in").selectExpr("ts", "k", "raise_error('odd moon') v")
    stream = tg.Session(spark).stream(broken.selectExpr("ts", "k", "bigint(v) v"), time="ts")
    query = stream.start(sink=tg.sink.memory())
    with pytest.raises(RunError, match=r"DataFrame stream0/0: its Spark query must run"):
        query.wait()
    still = bounded(spark, *ROWS).selectExpr("ts", "k", "bigint(raise_error('odd moon')) v")
    stream = tg.Session(spark).stream(still, time="ts")
    with pytest.raises(RunError, match=r"DataFrame stream0/0: it must be readable.*odd moon"):
        stream.start(sink=tg.sink.memory())


def test_frames_that_cannot_be_streams(spark: SparkSession) -> None:
    session = tg.Session(spark)
    frame = bounded(spark, *ROWS)
    with pytest.raises(SourceError, match="the time column must be there; got column when"):
        session.stream(frame, time="when")
    with pytest.raises(SourceError, match="its columns must have different names; got v twice"):
        session.stream(frame.select("ts", "v", "v"), time="ts")
    with pytest.raises(SourceError, match="its columns must have types that Arrow has"):
        session.stream(frame.selectExpr("ts", "make_interval(1) x"), time="ts")


def test_the_settings_of_the_users_session_change_nothing(spark: SparkSession) -> None:
    """Times as text, which only Spark has, and a sum that must not overflow in silence."""
    other = spark.newSession()
    other.conf.set("spark.sql.session.timeZone", "America/New_York")
    other.conf.set("spark.sql.ansi.enabled", "false")
    session = tg.Session(other)
    stream = session.stream(bounded(other, *ROWS), time="ts", name="s")
    sink = tg.sink.memory()
    texts = "SELECT date_format(ts, 'HH:mm') AS h, hour(ts) AS i, v / 2 AS d FROM s WHERE v < 3"
    session.sql(texts, s=stream).start(sink=sink).wait()
    assert rows_of(sink) == [(1.0, "00:00", 0, 0.5), (2.0, "00:00", 0, 1.0)]
    assert other.conf.get("spark.sql.session.timeZone") == "America/New_York"
    divided = "SELECT date_format(ts, 'HH') AS h, v / (v - 1) AS d FROM s"
    query = session.sql(divided, s=stream).start(sink=tg.sink.memory())
    with pytest.raises(RunError, match="DIVIDE_BY_ZERO"):
        query.wait()


def test_the_schema_of_a_frame_is_that_of_files(spark: SparkSession) -> None:
    assert FrameConnector(bounded(spark, *ROWS), "s/0", "ts").schema == SCHEMA


class FailsMeanwhile:
    """A query of Spark that runs at the first question, and has failed at the second."""

    asked = 0

    @property
    def isActive(self) -> bool:
        self.asked += 1
        return self.asked == 1

    def exception(self) -> Exception | None:
        self.asked += 1
        return None if self.asked == 1 else ValueError("odd moon")


def test_a_stream_that_fails_between_two_questions_has_not_ended(
    spark: SparkSession, tmp_path: Path
) -> None:
    write(tmp_path / "in", "a", *ROWS)
    connector = FrameConnector(streaming(spark, tmp_path / "in"), "s/0", "ts")
    connector._query = FailsMeanwhile()
    with pytest.raises(RunError, match="DataFrame s/0: its Spark query must run; got odd moon"):
        connector.discover()
