"""The user's own operator in whole runs: any batches, instances, switches, failures, restarts."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidegate as tg
from tests.operate.process.stream import (
    Dealt,
    Recent,
    Seen,
    SeenByBatch,
    Silence,
    TimedByBatch,
    Window,
    WindowByBatch,
)
from tests.oracle.process import process as plain
from tidegate.errors import CheckpointError, TaskError
from tidegate.operate.process.definition import CALLS
from tidegate.route.bucket import bucket_of
from tidegate.schema import TIME
from tidegate.testing import Watched, disorder, visits

BUCKETS = 8
SCHEMA = pa.schema([("ts", TIME), ("k", pa.list_(pa.string())), ("v", pa.int64())])
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

KEYS = st.none() | st.lists(st.sampled_from(["a", "b", "c", "d", None]), max_size=3)
SOURCE = st.lists(
    st.tuples(st.integers(0, 20), KEYS, st.none() | st.integers(0, 3)), max_size=20
).map(lambda rows: sorted(rows, key=lambda r: r[0]))
SOURCES = st.lists(SOURCE, min_size=1, max_size=3)
SWITCHES = st.dictionaries(st.integers(0, 5), st.integers(1, 5))
Source = list[tuple[int, list[str | None] | None, int | None]]


def table_of(rows: Source) -> pa.Table:
    return pa.table(
        [
            pa.array([r[0] for r in rows], pa.int64()).cast(TIME),
            pa.array([r[1] for r in rows], pa.list_(pa.string())),
            pa.array([r[2] for r in rows], pa.int64()),
        ],
        schema=SCHEMA,
    )


def stream_of(sources: list[Source]) -> tg.Stream:
    made = []
    for rows in sources:
        source = tg.MemorySource(table_of(rows), time="ts", schema=SCHEMA)
        source.end()
        made.append(source)
    return tg.Session(master="none").stream(made, time="ts", name="s")


def ran(stream: tg.Stream, **options: Any) -> list[tuple[Any, ...]]:
    sink = tg.sink.memory()
    summary = stream.start(sink=sink, buckets=BUCKETS, **options).wait()
    assert summary.finished is not options.get("available_now", False)
    table = sink.table()
    columns = [table["ts"].cast(pa.int64()), *table.columns[1:]]
    return list(zip(*(c.to_pylist() for c in columns)))


def expected(factory: Any, sources: list[Source], keyed: bool = True) -> list[tuple[Any, ...]]:
    rows = [
        {"ts": ts, "src": src, "seq": seq, "k": k, "v": v}
        for src, source in enumerate(sources)
        for seq, (ts, k, v) in enumerate(source)
    ]
    keys = (lambda r: list(dict.fromkeys(r["k"] or ()))) if keyed else None
    return plain(factory, list(factory().output), rows, keys, bucket, BUCKETS, CALLS)


def bucket(key: Any) -> int:
    return int(bucket_of([pa.array([key], pa.string())], BUCKETS)[0])


@given(
    st.sampled_from(
        [Seen, Silence, Recent, Window, Dealt, SeenByBatch, TimedByBatch, WindowByBatch]
    ),
    SOURCES,
    st.integers(1, 12),
    st.integers(1, 4),
    SWITCHES,
)
def test_the_rows_do_not_depend_on_how_it_runs(
    factory: Any,
    sources: list[Source],
    batch_rows: int,
    instances: int,
    switches: dict[int, int],
) -> None:
    stream = stream_of(sources).process(factory, keys=None if factory is Dealt else "k")
    found = ran(stream, batch_rows=batch_rows, instances=instances, switches=switches)
    if hasattr(factory, "process"):
        assert found == ran(stream, instances=1)
    else:
        assert found == expected(factory, sources, keyed=factory is not Dealt)


@given(
    st.sampled_from([Silence, Recent, Window]),
    SOURCE,
    st.lists(st.integers(0, 20), max_size=3).map(sorted),
    st.lists(st.integers(1, 4), min_size=1, max_size=3),
    st.integers(1, 12),
)
def test_the_rows_do_not_depend_on_restarts(
    factory: Any, source: Source, ends: list[int], instances: list[int], batch_rows: int
) -> None:
    """Each run takes the rows up to a place, and the next one goes on from its checkpoint."""
    found: list[tuple[Any, ...]] = []
    with tempfile.TemporaryDirectory() as folder:
        for run, end in enumerate([*ends, len(source)]):
            memory = tg.MemorySource(table_of(source[:end]), time="ts", schema=SCHEMA)
            ended = run == len(ends)
            if ended:
                memory.end()
            stream = tg.Session(master="none").stream(memory, time="ts", name="s")
            found += ran(
                stream.process(factory, keys="k"),
                checkpoint=folder,
                instances=instances[run % len(instances)],
                batch_rows=batch_rows,
                available_now=not ended,
            )
    assert found == expected(factory, [source])


def test_another_time_to_live_is_another_query(tmp_path: Path) -> None:
    class Other(Recent):
        def __init__(self) -> None:
            super().__init__()
            self.last.ttl_us = 5

    Other.__module__, Other.__qualname__ = Recent.__module__, Recent.__qualname__
    how: dict[str, Any] = {"checkpoint": str(tmp_path)}
    stream_of([ROWS]).process(Recent, keys="k").start(sink=tg.sink.memory(), **how).wait()
    with pytest.raises(CheckpointError, match="map last for 5 microseconds"):
        stream_of([ROWS]).process(Other, keys="k").start(sink=tg.sink.memory(), **how)


def test_other_columns_are_another_query(tmp_path: Path) -> None:
    class Other(Window):
        def __init__(self) -> None:
            self.values = self.state.columns("values", {"v": "bigint"}, ttl="5 us")
            self.ever = self.state.columns("ever", {"v": "bigint", "odd": "boolean"})

    Other.__module__, Other.__qualname__ = Window.__module__, Window.__qualname__
    how: dict[str, Any] = {"checkpoint": str(tmp_path)}
    stream_of([ROWS]).process(Window, keys="k").start(sink=tg.sink.memory(), **how).wait()
    with pytest.raises(CheckpointError, match=r"columns values \(ts timestamp, v bigint\)"):
        stream_of([ROWS]).process(Other, keys="k").start(sink=tg.sink.memory(), **how)


def _plain(cell: Any) -> Any:
    return (cell - EPOCH) // timedelta(microseconds=1) if isinstance(cell, datetime) else cell


ROWS: Source = [(i // 3, ["a", "b", "c", "d"][: i % 5], i % 4) for i in range(200)]


@pytest.mark.parametrize("factory", [Seen, Silence, Recent, Dealt])
def test_a_bucket_is_called_by_one_instance_at_a_time_and_in_order(
    factory: type[tg.Process], tmp_path: Path
) -> None:
    """P1, P2 and P4 of the design: the same order for all, exclusive access, and no overlap."""
    watched = Watched(factory, str(tmp_path))
    keys = None if factory is Dealt else "k"
    stream = stream_of([ROWS, ROWS])
    how = {"batch_rows": 30, "instances": 2, "switches": {2: 5, 5: 1, 7: 3}}
    found = ran(stream.process(watched, keys=keys), **how)
    assert found == ran(stream.process(factory, keys=keys), instances=1)
    seen = visits(str(tmp_path))
    assert disorder(seen) == []
    if factory is Dealt:
        orders = {tuple(v.place for v in calls) for calls in seen.values()}
        assert len(seen) == BUCKETS
        assert len(orders) == 1, "every bucket saw the same tuples in the same order"


class Brittle(Seen):
    """Fails on a tuple until it is fixed."""

    fixed = False

    def on_tuple(self, tuple: Any, keys: Any) -> Any:
        if not Brittle.fixed and tuple.v == 3 and tuple.ts >= EPOCH + timedelta(microseconds=40):
            raise ArithmeticError("not this one")
        return super().on_tuple(tuple, keys)


def test_a_failure_commits_nothing_and_the_run_goes_on_when_it_is_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = stream_of([ROWS]).process(Brittle, keys="k")
    sink = tg.sink.files(str(tmp_path / "out"))
    how: dict[str, Any] = {"sink": sink, "checkpoint": str(tmp_path / "state"), "buckets": BUCKETS}
    how |= {"batch_rows": 20, "instances": 2}
    with pytest.raises(TaskError) as caught:
        stream.start(**how).wait()
    said = str(caught.value)
    assert "tuple at 1970-01-01T00:00:00.000041Z: Brittle.on_tuple must not raise; " in said
    assert "got ArithmeticError: not this one. Fix the class" in said
    monkeypatch.setattr(Brittle, "fixed", True)
    again = stream_of([ROWS]).process(Brittle, keys="k")
    assert again.start(**how | {"instances": 3}).wait().finished
    table = pa.parquet.read_table(
        sorted((tmp_path / "out").glob("batch=*/*.parquet")), partitioning=None
    )
    columns = [table["ts"].cast(pa.int64()), *table.columns[1:]]
    assert list(zip(*(c.to_pylist() for c in columns))) == expected(Seen, [ROWS])


def test_a_checkpoint_belongs_to_one_class(tmp_path: Path) -> None:
    how: dict[str, Any] = {"sink": tg.sink.memory(), "checkpoint": str(tmp_path)}
    stream_of([ROWS]).process(Seen, keys="k").start(**how).wait()
    with pytest.raises(CheckpointError):
        stream_of([ROWS]).process(Silence, keys="k").start(**how | {"sink": tg.sink.memory()})


def test_other_operators_stand_before_and_behind() -> None:
    """A process over windows, and windows over a process, in one query."""
    tuples = stream_of([ROWS]).select("v")
    counts = tuples.window(timedelta(microseconds=10)).group_by("v").agg(n=tg.count())

    class Total(tg.Process):
        output = {"v": "bigint", "total": "bigint"}  # noqa: RUF012

        def __init__(self) -> None:
            self.total: dict[int, int] = {}

        def on_tuple(self, tuple: Any, keys: list[int]) -> tuple[int, int]:
            assert keys == [tuple.v]
            assert tuple.ts == tuple.window_end - timedelta(microseconds=1)
            self.total[tuple.v] = self.total.get(tuple.v, 0) + tuple.n
            return tuple.v, self.total[tuple.v]

    totals = counts.process(Total, keys="v").where(tg.col("total") > 10)
    widest = totals.window(timedelta(microseconds=50)).group_by("v").agg(most=tg.max("total"))
    sink = tg.sink.memory()
    widest.start(sink=sink, buckets=2, batch_rows=17, instances=2).wait()
    found = {(_plain(r["window_end"]), r["v"]): r["most"] for r in sink.table().to_pylist()}
    until = {50: 150, 100: 200}
    assert found == {
        (end, v): rows // 4 + (v < rows % 4) for end, rows in until.items() for v in range(4)
    }


class Numbered(tg.Process):
    """Every bucket tells every tuple, with a number that is another in each."""

    output = {"place": "bigint", "bucket": "bigint"}  # noqa: RUF012
    order = "place"

    def on_tuple(self, tuple: Any, keys: list[Any]) -> Any:
        return {"place": (self.bucket * 5 + 3) % self.buckets, "bucket": self.bucket}


def test_rows_of_one_tuple_come_in_the_order_that_the_class_says() -> None:
    stream = stream_of([[(1, None, 0), (2, None, 0)]]).process(Numbered)
    rows = ran(stream, instances=3)
    assert [(ts, place) for ts, place, _ in rows] == [(t, p) for t in (1, 2) for p in range(8)]
    assert [bucket for _, _, bucket in rows[:8]] != list(range(8))
