"""Tasks that stay on a real Spark: who gets slots, what dies and comes back, what its pages say."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tidegate as tg
from tests.driver.scene import memory, rows_of
from tidegate import schedule
from tidegate.errors import OptionError, RunError
from tidegate.execute.spark.description import JobDescription
from tidegate.schedule import Threads
from tidegate.testing import ManualClock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = [(float(t), "ab"[t % 2], t) for t in range(40)]


class Held(tg.Process):
    """Passes values on; a task waits at a pipe while there is one, after another told that it does.

    It also says in which process it runs.
    """

    output: Mapping[str, str] = {"v": "bigint", "process": "bigint"}
    begun = free = ""

    def on_tuple(self, tuple: Any, keys: list[str]) -> Iterator[dict[str, int]]:
        if os.path.exists(self.begun):
            with open(self.begun, "w"):
                pass
            with open(self.free):
                pass
        yield {"v": tuple.v, "process": os.getpid()}


class Clocked(Threads):
    """The threads of the system, with another clock."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock


def start(spark: SparkSession, kind: type[tg.Process] = Held, **options: Any) -> Any:
    sink, session = tg.sink.memory(), tg.Session(spark)
    stream = session.stream(memory(*ROWS, end=True), time="ts", name="s")
    query = stream.process(kind, keys="k").start(sink=sink, **{"batch_rows": 5} | options)
    return query, sink


def test_a_query_in_a_session_of_two_leaves_a_slot_to_others(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The first one has tasks that stay, the second one jobs, and a job of the user's is done."""
    pipes = [str(tmp_path / name) for name in ("begun", "free")]
    for pipe in pipes:
        os.mkfifo(pipe)

    class Waiting(Held):
        begun, free = pipes

    first, found = start(spark, Waiting)
    with open(pipes[0]) as begun:  # its task writes to it, and waits
        assert begun.read() == ""
    context = spark.sparkContext
    assert context.parallelize(range(4), 2).map(lambda x: x + 1).sum() == 10
    with pytest.raises(OptionError, match=r"none to spare\. Use a master with more cores"):
        start(spark, execution="resident")[0].wait()
    second, others = start(spark)
    assert second.wait().finished
    assert [row[1] for row in rows_of(others)] == list(range(40))
    os.unlink(pipes[0])
    with open(pipes[1], "w"):
        pass
    assert first.wait().finished
    assert [row[1] for row in rows_of(found)] == list(range(40))
    assert len({row[2] for row in rows_of(found)}) == 1
    assert list(context.statusTracker().getActiveJobsIds()) == []


def test_a_worker_may_die_more_often_than_a_task_of_spark_may_fail(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A session of the user's gives a job up at the first failure; the query goes on."""
    folder = str(tmp_path)

    class Dying(Held):
        def on_tuple(self, tuple: Any, keys: list[str]) -> Iterator[dict[str, int]]:
            mark = f"{folder}/died-{tuple.v}"
            if tuple.v in (2, 7, 12, 17, 22) and not os.path.exists(mark):
                with open(mark, "x"):
                    os.kill(os.getpid(), signal.SIGKILL)
            yield from super().on_tuple(tuple, keys)

    query, sink = start(spark, Dying)
    assert query.wait().finished
    assert len(list(tmp_path.glob("died-*"))) == 5
    assert [row[1] for row in rows_of(sink)] == list(range(40))


class Failing(Held):
    """Fails at a value in one way or another."""

    how = ""

    def on_tuple(self, tuple: Any, keys: list[str]) -> Iterator[dict[str, int]]:
        if tuple.v == 12:
            if self.how == "raise":
                raise ValueError("odd moon")
            if self.how == "leave":
                raise SystemExit(3)
            os.kill(os.getpid(), signal.SIGKILL)
        yield from super().on_tuple(tuple, keys)


@pytest.mark.parametrize("how", ["raise", "leave", "die"])
def test_what_fails_in_a_task_is_told_as_by_a_job_of_its_own(how: str, spark: SparkSession) -> None:
    told = []
    for execution in ("jobs", "resident"):
        kind = type("Failing", (Failing,), {"how": how})
        query, _ = start(spark, kind, execution=execution)
        with pytest.raises(RunError) as caught:
            query.wait()
        told.append((type(caught.value), str(caught.value)))
        assert query.status()["batch"] == 1
    assert told[0] == told[1]
    assert told[0][1].startswith("batch 2"), told


def test_the_pages_of_spark_say_the_query_the_batch_and_the_rate(
    spark: SparkSession, tmp_path: Path
) -> None:
    context, pipe = spark.sparkContext, str(tmp_path / "pipe")
    os.mkfifo(pipe)
    clock = ManualClock()
    with schedule.using(Clocked(clock)):
        description = JobDescription(context, "described", "rides.sql")
    description._shown = True  # though this session has no pages

    def job() -> None:
        context.setJobGroup("described", description.at_start(), interruptOnCancel=True)
        context.parallelize([pipe], 1).foreach(lambda path: Path(path).read_text())

    running = schedule.current().start("job", job)
    with open(pipe, "w"):  # when the task has begun
        (number,) = context.statusTracker().getJobIdsForGroup("described")
        store: Any = context._jsc.sc().statusStore()  # type: ignore[union-attr]

        def said() -> str:
            return str(store.job(number).description().get())

        assert said() == "rides.sql: tasks that stay for all batches"
        description.note(6, 4_000)
        description.note(6, 4_000)  # another subquery of the batch
        clock.advance(2.0)
        description.note(7, 1_000)
        assert description._telling is not None
        description._telling.result()
        assert said() == "rides.sql: batch 7, 2,000 rows/s"
    running.result()
    description.close()
