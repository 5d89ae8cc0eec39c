"""Batches on Spark: one job of two stages, map tasks per split and one task per instance.

The stages are joined by a shuffle of Arrow tables as bytes, addressed to instances with
`repartitionById`; the JVM schedules, moves and retries, and does not look into the rows. Only a
prefix that Arrow kernels cannot express sends its rows through Spark SQL.
"""

from __future__ import annotations

import atexit
import os
import pickle
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from tidegate.errors import OptionError, QueryError, RunError, TidegateError
from tidegate.plan.physical import SPARK, Prefix
from tidegate.runtime.java import ensure_java
from tidegate.runtime.job import (
    SEQ,
    SRC,
    START,
    TS,
    Job,
    Outcome,
    Parcel,
    out_name,
    side_name,
)
from tidegate.runtime.task import deal, map_split, read_split, run_instance, start_parcels

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
_ORDER = ("__split", "__ts", "__src", "__seq")
_ERROR = START + 1
_TASK_TRIES = 4
_SETTINGS = [
    ("spark.ui.enabled", "false"),
    ("spark.ui.showConsoleProgress", "false"),
    ("spark.log.level", "ERROR"),
]
_SQL_SETTINGS = [
    ("spark.sql.session.timeZone", "UTC"),
    ("spark.sql.adaptive.enabled", "false"),
    ("spark.sql.ansi.enabled", "true"),
]


def connect(master: str, name: str = "tidegate") -> SparkSession:
    """A session for a master URL, with Java found first and workers on this Python.

    What the JVM says goes to a file that the error names when it does not start.
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    ensure_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    conf = SparkConf().setMaster(_with_retries(master)).setAppName(name).setAll(_SETTINGS)
    with tempfile.NamedTemporaryFile(prefix="tidegate-jvm-", suffix=".log", delete=False) as log:
        try:
            gateway = launch_gateway(conf, {"stderr": log, "stdout": log})
            SparkContext(conf=conf, gateway=gateway)
            session = SparkSession.builder.getOrCreate()
        except Exception as error:
            raise OptionError(
                "--master",
                "must be a Spark master that answers",
                f"{master} ({_first_line(error)})",
                f"Use local[2], spark://host:port or none (without Spark); {log.name} has more.",
            ) from error
    atexit.register(Path(log.name).unlink, missing_ok=True)
    return session


def types_by_spark(
    session: SparkSession,
) -> Callable[[Sequence[str], pa.Schema], list[pa.DataType]]:
    """Ask Spark for the types of expressions that only it knows."""
    own = _sql_session(session)

    def types(expressions: Sequence[str], schema: pa.Schema) -> list[pa.DataType]:
        empty = own.createDataFrame([], from_arrow_schema(schema))
        try:
            typed = empty.selectExpr(*[f"{e} AS c{i}" for i, e in enumerate(expressions)])
        except PySparkException as error:
            raise QueryError(
                "query", "every expression must be one Spark SQL knows", _first_line(error)
            ) from None
        return [field.type for field in to_arrow_schema(typed.schema, timezone="UTC")]

    return types


def _sql_session(session: SparkSession) -> SparkSession:
    own = session.newSession()
    for name, value in _SQL_SETTINGS:
        own.conf.set(name, value)
    return own


class SparkExecutor:
    """Runs each batch as one Spark job, in a session of its own beside the caller's.

    The caller's SQL settings stay as they are, and do not change what queries mean here.
    """

    def __init__(self, session: SparkSession) -> None:
        self._session = _sql_session(session)

    def run(self, job: Job) -> list[Outcome]:
        routed = self._parcels(job).repartitionById(job.mapping.instances, F.col("instance"))
        answers = routed.mapInArrow(_instance_task(job), _ddl(_OUTCOME))
        try:
            rows = answers.collect()
        except PySparkException as error:
            raise RunError(
                f"batch {job.batch}",
                "its tasks must finish",
                _first_line(error),
                "Nothing of the batch was committed; run again to continue.",
            ) from error
        outcomes = []
        for row in rows:
            answer: Outcome | TidegateError = pickle.loads(row[0])
            if isinstance(answer, TidegateError):
                raise answer
            outcomes.append(answer)
        return self._with_side(job, outcomes)

    def close(self) -> None:
        """Nothing is held open; the Spark context is the caller's."""

    def _parcels(self, job: Job) -> DataFrame:
        """What the map stage sends: one partition per split, prefixes in Arrow or in Spark SQL."""
        arrow = [s.index for s in job.splits if job.plan.prefixes[s.stream].engine != SPARK]
        parcels = self._tasks(max(len(arrow), 1)).mapInArrow(_map_task(job, arrow), _ddl(_PARCEL))
        for prefix in job.plan.prefixes:
            mine = [s.index for s in job.splits if s.stream == prefix.stream]
            if prefix.engine == SPARK and mine:
                parcels = parcels.union(self._through_spark_sql(job, prefix, mine))
        return parcels

    def _through_spark_sql(self, job: Job, prefix: Prefix, splits: Sequence[int]) -> DataFrame:
        raw = job.plan.streams[prefix.stream].schema
        fields = [(name, pa.int64()) for name in _ORDER]
        schema = pa.schema(fields + [raw.field(c) for c in prefix.columns])
        rows = self._tasks(len(splits)).mapInArrow(_read_task(job, splits, schema), _ddl(schema))
        if prefix.sql_where is not None:
            rows = rows.where(prefix.sql_where)
        outputs = [f"{sql} AS c{i}" for i, (_, sql) in enumerate(prefix.sql_outputs)]
        names = [out_name(name) for name, _ in prefix.sql_outputs]
        return rows.selectExpr(*_ORDER, *outputs).mapInArrow(_deal_task(job, names), _ddl(_PARCEL))

    def _tasks(self, count: int) -> DataFrame:
        return self._session.range(0, count, 1, count)

    def _with_side(self, job: Job, outcomes: list[Outcome]) -> list[Outcome]:
        """Add the side outputs that read tasks before Spark SQL left in the checkpoint."""
        store = job.store.open()
        found: list[Parcel] = []
        for split in job.splits:
            if job.plan.prefixes[split.stream].engine == SPARK:
                name = side_name(job, split.index)
                if store.files.exists(name):
                    found += pickle.loads(store.read(name))
                    store.delete(name)  # a replay of the batch writes it again
        if found:
            outcomes[0] = replace(outcomes[0], side=(*outcomes[0].side, *found))
        return outcomes


