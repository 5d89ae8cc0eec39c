"""State rewritten beside the batches by tasks of Spark: another process, the same results."""

from __future__ import annotations

import os
import signal
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from tests.driver.scene import SCHEMA, Row, compacted, memory, rows_of, table
from tests.driver.test_compactor import LONG, SPEC, partials
from tidegate.driver import compactor as compactor_module
from tidegate.driver.compactor import Compactor
from tidegate.driver.options import RunOptions
from tidegate.errors import StateError
from tidegate.execute.spark.runner import SparkRunner
from tidegate.operate.aggregate.state import PaneKeeper
from tidegate.query.node.node import StreamDef
from tidegate.session.launch import prepare
from tidegate.session.place import Place
from tidegate.session.planning import plan_for
from tidegate.sink.memory import MemorySink
from tidegate.sql.bind import bind
from tidegate.sql.script import read_script
from tidegate.state.segment.segment import read_segment
from tidegate.state.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@pytest.fixture
def executor(spark: SparkSession) -> Iterator[SparkRunner]:
    made = SparkRunner(spark)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def all_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compactor_module, "TASK_ROWS", 1)


def test_a_function_runs_in_another_process(executor: SparkRunner) -> None:
    assert executor.submit(os.getpid).result() != os.getpid()
    assert executor.submit(pow, 2, 10).result() == 1024


def test_what_a_function_raises_comes_back(executor: SparkRunner) -> None:
    class Odd(Exception):
        def __init__(self, one: int, two: int) -> None:
            super().__init__(f"{one} and {two}")

    def fail(kind: str) -> None:
        if kind == "ours":
            raise StateError("a segment", "must be whole", "half of it")
        raise Odd(1, 2)  # cannot be made again from its arguments

    with pytest.raises(StateError, match="must be whole; got half of it"):
        executor.submit(fail, "ours").result()
    with pytest.raises(RuntimeError, match="Odd: 1 and 2"):
        executor.submit(fail, "other").result()


def test_a_worker_that_dies_breaks_the_future(executor: SparkRunner) -> None:
    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(BrokenExecutor):
        executor.submit(die).result()
    assert executor.submit(pow, 2, 2).result() == 4


def test_after_the_end_nothing_is_begun(spark: SparkSession) -> None:
    executor = SparkRunner(spark)
    executor.close()
    with pytest.raises(BrokenExecutor, match="the run has ended"):
        executor.submit(os.getpid).result()


def test_a_large_group_is_rewritten_by_a_worker(executor: SparkRunner, tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Telling(PaneKeeper):
        """Leaves the process that rewrites in a file."""

        folder: str

        def arrange(self, rows: pa.Table) -> pa.Table:
            (Path(self.folder) / str(os.getpid())).touch()
            return super().arrange(rows)

    tally = tmp_path / "tally"
    tally.mkdir()
    found = []
    for name, tasks in (("tasks", executor), ("here", None)):
        store = Store.open(tmp_path / name)
        store.create({})
        segments = [partials(store, f"{i:08d}-0000", [20] * 50, 0) for i in range(4)]
        compactor = Compactor(store, Telling(SPEC, str(tally)))
        compactor.consider(3, segments, 0, runner=tasks)
        compactor.wait()
        (made,) = compactor.apply(segments)
        found.append((made, read_segment(store, made)))
        compactor.close()
    assert found[0] == found[1]
    processes = {int(p.name) for p in tally.iterdir()}
    assert len(processes) == 2
    assert os.getpid() in processes


ROWS: list[Row] = [(t, "abcde"[t % 5], t * 7 % 13) for t in range(24)]


@pytest.mark.parametrize("exchange", ["shared", "shuffle"])
def test_a_query_whose_state_tasks_rewrite_has_the_same_results(
    spark: SparkSession, exchange: str, tmp_path: Path
) -> None:
    found = []
    for place in (Place(session=spark, exchange=exchange), Place("none")):
        source, sink = memory(), MemorySink()
        stream = StreamDef("s", ("memory:s/0",), "ts", 0, None, SCHEMA)
        plan = plan_for(bind(read_script(LONG), {"s": stream}), place)
        options = RunOptions(instances=2, buckets=8)
        folder = tmp_path / str(place.on_spark)
        loop = prepare(plan, place, {None: sink}, options, folder, {"memory:s/0": source})
        rewritten = 0
        for row in ROWS:
            source.append(table(row))
            assert loop.step() is not None
            compacted(loop)
            rewritten += any("compact" in s.name for s in loop.manifest.segments())
        assert rewritten > 3
        source.end()
        loop.run()
        found.append((rows_of(sink), loop.manifest.segments()))
    assert found[0] == found[1]
    assert len(found[0][0]) > 5
