"""Spark's own streaming over a live source, for `latency.py`: micro-batches and real-time mode.

The only source that runs in real-time mode, apart from Kafka, is a stream in memory that Spark has
for its own tests; micro-batches get the other one of these. The first hands out its elements one by
one, by remote calls, so an element is a millisecond, which the query expands into its tuples; this
program gives those that are over. Tuple n is due, and has its event time, `n / rate` seconds after
the start.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from measure import CORES, percentiles, spark_session

GROUPS = 1_000
SLOTS = 2 * CORES
"""Tasks at a time: real-time mode runs both sides of its shuffle side by side."""
CHECKS_OFF = {"spark.sql.streaming.realTimeMode.allowlistCheck": "false"}
"""For a sink that throws rows away: less work than any that real-time mode allows."""
ROCKSDB = {
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming"
    ".state.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
}
_FEED_S = 0.002
_TRY_S = 8
_STEPS_MS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700)
_STEPS_MS += (1_000, 1_500, 2_000, 3_000, 5_000, 7_000, 10_000, 20_000, 30_000, 60_000)


class Feed:
    """A stream in Spark's memory with two partitions, and who fills it at a rate."""

    def __init__(self, spark: Any, rate: int, real_time: bool) -> None:
        from pyspark.sql import DataFrame

        self._jvm, self.each = spark._jvm, rate // 1_000
        streaming = self._jvm.org.apache.spark.sql.execution.streaming
        kinds = streaming.sources.LowLatencyMemoryStream, streaming.runtime.MemoryStream
        encoder = self._jvm.org.apache.spark.sql.Encoders.LONG()
        self._stream = kinds[0 if real_time else 1].apply(spark._jsparkSession, CORES, encoder)
        self._elements = DataFrame(self._stream.toDF(), spark)
        self.begun_s = 0.0
        self.sent = 0
        self.late_ms: list[float] = []

    def packets(self) -> Any:
        """The tuples: event time, a group, and a size."""
        from pyspark.sql import functions as F

        begun_us, first = round(self.begun_s * 1e6), F.col("value") * self.each
        numbers = F.sequence(first, first + (self.each - 1))
        number, group = F.col("number"), F.pmod(F.hash("number"), F.lit(GROUPS))
        address = F.concat(F.lit("10.0."), (group / 250).cast("int"), F.lit("."), group % 250)
        return self._elements.select(F.explode(numbers).alias("number")).select(
            F.timestamp_micros(F.floor(number * 1_000 / self.each) + begun_us).alias("ts"),
            address.alias("src"),
            F.pmod(number * 977, F.lit(1_460)).alias("size"),
        )

    def fill(self, seconds: float, query: Any) -> None:
        """Give what is due; `late_ms` says how long the first tuple of each call waited for it."""
        made = self._jvm.java.util.stream.LongStream.range
        converted = self._jvm.scala.jdk.javaapi.CollectionConverters.asScala
        sent, until = 0, self.begun_s + seconds
        while (now := time.time()) < until and query.isActive:
            due = int((now - self.begun_s) * 1_000)
            if due > sent:
                self._stream.addData(converted(made(sent, due).boxed().toList()))
                self.late_ms.append((time.time() - self.begun_s) * 1e3 - sent)
                sent, self.sent = due, due * self.each
            time.sleep(_FEED_S)


def windows(packets: Any, range_s: int, slide_s: int) -> Any:
    """The aggregate of `latency.py` in Spark's words."""
    from pyspark.sql import functions as F

    window = F.window("ts", f"{range_s} seconds", f"{slide_s} seconds")
    calls = [F.count("*").alias("packets"), F.avg("size").alias("size"), F.max("ts").alias("last")]
    return packets.withWatermark("ts", "0 seconds").groupBy(window, "src").agg(*calls)


