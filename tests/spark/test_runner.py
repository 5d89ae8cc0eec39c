"""Tasks on Spark: failures arrive as what they are, and Spark SQL takes part where it must."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

import tidegate as tg
from tests.driver.scene import SCHEMA, Row, csv, memory, rows_of
from tidegate.connector import Reader, Rows
from tidegate.driver.loop import Loop
from tidegate.driver.options import RunOptions
from tidegate.errors import LostParcelsError, OptionError, SourceError, TaskError, TidegateError
from tidegate.execute.job import Job, Outcome
from tidegate.execute.runner import JobRunner
from tidegate.execute.spark.slots import slots_of
from tidegate.plan.physical import SPARK
from tidegate.query.node.node import StreamDef
from tidegate.session.launch import prepare
from tidegate.session.place import Place
from tidegate.session.planning import plan_for
from tidegate.sink.memory import MemorySink
from tidegate.sql.bind import bind
from tidegate.sql.script import read_script
from tidegate.state.store import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS: list[Row] = [(t, "abc"[t % 3], t) for t in range(1, 25)]


class Broken(tg.Aggregator):
    """A sum that fails in the method it is told to."""

    state: ClassVar = {"sum": pa.int64()}
    result: ClassVar = pa.int64()

    def __init__(self, method: str) -> None:
        self.method = method

    def init(self, n: int) -> dict[str, Any]:
        return {"sum": np.zeros(n, np.int64)}

    def fold(self, state: dict[str, Any], groups: Any, *columns: pa.Array) -> dict[str, Any]:
        self._fail("fold")
        np.add.at(state["sum"], groups, columns[0].to_numpy())
        return state

    def merge(self, state: dict[str, Any], groups: Any, other: dict[str, Any]) -> dict[str, Any]:
        np.add.at(state["sum"], groups, other["sum"])
        return state

    def finish(self, state: dict[str, Any]) -> pa.Array:
        self._fail("finish")
        return pa.array(state["sum"])

    def _fail(self, method: str) -> None:
        if method == self.method:
            raise ValueError("odd moon")


class Scarce(Broken):
    """A sum for which memory suffices for ten values at a time."""

    def fold(self, state: dict[str, Any], groups: Any, *columns: pa.Array) -> dict[str, Any]:
        if len(columns[0]) > 10:
            raise MemoryError
        return super().fold(state, groups, *columns)


@pytest.fixture(params=["shared", "shuffle"])
def place(request: pytest.FixtureRequest, spark: SparkSession) -> Place:
    return Place(session=spark, exchange=request.param)


def loop_on(place: Place, sql: str, source: Any, checkpoint: Path, sink: MemorySink) -> Loop:
    uri = source if isinstance(source, str) else "memory:s/0"
    stream = StreamDef("s", (uri,), "ts", 0, None, SCHEMA)
    plan = plan_for(bind(read_script(sql), {"s": stream}), place)
    given = {} if isinstance(source, str) else {uri: source}
    return prepare(plan, place, {None: sink}, RunOptions(instances=2, buckets=8), checkpoint, given)


def failure(loop: Loop) -> TidegateError:
    """What a run ends with; nothing of it is committed."""
    with pytest.raises(TidegateError) as caught:
        loop.run()
    assert loop.store.latest() is None
    return caught.value


def test_an_expression_that_fails_on_a_tuple(place: Place, tmp_path: Path) -> None:
    sql = "SELECT v / (v - 7) AS x FROM s"
    error = failure(loop_on(place, sql, memory(*ROWS, end=True), tmp_path, MemorySink()))
    assert type(error) is TaskError
    local = loop_on(Place("none"), sql, memory(*ROWS, end=True), tmp_path / "l", MemorySink())
    assert str(error) == str(failure(local))
    assert "zero" in str(error)


@pytest.mark.parametrize("method", ["fold", "finish"])
def test_an_aggregate_of_the_users_that_raises(spark: SparkSession, method: str) -> None:
    """In a map task and in an instance."""
    stream = tg.Session(spark).stream(memory(*ROWS, end=True), time="ts")
    made = stream.window("10 seconds").agg(x=tg.aggregate(Broken(method), "v"))
    query = made.start(sink=tg.sink.memory())
    with pytest.raises(TaskError, match=rf"Broken\.{method}: it must not raise; got ValueError"):
        query.wait()
    assert query.status()["batch"] == -1


def test_a_batch_that_exceeds_the_memory_of_a_task_is_cut_smaller(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    stream = tg.Session(spark).stream(memory(*ROWS, end=True), time="ts")
    made = stream.window("10 seconds").agg(x=tg.aggregate(Scarce("none"), "v"))
    sink = tg.sink.memory()
    made.start(sink=sink).wait()
    assert [row[2] for row in rows_of(sink)] == [45, 145, 110]
    assert "batch 0: 24 rows did not fit into memory" in caplog.text


def test_an_aggregate_whose_class_is_in_no_module(spark: SparkSession) -> None:
    """As in a script or a notebook: workers cannot import it, so it travels with the job."""

    class Local(Broken):
        pass

    stream = tg.Session(spark).stream(memory(*ROWS, end=True), time="ts")
    made = stream.window("10 seconds").agg(x=tg.aggregate(Local("none"), "v"))
    sink = tg.sink.memory()
    made.start(sink=sink).wait()
    assert [row[2] for row in rows_of(sink)] == [45, 145, 110]


def test_spark_sql_takes_part_where_kernels_cannot(spark: SparkSession, tmp_path: Path) -> None:
    """Late and rejected tuples are found there too, and nothing is left in the checkpoint."""
    rows: list[Row] = [*ROWS, (5, "late", 0), (None, "timeless", 0), (31, "a", 31)]
    path = csv(tmp_path / "s.csv", *rows)
    with Path(path).open("a") as file:
        file.write("1970-01-01T00:00:40Z,a,not a number\n")
    place, sink = Place(session=spark), MemorySink()
    sql = (
        "SELECT date_format(ts, 'mm') AS m, SUM(v) AS v FROM s [RANGE 20 SECONDS] "
        "WHERE soundex(k) <> 'B000' GROUP BY date_format(ts, 'mm')"
    )
    loop = loop_on(place, sql, path, tmp_path / "c", sink)
    assert [p.engine for p in loop.plan.subqueries[0].prefixes] == [SPARK]
    summary = loop.run()
    kept = [t for t in range(1, 25) if "abc"[t % 3] != "b"]
    assert rows_of(sink) == [
        (0.0, 20.0, "00", sum(t for t in kept if t < 20)),
        (20.0, 40.0, "00", sum(t for t in kept if t >= 20) + 31),
    ]
    counters = summary.counters
    assert (counters["rows_in"], counters["rows_late"], counters["rows_rejected"]) == (28, 1, 2)
    (output,) = sink.batches.values()
    assert output.late["s"].column("k").to_pylist() == ["late"]
    assert output.rejected is not None
    assert output.rejected.column("_seq").to_pylist() == [25, 27]
    assert list((tmp_path / "c" / "staged").iterdir()) == []


def test_a_column_whose_name_has_marks_of_sql_in_it(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text("ts,a`b; DROP\n1970-01-01T00:00:01Z,x\n", encoding="utf-8")
    sink = tg.sink.memory()
    session = tg.Session(spark)
    s = session.stream(str(path), time="ts", name="s")
    session.sql("SELECT soundex(`a``b; DROP`) AS h FROM s", s=s).start(sink=sink).wait()
    assert [row[-1] for row in rows_of(sink)] == ["X000"]


class Unreadable(Reader):
    """Positions of a source that is gone when a task comes to read it."""

    start, stop = 0, 2

    def read(self, columns: Any) -> Rows:
        raise SourceError("rides.csv", "must be there", "no such file")


@pytest.mark.parametrize("sql", ["SELECT k, v FROM s", "SELECT soundex(k) AS x FROM s"])
def test_a_source_that_fails_in_a_task(spark: SparkSession, tmp_path: Path, sql: str) -> None:
    """Also before Spark SQL, where a task has no other way to say so than the checkpoint."""
    place = Place(session=spark)
    loop = loop_on(place, sql, memory(*ROWS, end=True), tmp_path, MemorySink())
    inner = loop.runner.connected()

    class Rigged(JobRunner):
        def run(self, job: Any) -> Any:
            splits = tuple(replace(s, reader=Unreadable()) for s in job.splits)
            return inner.run(replace(job, splits=splits))

        def release(self, jobs: Any) -> None:
            """Nothing."""

        def close(self) -> None:
            inner.close()

    loop.runner = Rigged()
    error = failure(loop)
    assert (type(error), error.where) == (SourceError, "rides.csv")


def test_a_fold_that_fails_after_spark_sql(spark: SparkSession) -> None:
    stream = tg.Session(spark).stream(memory(*ROWS, end=True), time="ts")
    grouped = stream.window("10 seconds").group_by(x=tg.call("soundex", "k"))
    query = grouped.agg(v=tg.aggregate(Broken("fold"), "v")).start(sink=tg.sink.memory())
    with pytest.raises(TaskError, match=r"Broken\.fold: it must not raise"):
        query.wait()


def test_a_row_that_spark_has_no_value_for_is_an_error_of_the_expressions(
    spark: SparkSession, tmp_path: Path
) -> None:
    sql = "SELECT soundex(k) AS x, v / (v - 7) AS y FROM s"
    place = Place(session=spark)
    error = failure(loop_on(place, sql, memory(*ROWS, end=True), tmp_path, MemorySink()))
    assert type(error) is TaskError
    expressions = "SOUNDEX(`k`), `v` / (`v` - 7)"
    assert str(error).startswith(f"one of the expressions {expressions}: Spark must find a value")
    assert "DIVIDE_BY_ZERO" in str(error)


def test_a_query_goes_on_with_another_exchange(spark: SparkSession, tmp_path: Path) -> None:
    source, sink = memory(*ROWS[:12]), MemorySink()
    sql = "SELECT k, SUM(v) AS v FROM s [RANGE 10 SECONDS] GROUP BY k"
    first = loop_on(Place(session=spark, exchange="shuffle"), sql, source, tmp_path, sink)
    assert first.step() is not None
    first.close()
    source.append(memory(*ROWS[12:])._slice(0, 12))
    source.end()
    loop_on(Place(session=spark, exchange="shared"), sql, source, tmp_path, sink).run()
    expected = MemorySink()
    loop_on(Place("none"), sql, memory(*ROWS, end=True), tmp_path / "x", expected).run()
    assert rows_of(sink) == rows_of(expected)
    assert not (tmp_path / "exchange").exists()
    assert Store.open(tmp_path).latest() is not None


class Unreached:
    """An exchange whose tasks do not get each other's parcels."""

    def run(self, job: Job) -> list[Outcome]:
        raise LostParcelsError("worker at there:1", "must give its parcels", "a firewall")

    def release(self, jobs: Sequence[Job]) -> None:
        raise AssertionError("nothing was exchanged")


