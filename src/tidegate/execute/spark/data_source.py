"""The Spark data source `tidegate`: reads the published output of a query as a table or stream.

Spark creates these objects in its own processes and pickles readers into tasks. So they hold plain
values, and Tidegate must be installed where tasks run. Imports are kept few, because every such
process pays for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.types import LongType, StructField, StructType

from tidegate.errors import OptionError, SourceError, near
from tidegate.execute.result_place import result_place
from tidegate.execute.spark.feature import AvailableNow, arrow_schema, spark_schema
from tidegate.sink.folder.files import FileSink
from tidegate.sink.folder.folder_reader import NONE, Published, PublishedPart
from tidegate.sink.folder.remote import RemoteSink
from tidegate.sink.memory import MemorySink

FORMAT = "tidegate"
BATCH, ROW = "_batch", "_row"
"""Columns added by the option `order`; sorted by them, rows are in output order."""

_PATH, _OUTPUT, _ORDER, _MISSING = "path", "output", "order", "missing"
_VALUES = {_ORDER: ("false", "true"), _MISSING: ("fail", "skip")}
"""The values of each option, the default first."""
_TASK_BYTES = 32 << 20
"""The most bytes that one task reads, except when a single part is larger."""
_OPTIONS = (_PATH, _OUTPUT, *_VALUES)


@dataclass(frozen=True)
class ReadOptions:
    """The checked options of a read; `uri` is the folder with the results."""

    uri: str
    ordered: bool
    skip_missing: bool

    @staticmethod
    def of(options: Mapping[str, str]) -> ReadOptions:
        """Parse a user's options; raises for unknown names and values."""
        given = {name.lower(): value for name, value in options.items()}
        for name in given:
            if name not in _OPTIONS:
                raise OptionError(FORMAT, "has no such option", name, near(name, _OPTIONS))
        chosen = {name: given.get(name, known[0]).lower() for name, known in _VALUES.items()}
        for name, value in chosen.items():
            if value not in _VALUES[name]:
                raise OptionError(name, f"must be {' or '.join(_VALUES[name])}", given[name])
        if not given.get(_PATH):
            raise OptionError(
                FORMAT, "needs an output or a checkpoint", "no path", 'Write .load("out").'
            )
        place = result_place(given[_PATH], given.get(_OUTPUT))
        return ReadOptions(place, chosen[_ORDER] == "true", chosen[_MISSING] == "skip")


class PublishedPartition(InputPartition):  # type: ignore[misc]
    """Consecutive parts, perhaps of several batches, that one task reads."""

    def __init__(self, parts: Sequence[PublishedPart]) -> None:
        super().__init__(None)
        self.parts = parts


class _PartReader:
    """Reads parts in Spark's tasks."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self.options = options
        self.schema = schema

    def planned(self, after: int, upto: int) -> list[PublishedPartition]:
        skip = self.options.skip_missing
        parts = Published(self.options.uri).parts(after, upto, skip_missing=skip)
        return [PublishedPartition(share) for share in _shares(parts)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, PublishedPartition)
        published, wanted = Published(self.options.uri), arrow_schema(self.schema)
        for part in partition.parts:
            row = part.first_row
            for rows in published.read(part):
                yield _as_asked(rows, wanted, self._order(part.batch, row, rows.num_rows))
                row += rows.num_rows

    def _order(self, batch: int, first: int, count: int) -> dict[str, pa.Array]:
        if not self.options.ordered:
            return {}
        numbers = pa.array(range(first, first + count), pa.int64())
        return {BATCH: pa.repeat(pa.scalar(batch, pa.int64()), count), ROW: numbers}


class PublishedReader(_PartReader, DataSourceReader):  # type: ignore[misc]
    """Reads all batches that exist when the plan is made."""

    def partitions(self) -> Sequence[InputPartition]:
        return self.planned(NONE, Published(self.options.uri).newest())


class PublishedStreamReader(_PartReader, DataSourceStreamReader, AvailableNow):  # type: ignore[misc]
    """Reads batches as they are published. An offset is the number of the newest batch read.

    Published batches never change, so after a crash Spark reads the same rows again.
    """

    _last: int | None = None
    """The last batch of an available-now run; None for other runs."""

    def prepareForTriggerAvailableNow(self) -> None:
        self._last = Published(self.options.uri).newest()

    def initialOffset(self) -> dict[str, int]:
        return {"batch": NONE}

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, int]:
        """The newest batch. Spark before 4.2 passes no arguments."""
        return {"batch": Published(self.options.uri).newest() if self._last is None else self._last}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return self.planned(start["batch"], end["batch"])


class TidegateSource(DataSource):  # type: ignore[misc]
    """Behind `spark.read.format("tidegate").load(path)` and `spark.readStream`."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        options = ReadOptions.of(self.options)
        found = Published(options.uri).schema()
        if found is None:
            raise SourceError(
                options.uri,
                "must have rows, which tell the columns",
                "none yet",
                "Try when there are some, or give the columns with .schema(...).",
            )
        try:
            columns = spark_schema(found)
        except PySparkException as error:
            raise SourceError(
                options.uri,
                "its columns must have types that Spark has",
                str(error).partition("\n")[0],
            ) from error
        more = [StructField(name, LongType()) for name in (BATCH, ROW) if options.ordered]
        return StructType([*columns.fields, *more])

    def reader(self, schema: StructType) -> DataSourceReader:
        return PublishedReader(ReadOptions.of(self.options), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return PublishedStreamReader(ReadOptions.of(self.options), schema)


def result_frame(sink: object, session: SparkSession | None, *, stream: bool) -> DataFrame:
    """The output of a sink as a DataFrame, in this session or the active one."""
    session = session or SparkSession.getActiveSession()
    if session is None:
        raise OptionError(
            "to_dataframe",
            "needs a Spark session",
            "none in this process",
            "Give one: query.to_dataframe(spark).",
        )
    if isinstance(sink, FileSink | RemoteSink) and sink.format == "parquet":
        _register(session)
        return (session.readStream if stream else session.read).format(FORMAT).load(sink.uri)
    if isinstance(sink, MemorySink) and not stream:
        return session.createDataFrame(sink.table())
    raise OptionError(
        "to_dataframe",
        f"needs results that Spark can read{' as a stream' if stream else ''}",
        repr(sink),
        "Write them as Parquet files: sink=tg.sink.files(path).",
    )


def _register(session: SparkSession) -> None:
    """Register the data source with a session; Spark 4.0 refuses one that it finds by itself."""
    try:
        session.dataSource.register(TidegateSource)
    except PySparkException as error:
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise


def _shares(parts: Sequence[PublishedPart]) -> list[list[PublishedPart]]:
    """Divide parts among tasks, in order; small parts share a task."""
    shares: list[list[PublishedPart]] = []
    size = _TASK_BYTES
    for part in parts:
        if size + part.bytes > _TASK_BYTES:
            shares.append([])
            size = 0
        shares[-1].append(part)
        size += part.bytes
    return shares


def _as_asked(
    rows: pa.RecordBatch, wanted: pa.Schema, more: Mapping[str, pa.Array]
) -> pa.RecordBatch:
    """The columns that Spark expects, cast to its types; NULL where an older file lacks one."""
    there = {**{name: rows.column(name) for name in rows.schema.names}, **more}
    columns = [
        there[field.name].cast(field.type)
        if field.name in there
        else pa.nulls(rows.num_rows, field.type)
        for field in wanted
    ]
    return pa.RecordBatch.from_arrays(columns, schema=wanted)