def micro_batches(rate: int, warm_s: int, seconds: int, work: Path) -> dict[str, Any]:
    """Append mode into Parquet files, state in memory as by default, no trigger.

    A window's latency is from its end, when a tuple that closes it is due, to the time when the
    sink's log names its rows.
    """
    feed = Feed(spark_session({"spark.master": f"local[{SLOTS}]"}), rate, real_time=False)
    feed.begun_s = time.time()
    out = work / "out"
    found = windows(feed.packets(), 60, 1).selectExpr("window.end AS window_end", "src", "packets")
    writer = found.writeStream.format("parquet").option("path", str(out))
    query = writer.option("checkpointLocation", str(work / "checkpoint")).start()
    feed.fill(warm_s + seconds, query)
    query.awaitTermination(5)
    batches = [json.loads(p.json) for p in query.recentProgress]
    query.stop()
    first_us = round((feed.begun_s + warm_s) * 1e6)
    seen = [
        (published_s - end_us / 1e6) * 1e3
        for published_s, ends in _published(out)
        for end_us in ends
        if first_us <= end_us < first_us + seconds * 1e6
    ]
    steady = [b["durationMs"]["triggerExecution"] for b in batches if b["numInputRows"]]
    return {
        "latency_ms": percentiles(seen) if seen else None,
        "windows": len(seen),
        "windows_wanted": seconds,
        "batch_ms": percentiles(steady[len(steady) // 4 :]),
        **_fed(feed),
    }


def real_time(
    rate: int, warm_s: int, seconds: int, work: Path, range_s: int, slide_s: int
) -> dict[str, Any]:
    """Update mode: every tuple gives a row for each window that it is in.

    A row's latency is from its newest tuple to when it reaches the sink, which throws it away; the
    state is written at the end of the trigger's interval only. The first interval is left out.
    """
    from pyspark.sql import functions as F

    interval_s = max(seconds // 4, 5)
    settings = {"spark.master": f"local[{SLOTS}]", **ROCKSDB, **CHECKS_OFF}
    feed = Feed(spark_session(settings), rate, real_time=True)
    feed.begun_s = time.time()
    updates = windows(feed.packets(), range_s, slide_s)
    now_ms = F.expr("reflect('java.lang.System', 'currentTimeMillis')").cast("long")
    updates = updates.withColumn("reached_ms", now_ms)
    took_ms = F.col("reached_ms") - F.unix_millis("last")
    counts = [F.count_if(took_ms <= ms).alias(f"within_{ms}") for ms in _STEPS_MS]
    updates = updates.observe("latency", F.count("*").alias("rows"), *counts)
    writer = updates.writeStream.format("noop").outputMode("update")
    writer = writer.option("checkpointLocation", str(work / "checkpoint"))
    query = writer.trigger(realTime=f"{interval_s} seconds").start()
    feed.fill(warm_s + 4 * interval_s, query)
    query.awaitTermination(interval_s + 5)
    batches = [json.loads(p.json) for p in query.recentProgress]
    measured = [b for b in batches[1:] if b.get("observedMetrics", {}).get("latency")]
    metrics = [b["observedMetrics"]["latency"] for b in measured]
    rows = sum(m["rows"] for m in metrics)
    within = {ms: sum(m[f"within_{ms}"] for m in metrics) for ms in _STEPS_MS}
    return {
        "latency_ms": _upto(within, rows) if rows else None,
        "updates": rows,
        "interval_s": interval_s,
        "intervals": len(batches),
        "tuples_taken": sum(b["numInputRows"] for b in batches) * feed.each,
        "error": None if query.exception() is None else _first_line(query.exception()),
        **_fed(feed),
    }


def refusals(work: Path) -> dict[str, str]:
    """What Spark says to what `latency.py` asks for and to what is near to it."""
    spark = spark_session({"spark.master": f"local[{SLOTS}]", **ROCKSDB})
    feed, other = Feed(spark, 1_000, real_time=True), Feed(spark, 1_000, real_time=True)
    feed.begun_s = other.begun_s = time.time()
    left = feed.packets().withWatermark("ts", "0 seconds").alias("l")
    right = other.packets().withWatermark("ts", "0 seconds").alias("r")
    near = "abs(l.size - r.size) <= 1 AND r.ts BETWEEN l.ts - INTERVAL 10 SECONDS AND l.ts"
    band = left.join(right, _expr(near)).select("l.size")
    equal = left.join(right, _expr(f"l.src = r.src AND {near}")).select("l.size")
    sums = windows(feed.packets(), 60, 1)
    rate = spark.readStream.format("rate").load()
    tried: dict[str, Callable[[], Any]] = {
        "micro-batches: band join": lambda: band.writeStream.format("noop"),
        "real-time mode: windows in append mode": lambda: _live(sums, "append", "console"),
        "real-time mode: files as a sink": lambda: _live(
            feed.packets(), "append", "parquet"
        ).option("path", str(work / "files")),
        "real-time mode: band join": lambda: _live(band, "update", "console"),
        "real-time mode: equality join": lambda: _live(equal, "update", "console"),
        "real-time mode: the rate source": lambda: _live(rate, "update", "console"),
    }
    return {
        what: _answer(writer, work / f"checkpoint-{number}")
        for number, (what, writer) in enumerate(tried.items())
    }


def _live(frame: Any, mode: str, sink: str) -> Any:
    return frame.writeStream.format(sink).outputMode(mode).trigger(realTime="5 seconds")


def _answer(writer: Callable[[], Any], checkpoint: Path) -> str:
    """The first line of the error that a query meets; what it did where it met none."""
    try:
        query = writer().option("checkpointLocation", str(checkpoint)).start()
        try:
            query.awaitTermination(_TRY_S)
        finally:
            query.stop()
    except Exception as error:
        return _first_line(error)
    return "started"


def _first_line(error: BaseException) -> str:
    """Without the numbers of the query, which are others in each run."""
    return re.sub(r"^.*terminated with exception: ", "", str(error).strip().splitlines()[0])


def _expr(text: str) -> Any:
    from pyspark.sql import functions as F

    return F.expr(text)


def _published(out: Path) -> Iterator[tuple[float, set[int]]]:
    """When each batch's files were named in the sink's log, and the window ends that they hold."""
    known: set[str] = set()
    logs = [f for f in (out / "_spark_metadata").iterdir() if f.name.split(".")[0].isdigit()]
    for log in sorted(logs, key=lambda f: int(f.name.split(".")[0])):
        names = [json.loads(line)["path"] for line in log.read_text().splitlines()[1:]]
        fresh = [name.removeprefix("file://") for name in names if name not in known]
        known |= set(names)
        ends: set[int] = set()
        for name in fresh:
            column = pq.read_table(name, columns=["window_end"]).column(0)
            ends |= set(np.unique(column.cast("timestamp[us]").cast("int64").to_numpy()).tolist())
        yield log.stat().st_mtime, ends


def _fed(feed: Feed) -> dict[str, Any]:
    """How many tuples were given, and how late, after the first call: a part of every latency."""
    return {"tuples_fed": feed.sent, "feed_ms": percentiles(feed.late_ms[1:])}


def _upto(within: dict[int, int], rows: int) -> dict[str, float | None]:
    """Percentiles as the first step that is not exceeded; None where it is beyond the last."""
    shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
    return {
        name: next((float(ms) for ms, count in within.items() if count >= share * rows), None)
        for name, share in shares.items()
    }
