"""Runs each batch as one Spark job of two stages: a task per split, then a task per instance.

A shuffle between the stages carries Arrow tables as bytes; the number of the instance is the
partition. The JVM schedules, moves and retries without looking into the rows. Only a prefix with an
expression that Arrow kernels lack sends its rows through Spark SQL.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JJavaError
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

from tidegate.batch import SEQ, SRC, TS, from_bytes, to_bytes
from tidegate.errors import TidegateError
from tidegate.execute.exchange import begin, leave, make, store_apart, store_rows
from tidegate.execute.job import (
    ERROR,
    SHED,
    Job,
    Outcome,
    Parcel,
    out_name,
    side_name,
)
from tidegate.execute.large_output import PartTask
from tidegate.execute.spark.failure import is_lost_shuffle, tasks_failed
from tidegate.execute.spark.feature import routed, spark_schema
from tidegate.execute.spark.plain import PlainJobs
from tidegate.execute.spark.retry import retried
from tidegate.execute.spark.session.sql_session import register_functions
from tidegate.execute.task import (
    after_spark,
    at_reading,
    deal,
    map_split,
    read_split,
    run_instance,
    shed_parcels,
    start_parcels,
)
from tidegate.execute.task_runner import is_large, written_apart
from tidegate.plan.physical import SPARK, Prefix
from tidegate.route.partitioner import EVERY_INSTANCE

Batches = Iterator[pa.RecordBatch]

_PARCEL = pa.schema(
    [
        ("instance", pa.int32()),
        ("split", pa.int32()),
        ("kind", pa.int32()),
        ("label", pa.string()),
        ("data", pa.binary()),
    ]
)
_OUTCOME = pa.schema([("outcome", pa.binary())])
_LOST = "rows were lost with an executor"
_ORDER = ("__split", "__ts", "__src", "__seq")


class ShuffleExchange:
    """Runs each batch as one job of two stages with a shuffle between them; works across hosts."""

    def __init__(self, session: SparkSession, jobs: PlainJobs | None) -> None:
        """`jobs` merge large outputs through files; without them Spark SQL tasks do it."""
        self._session = session
        self._jobs = jobs
        self._registered = False
        self._left: list[str] = []
        """The names of objects in a remote checkpoint that hold rows of the batch."""

    def run(self, job: Job) -> list[Outcome]:
        job = job.with_operator(job.operator.across_hosts())
        if _leaves_files(job):
            begin(job)
        found = _opened(self._answers(job))
        return self._with_side(job, self.settled(job, found))

    def told(self, job: Job) -> list[Outcome]:
        """As `run`; the first outcome says that the tuples went through a shuffle."""
        return exchanged("shuffle", self.run(job))

    def release(self, job: Job) -> None:
        """Delete the objects that the jobs of a batch left in a remote checkpoint."""
        store = job.store.open()
        while self._left:
            store.delete(self._left.pop())

    def _answers(self, job: Job) -> list[Row]:
        """Run the job on Spark and return the answers of the instances.

        Spark assumes that Python functions are not deterministic. If an executor is lost whose rows
        it needs again, it therefore fails the job. Our tasks are deterministic, so we run the job
        again.
        """

        def attempt() -> list[Row]:
            parcels = self._parcels(job)
            sent = routed(parcels, job.mapping.running, "instance")
            return list(sent.mapInArrow(_instance_task(job), _ddl(_OUTCOME)).collect())

        with _failing(job):
            return retried(job, attempt, lambda e: _LOST if is_lost_shuffle(e) else None)

    def note_left(self, outcomes: Sequence[Outcome]) -> None:
        """Remember objects of a remote checkpoint that hold rows; `release` deletes them."""
        for remote in (p.remote for o in outcomes for p in o.pieces):
            self._left += [] if remote is None else remote.names()

    def settled(self, job: Job, outcomes: list[Outcome]) -> list[Outcome]:
        """The outcomes of the instances; if their rows are many, tasks write them."""
        self.note_left(outcomes)
        if not is_large(job, outcomes):
            return outcomes
        if self._jobs is not None and _leaves_files(job):
            make(job)
            left = leave(job, "job", cloudpickle.dumps(job))
            return self._jobs.settled(job, left, outcomes)

        def run(write: PartTask, count: int) -> list[Outcome]:
            with _failing(job):
                answers = self._tasks(count).mapInArrow(_part_task(write), _ddl(_OUTCOME)).collect()
            return sorted(_opened(answers), key=lambda part: part.instance)

        return written_apart(job, outcomes, run)

    def _parcels(self, job: Job) -> DataFrame:
        """The parcels of the map stage: a partition per split, through Arrow or Spark SQL."""
        prefixes = job.subquery.prefixes
        arrow = [s.index for s in job.splits if prefixes[s.input].engine != SPARK]
        parcels = self._tasks(max(len(arrow), 1)).mapInArrow(_map_task(job, arrow), _ddl(_PARCEL))
        for number, prefix in enumerate(prefixes):
            mine = [s.index for s in job.splits if s.input == number]
            stream = job.subquery.streams[number]
            if prefix.engine == SPARK and stream is not None and mine:
                rows = self._through_spark_sql(job, prefix, stream.schema, mine)
                parcels = parcels.union(rows)
        return parcels

    def _through_spark_sql(
        self, job: Job, prefix: Prefix, raw: pa.Schema, splits: Sequence[int]
    ) -> DataFrame:
        fields = [(name, pa.int64()) for name in _ORDER]
        schema = pa.schema(fields + [raw.field(c) for c in prefix.columns])
        if not self._registered:
            register_functions(self._session)
            self._registered = True
        rows = self._tasks(len(splits)).mapInArrow(_read_task(job, splits, schema), _ddl(schema))
        if prefix.sql_where is not None and not prefix.lookups:
            rows = rows.where(prefix.sql_where)
        computed = prefix.early if prefix.lookups else prefix.sql_outputs
        outputs = [f"{sql} AS c{i}" for i, (_, sql) in enumerate(computed)]
        names = [out_name(name) for name, _ in computed]
        return rows.selectExpr(*_ORDER, *outputs).mapInArrow(_deal_task(job, names), _ddl(_PARCEL))

    def _tasks(self, count: int) -> DataFrame:
        return self._session.range(0, count, 1, count)

    def _with_side(self, job: Job, outcomes: list[Outcome]) -> list[Outcome]:
        """Add the side outputs that read tasks left in the checkpoint.

        Rows that go through Spark SQL have one schema, so these tasks cannot send them along.
        """
        store = job.store.open()
        found: list[Parcel] = []
        for split in job.splits:
            if job.subquery.prefixes[split.input].engine == SPARK:
                name = side_name(job, split.index)
                if store.files.exists(name):
                    found += _unpacked(from_bytes(store.read(name)))
                    store.delete(name)  # if the batch runs again, its tasks write it anew
        for parcel in found:
            if parcel.kind == ERROR:
                raise _failure(parcel)
        if found:
            first, shed = outcomes[0], sum(int(bytes(p.data)) for p in found if p.kind == SHED)
            side = (*first.side, *(p for p in found if p.kind != SHED))
            counts = {**first.counts, "shed": first.counts.get("shed", 0) + shed}
            outcomes[0] = replace(first, side=side, counts=counts)
        return outcomes


def exchanged(way: str, outcomes: list[Outcome]) -> list[Outcome]:
    """The outcomes; the first says how the tuples of the job travelled."""
    return [replace(outcomes[0], exchange=way), *outcomes[1:]]


def _map_task(job: Job, splits: Sequence[int]) -> Callable[[Batches], Batches]:
    """Read splits, evaluate their prefixes and deal; the first task also wakes every instance."""

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                parcels = start_parcels(job) if number == 0 else []
                try:
                    if splits:
                        parcels += map_split(job, job.splits[splits[number]])
                except TidegateError as error:
                    parcels = [*parcels, _failed(error)]
                yield _packed(_to_every(job, parcels))

    return run


def _read_task(job: Job, splits: Sequence[int], schema: pa.Schema) -> Callable[[Batches], Batches]:
    """Read splits as rows for Spark SQL; late and rejected tuples go to the checkpoint."""

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                split = job.splits[splits[number]]
                try:
                    read, side = read_split(job, split, schema.names[len(_ORDER) :])
                    tuples = at_reading(job.subquery.prefixes[split.input], read)
                    side += shed_parcels(split.index, read.num_rows - tuples.num_rows)
                except TidegateError as error:
                    tuples, side = None, [_failed(error)]
                if side:
                    packed = pa.Table.from_batches([_packed(side)])
                    job.store.open().write(side_name(job, split.index), to_bytes(packed))
                if tuples is None:
                    continue
                numbers = pa.array([split.index] * tuples.num_rows, pa.int64())
                table = pa.table([numbers, *tuples.columns], schema=schema)
                yield from table.to_batches(max_chunksize=65_536)

    return run


def _deal_task(job: Job, names: Sequence[str]) -> Callable[[Batches], Batches]:
    """Deal the rows that Spark SQL returns for the splits."""

    def run(batches: Batches) -> Batches:
        rows = list(batches)
        if not rows:
            return
        table = pa.Table.from_batches(rows)
        for split in table.column(0).unique().to_pylist():
            mine = table.filter(pc.equal(table.column(0), split)).drop_columns(_ORDER[0])
            tuples = mine.rename_columns([TS, SRC, SEQ, *names])
            prefix = job.subquery.prefixes[job.splits[split].input]
            sieve = prefix.sieve
            try:
                if prefix.lookups:
                    tuples = after_spark(job, prefix, tuples)
                elif sieve is not None:
                    tuples = sieve.weighed(tuples if sieve.by is None else sieve.marked(tuples)[0])
                parcels = deal(job, split, tuples.combine_chunks())
            except TidegateError as error:
                parcels = [_failed(error)]
            yield _packed(_to_every(job, parcels))

    return run


def _instance_task(job: Job) -> Callable[[Batches], Batches]:
    def run(batches: Batches) -> Batches:
        parcels = [p for batch in batches for p in _unpacked(batch)]
        if not parcels:
            return

        def outcome() -> Outcome:
            for failed in (p for p in parcels if p.kind == ERROR):
                raise _failure(failed)
            done = run_instance(job, parcels[0].instance, parcels)
            return (store_rows if _leaves_files(job) else store_apart)(job, done)

        yield _answer(outcome)

    return run


def _part_task(write: PartTask) -> Callable[[Batches], Batches]:
    def run(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield _answer(partial(write, number))

    return run


def _answer(outcome: Callable[[], Outcome]) -> pa.RecordBatch:
    """The answer of a task: an outcome, or an error of ours."""
    answer: Outcome | TidegateError
    try:
        answer = outcome()
    except TidegateError as error:
        answer = error
    return pa.RecordBatch.from_arrays([pa.array([pickle.dumps(answer)])], schema=_OUTCOME)


@contextmanager
def _failing(job: Job) -> Iterator[None]:
    """Turn Spark's exception for failed tasks into an error of ours."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        raise tasks_failed(job, error) from error


