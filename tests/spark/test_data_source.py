"""The data source `tidegate`: what a query has published goes on in Spark, each row once."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import tidegate as tg
from tests.docs.block import blocks
from tidegate.execute.result_place import result_place
from tidegate.sink.folder.folder_reader import NONE, Published

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PAGE = "docs/spark-versions.md"
TIME = pa.timestamp("us", "UTC")
COLUMNS = pa.schema([("ts", TIME), ("route", pa.string()), ("fare", pa.int64())])


class Feed:
    """A query that runs from time to time, and takes the rows that have come by then."""

    def __init__(self, folder: Path) -> None:
        self.out, self.checkpoint = str(folder / "out"), str(folder / "ckpt")
        self.files = folder / "in"
        self.files.mkdir()

    def take(self, numbers: range) -> tg.RunningQuery:
        times = [datetime.fromtimestamp(n, UTC) for n in numbers]
        rows = {"ts": times, "route": [f"r{n % 3}" for n in numbers], "fare": list(numbers)}
        pa.parquet.write_table(
            pa.table(rows, COLUMNS), self.files / f"from-{numbers.start:05d}.parquet"
        )
        session = tg.Session(master="none")
        return session.stream(str(self.files), time="ts").start(
            sink=tg.sink.files(self.out),
            checkpoint=self.checkpoint,
            batch_rows=20,
            available_now=True,
        )


def values(frame: DataFrame) -> list[int]:
    return [row.fare for row in frame.collect()]


def load(spark: SparkSession, path: str, **options: str) -> DataFrame:
    return spark.read.format("tidegate").options(**options).load(path)


def taken(spark: SparkSession, feed: Feed, fail: bool = False) -> list[list[int]]:
    """What a streaming query of Spark over the output is given, batch by batch, until now."""
    seen: list[list[int]] = []

    def each(frame: DataFrame, batch: int) -> None:
        seen.append(values(frame))
        if fail:
            raise ValueError("downstream")

    stream = spark.readStream.format("tidegate").load(feed.checkpoint)
    writer = stream.writeStream.foreachBatch(each).trigger(availableNow=True)
    query = writer.option("checkpointLocation", f"{feed.out}-read").start()
    if fail:
        with pytest.raises(Exception, match="downstream"):
            query.awaitTermination(120)
    else:
        assert query.awaitTermination(120)
    return seen


def test_rows_come_in_the_output_order_and_each_once(spark: SparkSession, tmp_path: Path) -> None:
    feed = Feed(tmp_path)
    query = feed.take(range(100))
    query.wait()
    there = len(list(Path(feed.out).glob("batch=*")))
    rows = list(range(99))
    assert there > 2
    assert values(load(spark, feed.out)) == rows, "the last instant is not over"
    frame = query.to_dataframe(spark)
    assert frame.schema == load(spark, feed.checkpoint).schema
    ordered = load(spark, feed.checkpoint, order="TRUE").orderBy("_batch", "_row")
    assert values(ordered) == rows
    assert ordered.columns == ["ts", "route", "fare", "_batch", "_row"]

    assert taken(spark, feed, fail=True) == [rows]
    feed.take(range(100, 130)).wait()
    seen = taken(spark, feed)
    while len(seen) < 2:  # before Spark 4.2 a run is one micro-batch
        seen += taken(spark, feed)
    assert seen == [rows, list(range(99, 129))], "what failed downstream comes again"
    assert values(frame) == list(range(129)), "each action sees what is there"


def test_the_page(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    feed = Feed(tmp_path)
    query = feed.take(range(50))
    query.wait()
    names: dict[str, Any] = {"spark": spark, "query": query}
    for block in blocks(PAGE, "python"):
        text = block.replace('"out"', repr(feed.out)).replace('"ckpt"', repr(feed.checkpoint))
        exec(compile(text, PAGE, "exec"), names)
    (running,) = spark.streams.active
    try:
        running.processAllAvailable()
    finally:
        running.stop()
    found = sorted(tuple(row) for row in spark.table("counts").collect())
    assert found == [("r0", 17), ("r1", 16), ("r2", 16)]
    assert "avg(fare)" in capsys.readouterr().out
    assert names["live"].isStreaming
    assert names["frame"].schema == names["live"].schema == names["rides"].schema


def test_results_in_memory(spark: SparkSession) -> None:
    rows = [{"ts": datetime(2024, 1, 1), "fare": 1}, {"ts": datetime(2024, 1, 2), "fare": 2}]
    query = tg.Session(master="none").stream(rows).start(sink=tg.sink.memory())
    query.wait()
    assert values(query.to_dataframe(spark)) == [1, 2]
    with pytest.raises(tg.OptionError, match=r"as a stream; got MemorySink.*tg\.sink\.files"):
        query.to_dataframe(spark, stream=True)
    with pytest.raises(tg.OptionError, match="output: must be one of the query; got x"):
        query.to_dataframe(spark, output="x")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"oder": "true"}, "tidegate: has no such option; got oder. Did you mean order?"),
        ({"missing": "maybe"}, "missing: must be fail or skip; got maybe."),
        ({"output": "a"}, "output: is for a checkpoint; got a with the folder"),
    ],
)
def test_mistakes(spark: SparkSession, tmp_path: Path, options: dict[str, str], told: str) -> None:
    with pytest.raises(Exception) as refused:
        load(spark, str(tmp_path), **options)
    assert told in str(refused.value)


def test_a_batch_that_is_gone(tmp_path: Path) -> None:
    feed = Feed(tmp_path)
    feed.take(range(100)).wait()
    output = Published(feed.out)
    newest = output.newest()
    parts = output.parts(NONE, newest, skip_missing=False)
    assert [p.batch for p in parts] == list(range(newest + 1))
    shutil.rmtree(f"{feed.out}/batch=00000001")
    with pytest.raises(tg.SourceError, match=r"batch=00000001: a batch that was published must be"):
        output.parts(NONE, newest, skip_missing=False)
    rest = output.parts(NONE, newest, skip_missing=True)
    assert [p.batch for p in rest] == [p.batch for p in parts if p.batch != 1]
    shutil.rmtree(f"{feed.out}/_ledger")
    assert output.parts(NONE, newest, skip_missing=False) == rest, "as the files say"


def test_a_batch_whose_parts_are_still_coming(tmp_path: Path) -> None:
    """As on an object store, where there is no rename of a folder."""
    feed = Feed(tmp_path)
    feed.take(range(60)).wait()
    output = Published(feed.out)
    newest = output.newest()
    last = Path(feed.out) / f"batch={newest:08d}"
    (last / "part-00000.parquet").rename(last / "part-00001.parquet")
    assert output.newest() == newest - 1


def refusal(path: str) -> str:
    with pytest.raises(tg.TidegateError) as refused:
        Published(result_place(path)).schema()
    return str(refused.value)


def test_places_that_cannot_be_read(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"ts": datetime(2024, 1, 1), "v": 1}]
    session = tg.Session(master="none")
    stream = session.stream(rows)
    out, checkpoint = str(tmp_path / "csv"), str(tmp_path / "held")
    stream.start(sink=tg.sink.files(out, format="csv")).wait()
    stream.start(sink=tg.sink.memory(), checkpoint=checkpoint).wait()
    several = session.queries(
        "INSERT INTO a SELECT v FROM s; INSERT INTO b SELECT v FROM s", s=stream
    )
    named = str(tmp_path / "named")
    sinks = {n: tg.sink.files(tmp_path / n) for n in several}
    session.start(several, sinks=sinks, checkpoint=named).wait()
    assert "must have Parquet files; got part-00000.csv. Of CSV and JSON" in refusal(out)
    assert "must be of a query that writes where others can read" in refusal(checkpoint)
    assert "has several outputs. Choose one of a, b." in refusal(named)
    assert "must be the folder of an output, or a checkpoint" in refusal(str(tmp_path / "nowhere"))
