"""Whole queries on Spark: the rows of one process, for any exchange, strategy and switch."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import tidegate as tg
from tidegate.errors import TaskError
from tidegate.execute import delivery as edge
from tidegate.execute.spark import task_exchange as spark_shared
from tidegate.query.stream import Stream
from tidegate.sink.memory import MemorySink
from tidegate.source.memory import MemorySource
from tidegate.testing import Watched, disorder, visits

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 900
BATCH_ROWS = 250
LONG = 1000
"""How long the runs of some keys are before the first tuple."""
GRAPHS = """
CREATE STREAM busy AS
SELECT k, COUNT(*) AS n, SUM(v) AS total FROM a [RANGE 3 SECONDS SLIDE 1 SECOND] GROUP BY k;
CREATE STREAM near AS
SELECT a.k, a.v, busy.n FROM a [RANGE 1 SECOND] JOIN busy [RANGE 2 SECONDS]
ON a.k = busy.k AND a.v > busy.n;
CREATE STREAM both AS SELECT k, v FROM a WHERE v % 3 = 0 UNION ALL SELECT k, total FROM busy;
INSERT INTO rare SELECT * FROM busy WHERE n < 20;
INSERT INTO often SELECT * FROM busy WHERE n >= 20 ORDER BY n DESC LIMIT 2;
INSERT INTO pairs SELECT k, SUM(v) AS v, COUNT(*) AS m FROM near [ROWS 4 SLIDE 3] GROUP BY k;
INSERT INTO windows SELECT k, MEDIAN(v) AS v, MAX(n) AS n FROM near [RANGE 2 SECONDS] GROUP BY k;
INSERT INTO about SELECT MEDIAN(v) AS v, AVG(n) AS n, COUNT(*) AS m
FROM near [RANGE 10 SECONDS SLIDE 1 SECOND] WITH ERROR 40 PERCENT CONFIDENCE 60 PERCENT;
INSERT INTO represented SELECT k, SUM(v) AS v, LAST(n) AS n
FROM near [RANGE 4 SECONDS SLIDE 2 SECONDS] GROUP BY k WITH SHED 60 PERCENT BY CONCEPT;
INSERT INTO paired SELECT k, COUNT(*) AS m, AVG(v) AS v
FROM (SELECT l.k, r.v FROM a AS l [RANGE 1 SECOND] JOIN a AS r [RANGE 2 SECONDS] ON l.k = r.k)
[RANGE 4 SECONDS] GROUP BY k WITH SHED 60 PERCENT BY CONCEPT;
INSERT INTO balanced SELECT IF(k < 4, 0, k) AS k, MEDIAN(v) AS v, COUNT(*) AS m
FROM a [RANGE 5 SECONDS] GROUP BY IF(k < 4, 0, k)
WITH BALANCE ERROR 15 PERCENT CONFIDENCE 60 PERCENT TRIM ALL;
INSERT INTO united SELECT k, COUNT(*) AS m, MIN(v) AS v FROM both [RANGE 4 SECONDS] GROUP BY k;
"""
WAYS: dict[str, dict[str, Any]] = {
    "shared": {"exchange": "shared", "instances": 2},
    "shuffle, switched": {
        "exchange": "shuffle",
        "instances": {"aggregate": 3, "join": 2},
        "switches": {"join": {1: 3, 2: 4}, "aggregate": {2: 1}, 3: 2},
    },
    "shared, a job per subquery": {"exchange": "shared", "instances": 2},
    "tiny batches": {"instances": {"aggregate": 3, "process": 2}, "switches": {"join": {1: 4}}},
    "operator-cloud": {"instances": 2, "strategy": "operator-cloud"},
    "query-cloud, switched": {"instances": 3, "strategy": "query-cloud", "switches": {2: 2}},
}


class Runs(tg.Process):
    """How many tuples with a rising value follow each other, per key; told when a run ends."""

    output: Mapping[str, str] = {"k": "bigint", "length": "bigint"}

    def __init__(self) -> None:
        self.last: dict[int, int] = {}
        self.length: MutableMapping[int, int] = self.state.map("length")

    def on_tuple(self, tuple: Any, keys: list[int]) -> Any:
        for key in keys:
            if tuple.v < self.last.get(key, 0):
                yield {"k": key, "length": self.length.pop(key)}
            self.last[key] = tuple.v
            self.length[key] = self.length.get(key, 0) + 1


class Values(tg.Process):
    """The values of a window, each once and in order; its state can be merged."""

    output: Mapping[str, str] = {"v": "bigint"}
    mergeable = True

    def __init__(self) -> None:
        self.seen: set[int] = set()

    def on_tuple(self, tuple: Any, keys: list[int]) -> None:
        self.seen.add(tuple.v)

    def merge(self, other: Values) -> None:
        self.seen |= other.seen

    def finish(self) -> Any:
        return [{"v": v} for v in sorted(self.seen)]


class Broken(Runs):
    """Raises at one tuple."""

    def on_tuple(self, tuple: Any, keys: list[int]) -> Any:
        if tuple.v == 7:
            raise ValueError("seven")
        yield from super().on_tuple(tuple, keys)


def stream(session: tg.Session) -> Stream:
    random = np.random.default_rng(11)
    times = np.sort(random.integers(0, 20_000, ROWS)) * 1_000 + 1_700_000_000_000_000
    table = pa.table(
        {
            "ts": pa.array(times).cast(pa.timestamp("us", tz="UTC")),
            "k": pa.array(random.integers(0, 6, ROWS)),
            "v": pa.array(random.integers(0, 30, ROWS)),
        }
    )
    source = MemorySource(table, time="ts")
    source.end()
    return session.stream(source, time="ts", name="a")


def outputs(session: tg.Session) -> dict[str, Stream]:
    a = stream(session)
    begun = session.table({"k": [3, 0, 99], "length": [LONG, 2 * LONG, 0]}, name="begun")
    runs = a.process(Runs, keys="k", initial=begun).where(tg.col("length") > 1)
    values = a.window("2 seconds").group_by("k").partition("pk").process(Values)
    return {**session.queries(GRAPHS, a=a), "runs": runs, "values": values}


def run(session: tg.Session, **options: Any) -> dict[str, pa.Table]:
    streams = outputs(session)
    sinks = {name: MemorySink() for name in streams}
    session.start(streams, sinks=sinks, **options).wait()
    return {name: sink.table() for name, sink in sinks.items()}


@pytest.fixture(scope="module")
def wanted() -> dict[str, pa.Table]:
    found = run(tg.Session(master="none"), instances=1, batch_rows=10_000, buckets=16)
    assert min(t.num_rows for t in found.values()) > 10
    lengths = found["runs"].column("length").to_pylist()
    assert [n // LONG for n in lengths if n > LONG] in ([1, 2], [2, 1])
    assert set(found["balanced"].column("exact").to_pylist()) == {True, False}
    return found


@pytest.mark.parametrize("way", WAYS)
def test_all_outputs_are_those_of_one_process(
    spark: SparkSession,
    way: str,
    wanted: dict[str, pa.Table],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if way == "shared":
        monkeypatch.setattr(spark_shared, "SMALL_ROWS", 0)
        monkeypatch.setattr(edge, "SPAN_ROWS", 40)
    elif way == "shared, a job per subquery":
        monkeypatch.setattr(spark_shared, "TINY_ROWS", 0)
    got = run(tg.Session(spark), batch_rows=BATCH_ROWS, buckets=16, **WAYS[way])
    assert {n: t.num_rows for n, t in got.items()} == {n: t.num_rows for n, t in wanted.items()}
    for name, table in wanted.items():
        assert got[name].equals(table), name


def test_a_process_that_raises_commits_nothing(spark: SparkSession) -> None:
    sink = MemorySink()
    a = stream(tg.Session(spark))
    told = r"bucket \d+, tuple at 2023-11-14.*Broken.*ValueError: seven"
    with pytest.raises(TaskError, match=told):
        a.process(Broken, keys="k").start(sink=sink, instances=2, batch_rows=ROWS).wait()
    assert sink.batches == {}


def test_each_bucket_is_run_by_one_instance_at_a_time(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In several worker processes of Spark, over switches."""
    monkeypatch.setattr(spark_shared, "SMALL_ROWS", 0)
    seen = str(tmp_path / "seen")
    sink = MemorySink()
    a = stream(tg.Session(spark))
    runs = a.process(Watched(Runs, seen), keys="k")
    runs.start(
        sink=sink, instances=2, buckets=4, batch_rows=150, switches={2: 4, 4: 1, 5: 3}
    ).wait()
    calls = visits(seen)
    assert sum(len(c) for c in calls.values()) == ROWS
    assert len({v.process for c in calls.values() for v in c}) > 1
    assert disorder(calls) == []