def _map_task(job: Job, splits: Sequence[int]) -> Callable[[Batches], Batches]:
    """Read, evaluate and fold splits; the first task also wakes every instance."""

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                parcels = start_parcels(job) if number == 0 else []
                try:
                    if splits:
                        parcels += map_split(job, job.splits[splits[number]])
                except TidegateError as error:
                    parcels = [*parcels, _failed(error)]
                yield _packed(parcels)

    return run


def _read_task(job: Job, splits: Sequence[int], schema: pa.Schema) -> Callable[[Batches], Batches]:
    """Read splits as rows for Spark SQL; late and rejected tuples go to the checkpoint."""

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                split = job.splits[splits[number]]
                tuples, side = read_split(job, split, schema.names[len(_ORDER) :])
                if side:
                    job.store.open().write(side_name(job, split.index), pickle.dumps(side))
                numbers = pa.array([split.index] * tuples.num_rows, pa.int64())
                table = pa.table([numbers, *tuples.columns], schema=schema)
                yield from table.to_batches(max_chunksize=65_536)

    return run


def _deal_task(job: Job, names: Sequence[str]) -> Callable[[Batches], Batches]:
    """Take what Spark SQL left of the splits and fold it for the instances."""

    def run(batches: Batches) -> Batches:
        rows = list(batches)
        if not rows:
            return
        table = pa.Table.from_batches(rows)
        for split in table.column(0).unique().to_pylist():
            mine = table.filter(pa.compute.equal(table.column(0), split)).drop_columns(_ORDER[0])
            tuples = mine.rename_columns([TS, SRC, SEQ, *names])
            yield _packed(deal(job, split, tuples.combine_chunks()))

    return run


def _instance_task(job: Job) -> Callable[[Batches], Batches]:
    def run(batches: Batches) -> Batches:
        parcels = [p for batch in batches for p in _unpacked(batch)]
        if not parcels:
            return
        failed = [p for p in parcels if p.kind == _ERROR]
        answer: Outcome | TidegateError
        if failed:
            answer = pickle.loads(failed[0].data)
        else:
            try:
                answer = run_instance(job, parcels[0].instance, parcels)
            except TidegateError as error:
                answer = error
        yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(answer)])], schema=_OUTCOME)

    return run


def _failed(error: TidegateError) -> Parcel:
    return Parcel(0, -1, _ERROR, pickle.dumps(error))


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


def _unpacked(batch: pa.RecordBatch) -> Iterator[Parcel]:
    instance, split, kind, label, data = batch.columns
    for i in range(batch.num_rows):
        numbers = instance[i].as_py(), split[i].as_py(), kind[i].as_py()
        yield Parcel(*numbers, data[i].as_buffer(), label[i].as_py())


def _ddl(schema: pa.Schema) -> str:
    fields = from_arrow_schema(schema)
    return ", ".join(f"`{f.name}` {f.dataType.simpleString()}" for f in fields)


def _with_retries(master: str) -> str:
    """Let a local master try a task again, as a cluster does, when a worker process dies."""
    match = re.fullmatch(r"local(?:\[([0-9]+|\*)\])?", master)
    return f"local[{match.group(1) or 1},{_TASK_TRIES}]" if match else master


def _first_line(error: BaseException) -> str:
    lines = [line.strip(" :") for line in str(error).splitlines() if line.strip(" :")]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        lines = lines[1:]
    return lines[0] if lines else type(error).__name__