def _opened(answers: Sequence[Row]) -> list[Outcome]:
    """The outcomes in the answers of tasks; raises the first error among them."""
    found = []
    for row in answers:
        answer: Outcome | TidegateError = pickle.loads(row[0])
        if isinstance(answer, TidegateError):
            raise answer
        found.append(answer)
    return found


def _leaves_files(job: Job) -> bool:
    """Whether instances leave large outputs in files of a local checkpoint, for other tasks."""
    return job.store.open().files.local


def _failed(error: TidegateError) -> Parcel:
    return Parcel(0, -1, ERROR, json.dumps(error.to_dict()).encode())


def _failure(parcel: Parcel) -> TidegateError:
    return TidegateError.from_dict(json.loads(bytes(parcel.data)))


def _to_every(job: Job, parcels: Sequence[Parcel]) -> list[Parcel]:
    """The parcels, each for one instance; one for every instance is repeated."""
    return [
        replace(p, instance=i)
        for p in parcels
        for i in (range(job.mapping.running) if p.instance == EVERY_INSTANCE else (p.instance,))
    ]


def _packed(parcels: Sequence[Parcel]) -> pa.RecordBatch:
    columns = [
        [p.instance for p in parcels],
        [p.split for p in parcels],
        [p.kind for p in parcels],
        [p.label for p in parcels],
        [p.data for p in parcels],
    ]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, _PARCEL, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_PARCEL)


def _unpacked(batch: pa.RecordBatch | pa.Table) -> Iterator[Parcel]:
    instance, split, kind, label, data = batch.columns
    for i in range(batch.num_rows):
        numbers = instance[i].as_py(), split[i].as_py(), kind[i].as_py()
        yield Parcel(*numbers, data[i].as_buffer(), label[i].as_py())


def _ddl(schema: pa.Schema) -> str:
    fields = spark_schema(schema)
    quoted = ("`" + f.name.replace("`", "``") + "`" for f in fields)
    return ", ".join(
        f"{n} {f.dataType.simpleString()}" for n, f in zip(quoted, fields, strict=True)
    )