def test_a_query_shuffles_where_its_tasks_do_not_reach_each_other(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """From the batch on that was to be exchanged, with the same rows."""
    sql = "SELECT k, SUM(v) AS v FROM s [RANGE 10 SECONDS] GROUP BY k"
    found = []
    for where in (Place(session=spark, exchange="shuffle"), Place("none")):
        source, sink = memory(*ROWS, end=True), MemorySink()
        loop = loop_on(where, sql, source, tmp_path / where.exchange, sink)
        if where.on_spark:
            runner: Any = where.runner()
            runner._messages, runner._there = Unreached(), slots_of(spark.sparkContext)
            loop.runner = runner
        summary = loop.run().as_dict()
        assert summary["exchanges"] == ({"shuffle": 1} if where.on_spark else {})
        found.append(rows_of(sink))
    assert found[0] == found[1]
    assert "from now on rows are shuffled by jobs: worker at there:1: must give" in caplog.text


def test_tasks_that_stay_are_started_anew_for_executors_that_have_come(spark: SparkSession) -> None:
    runner: Any = Place(session=spark).runner()
    there = slots_of(spark.sparkContext)
    runner._slots, runner._there = 1, there - 1
    assert not runner._has_room(instances=1), "nobody would use them"
    assert runner._has_room(instances=2)
    assert not runner._has_room(instances=2), "it has just looked"
    runner._looked_at, runner._there = float("-inf"), there
    assert not runner._has_room(instances=2)
    runner.close()


def test_a_shared_exchange_that_cannot_be_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(session=spark, exchange="shared")
    sql = "SELECT soundex(k) AS x FROM s"
    error = failure(loop_on(place, sql, memory(*ROWS, end=True), tmp_path, MemorySink()))
    assert isinstance(error, OptionError)
    assert "shared needs tasks and checkpoint on one host" in str(error)


def test_a_session_takes_the_spark_that_is_there(spark: SparkSession) -> None:
    """As in a notebook, or in the pyspark shell."""
    found = tg.sink.memory()
    stream = tg.Session().stream(memory(*ROWS, end=True), time="ts")
    query = stream.window("10 seconds").agg(v=tg.sum("v")).start(sink=found)
    query.wait()
    assert [row[2] for row in rows_of(found)] == [45, 145, 110]
    assert query.status()["instances"] == spark.sparkContext.defaultParallelism
    with pytest.raises(OptionError, match=r"--conf: is for a Spark that is started for the query"):
        tg.Session(conf={"spark.executor.memory": "4g"})
    elsewhere = Place("spark://there:7077")
    with pytest.raises(OptionError, match=r"--master: a process can have one Spark only; got"):
        elsewhere.connected()


def test_rows_that_were_lost_between_executors_are_sent_again(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Spark gives such a job up; it was an executor that died, and the rows are the same again."""
    from pyspark.errors import PySparkException

    kind, calls = type(spark.range(1)), list[Any]()
    collect = kind.collect

    def lost_at_first(frame: Any) -> Any:
        calls.append(frame)
        if len(calls) == 1:
            said = "A shuffle map stage with indeterminate output was failed and retried."
            raise PySparkException(said)
        return collect(frame)

    monkeypatch.setattr(kind, "collect", lost_at_first)
    found = tg.sink.memory()
    stream = tg.Session(spark).stream(memory(*ROWS, end=True), time="ts")
    stream.window("10 seconds").agg(v=tg.sum("v")).start(sink=found, exchange="shuffle").wait()
    assert [row[2] for row in rows_of(found)] == [45, 145, 110]
    assert "batch 0 runs again: rows were lost with an executor" in caplog.text
    assert len(calls) == 2
