"""A batch whose task hangs is aborted: its Spark job is cancelled, and a later run does it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tidegate as tg
from tests.driver.scene import memory, rows_of
from tidegate.errors import RunError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = [(float(t), "ab"[t % 2], t) for t in range(20)]


def hanging(begun: str, free: str) -> type[tg.Process]:
    """A process that hangs while there are pipes: the first tells that it does."""

    class Hanging(tg.Process):
        output: Mapping[str, str] = {"v": "bigint"}

        def on_tuple(self, tuple: Any, keys: list[str]) -> Iterator[dict[str, int]]:
            if os.path.exists(begun):
                with open(begun, "w"):
                    pass
                with open(free):
                    pass
            yield {"v": tuple.v}

    return Hanging


@pytest.mark.parametrize("exchange", ["shared", "shuffle"])
def test_a_task_that_hangs(exchange: str, spark: SparkSession, tmp_path: Path) -> None:
    pipes = [str(tmp_path / name) for name in ("begun", "free")]
    for pipe in pipes:
        os.mkfifo(pipe)
    sink, session = tg.sink.memory(), tg.Session(spark)
    others = spark.sparkContext.statusTracker()

    def start() -> tg.RunningQuery:
        stream = session.stream(memory(*ROWS, end=True), time="ts", name="s")
        return stream.process(hanging(*pipes), keys="k").start(
            sink=sink, checkpoint=str(tmp_path / "c"), instances=1, exchange=exchange
        )

    query = start()
    with open(pipes[0]) as begun:  # a task writes to it, and hangs
        assert begun.read() == ""
    assert len(others.getActiveJobsIds()) == 1
    assert query._loop.abort()
    with pytest.raises(RunError, match="cancelled"):
        query.wait()
    assert list(others.getActiveJobsIds()) == []
    assert query.status()["batch"] == -1
    for pipe in pipes:
        os.unlink(pipe)
    assert start().wait().finished
    assert [row[-1] for row in rows_of(sink)] == list(range(20))
